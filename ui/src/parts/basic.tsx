import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { ago, count, moment } from '../lib/format'
import { useNow, type Loaded } from '../lib/use'
import { ApiError } from '../lib/api'
import { serverNow } from '../lib/clock'

/** When something happened, in words that age; the moment itself on hover. */
export function Ago({ ms }: { ms: number }) {
  const now = useNow(ms > serverNow() - 60000 ? 1000 : 10000)
  return <time dateTime={ms ? new Date(ms).toISOString() : undefined} title={moment(ms)}>{ago(ms, now)}</time>
}

/** How long a run may be silent before it no longer counts as alive. */
export const silentAfter = 10 * 60 * 1000

export type Life = 'alive' | 'silent' | 'lost' | 'done' | 'failed' | 'stopped'

export function lifeOf(run: { status: string; lost: string; last_ms: number; interrupted: string }, now: number): Life {
  if (run.status === 'failed') return 'failed'
  if (run.status === 'done') return 'done'
  if (run.interrupted) return 'stopped'
  if (run.lost) return 'lost'
  return now - run.last_ms < silentAfter ? 'alive' : 'silent'
}

const words: { [key: string]: string } = { alive: 'running', stopped: 'interrupted' }

/** A state as a mark and a word: never a colour alone. */
export function State({ state, title }: { state: string; title?: string }) {
  return <span class={`state state-${state}`} title={title}><i aria-hidden="true" />{words[state] ?? state}</span>
}

export function RunState({ run }: { run: { status: string; lost: string; last_ms: number; interrupted: string } }) {
  const now = useNow()
  const life = lifeOf(run, now)
  const title = life === 'silent' ? 'It has not ended, and has said nothing for a while: it may have been killed.' : life === 'lost' ? `It has not ended, but ${run.lost}` : undefined
  return <State state={life} title={title} />
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><strong>{title}</strong>{children && <div>{children}</div>}</div>
}

const mostShown = 400

/** A text of which only the beginning is shown if it is long. */
export function Long({ text, class: name }: { text: string; class?: string }) {
  const [all, setAll] = useState(false)
  if (text.length <= mostShown + 40) return <p class={name}>{text}</p>
  return <p class={name}>{all ? text : text.slice(0, mostShown) + '…'} <button class="more-text" aria-expanded={all} onClick={() => setAll(!all)}>{all ? 'less' : `all ${count(text.length)} characters`}</button></p>
}

/** What went wrong; page if there is nothing else in the view, which it then heads. */
export function Failure({ error, retry, page }: { error: Error; retry?: () => void; page?: boolean }) {
  const title = error instanceof ApiError && error.status === 404 ? 'Not found' : error instanceof ApiError && error.title || 'Something went wrong'
  return (
    <div class="failure" role="alert">
      {page ? <h1><strong>{title}</strong></h1> : <strong>{title}</strong>}
      {error.message !== title && <p>{error.message}</p>}
      {retry && <button onClick={retry}>Try again</button>}
    </div>
  )
}

/** Shows what was loaded, or why not, or that it is coming: in a place kept for it. */
export function Show<T>({ of, height = 120, children }: { of: Loaded<T>; height?: number; children: (data: T) => ComponentChildren }) {
  if (of.data !== null) return <>{children(of.data)}</>
  if (of.error) return <Failure error={of.error} retry={of.reload} />
  return <div class="skeleton" style={{ minHeight: height }} role="status"><span class="sr">Loading</span></div>
}

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [done, set] = useState(false)
  const copy = async () => {
    await copyText(text)
    set(true)
    setTimeout(() => set(false), 1200)
  }
  return (
    <button class="copy" onClick={copy} aria-label={label} title={label}>
      <svg viewBox="0 0 16 16" width="13" height="13" aria-hidden="true">
        {done ? <path d="M3 8.5l3.2 3L13 4.5" /> : <><rect x="5.5" y="5.5" width="8" height="8" rx="1.5" /><path d="M10.5 3.5v-1h-8v8h1" /></>}
      </svg>
      <span class="sr" aria-live="polite">{done ? 'Copied' : ''}</span>
    </button>
  )
}

export async function copyText(text: string) {
  try { await navigator.clipboard.writeText(text) } catch { legacyCopy(text) }
}

// Pages that are served without TLS to other machines have no clipboard.
function legacyCopy(text: string) {
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}

export function Tabs({ tabs, current, onPick, label }: { tabs: [key: string, title: string, note?: string][]; current: string; onPick: (key: string) => void; label: string }) {
  const key = (e: KeyboardEvent) => {
    const i = tabs.findIndex(t => t[0] === current)
    const next = e.key === 'ArrowRight' ? i + 1 : e.key === 'ArrowLeft' ? i - 1 : e.key === 'Home' ? 0 : e.key === 'End' ? tabs.length - 1 : -1
    if (next < 0 || next >= tabs.length) return
    e.preventDefault()
    onPick(tabs[next][0])
    const bar = e.currentTarget as HTMLElement
    setTimeout(() => (bar.children[next] as HTMLElement).focus())
  }
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={key}>
      {tabs.map(([k, title, note]) => (
        <button key={k} role="tab" aria-selected={k === current} tabIndex={k === current ? 0 : -1} onClick={() => onPick(k)}>
          {title}{note && <span class="note">{note}</span>}
        </button>
      ))}
    </div>
  )
}

/** A number and what it counts. */
export function Stat({ n, label, tone, href, main }: { n: ComponentChildren; label: string; tone?: string; href?: string; main?: boolean }) {
  const body = <><b class={tone ? 'tone-' + tone : ''}>{n}</b><span>{label}</span></>
  const name = main ? 'stat main' : 'stat'
  return href ? <a class={name} href={href}>{body}</a> : <div class={name}>{body}</div>
}

export function Panel({ title, note, actions, children, id }: { title: ComponentChildren; note?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren; id?: string }) {
  return (
    <section class="panel" id={id}>
      <header><h2>{title}</h2>{note !== undefined && <span class="note">{note}</span>}{actions && <div class="actions">{actions}</div>}</header>
      {children}
    </section>
  )
}

export function Check({ on, set, children }: { on: boolean; set: (on: boolean) => void; children: ComponentChildren }) {
  return <label class="check"><input type="checkbox" checked={on} onChange={e => set(e.currentTarget.checked)} />{children}</label>
}

/** Puts a chart before all others. */
export function Pin({ name, on, toggle }: { name: string; on: boolean; toggle: () => void }) {
  return <button class="icon" aria-pressed={on} onClick={toggle} aria-label={`${name} first`} title={on ? 'Not first any more' : 'Put first'}><svg width="15" height="15" viewBox="0 0 16 16" aria-hidden="true"><path fill={on ? 'currentColor' : 'none'} d="M5.5 2h5l-.6 5 2.1 2.5H4L6.1 7zM8 9.5V14" /></svg></button>
}

/** Buttons of which one is on. */
export function Choice<T extends string>({ options, value, set, label }: { options: [T, string][]; value: T; set: (v: T) => void; label: string }) {
  const at = Math.max(0, options.findIndex(o => o[0] === value))
  const key = (e: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key]
    if (by === undefined) return
    e.preventDefault()
    const next = (at + by + options.length) % options.length
    set(options[next][0])
    ;((e.currentTarget as HTMLElement).children[next] as HTMLElement).focus()
  }
  return (
    <div class="choice" role="radiogroup" aria-label={label} onKeyDown={key}>
      {options.map(([v, title], i) => <button key={v} role="radio" aria-checked={v === value} tabIndex={i === at ? 0 : -1} onClick={() => set(v)}>{title}</button>)}
    </div>
  )
}

export function Menu({ label, children }: { label: ComponentChildren; children: ComponentChildren }) {
  return (
    <details class="menu" onKeyDown={e => { if (e.key === 'Escape') { e.currentTarget.open = false; (e.currentTarget.firstElementChild as HTMLElement).focus() } }}
      onFocusOut={e => {
        const menu = e.currentTarget, to = e.relatedTarget as Node | null
        if (to && !menu.contains(to)) setTimeout(() => { menu.open = false })
      }}>
      <summary>{label}</summary>
      <div class="menu-body" tabIndex={-1}>{children}</div>
    </details>
  )
}
