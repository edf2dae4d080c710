import { Component, type ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { post, setOnUnauthorized } from './lib/api'
import { clockAhead } from './lib/clock'
import { duration, moment } from './lib/format'
import { useLink } from './lib/live'
import { at, follow, usePlace } from './lib/router'
import { chooseTheme, chosenTheme, useTheme } from './lib/theme'
import { useNow } from './lib/use'
import { copyText, Empty, Failure } from './parts/basic'
import { Keys } from './parts/keys'
import { Overview } from './views/overview'
import { Runs } from './views/runs'
import { Run } from './views/run'
import { Compare } from './views/compare'
import { CompareStudies } from './views/study/rivals'
import { Studies } from './views/studies'
import { Study } from './views/study'
import { Trial } from './views/trial'
import { Datagen } from './views/datagen'
import { Experiment } from './views/experiment'
import { Item } from './views/item'

export function App() {
  const [locked, setLocked] = useState(false)
  const place = usePlace()
  const main = useRef<HTMLElement>(null)
  useEffect(() => setOnUnauthorized(() => setLocked(true)), [])
  useEffect(() => {
    document.addEventListener('click', follow)
    return () => document.removeEventListener('click', follow)
  }, [])
  const where = place.path.join('/')
  const first = useRef(true)
  useEffect(() => {
    if (!first.current) main.current?.focus({ preventScroll: true })
    first.current = false
  }, [where])
  return (
    <>
      <a class="skip" href="#main" onClick={e => { e.preventDefault(); main.current?.focus() }}>Skip to content</a>
      <Top part={place.path[0] ?? ''} locked={locked} />
      <main id="main" tabIndex={-1} ref={main}>
        {locked ? <Login done={() => setLocked(false)} /> : <Guard key={where}><View path={place.path} /></Guard>}
      </main>
      {!locked && <Away />}
    </>
  )
}

function View({ path }: { path: string[] }) {
  const [kind, a, b, c] = path
  if (!kind) return <Overview />
  if (kind === 'runs') return a === undefined ? <Runs /> : <Run key={a} slug={a} />
  if (kind === 'compare') return <Compare />
  if (kind === 'compare-studies') return <CompareStudies />
  if (kind === 'studies' && a === undefined) return <Studies />
  if (kind === 'studies' && b === 'trials') return <Trial key={a + c} id={a} number={c} />
  if (kind === 'studies') return <Study key={a} id={a} />
  if (kind === 'datagen' && a === undefined) return <Datagen />
  if (kind === 'datagen' && b === 'items' && c !== undefined) return <Item key={a + c} id={a} item={c} />
  if (kind === 'datagen') return <Experiment key={a} id={a} />
  return <Empty title="There is no such page"><a class="link" href={at.overview}>Go to the overview</a></Empty>
}

/** A view that fails takes nothing else with it. */
class Guard extends Component<{ children: ComponentChildren }, { error: Error | null }> {
  state = { error: null as Error | null }
  static getDerivedStateFromError(error: Error) { return { error } }
  componentDidCatch(error: Error) { console.error(error) }
  render() {
    return this.state.error ? <Failure error={this.state.error} retry={() => this.setState({ error: null })} /> : this.props.children
  }
}

const parts: [string, string][] = [['', 'Overview'], ['runs', 'Runs'], ['studies', 'Studies'], ['datagen', 'Datagen']]

function Top({ part, locked }: { part: string; locked: boolean }) {
  const current = part === 'compare' ? 'runs' : part === 'compare-studies' ? 'studies' : part
  return (
    <header class="top">
      <div class="top-in">
        <a class="brand" href="/" aria-label="Foldlog, overview">
          <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#3457d5" /><path d="M8 9h16M8 15h11M8 21h6" stroke="#fff" stroke-width="3" stroke-linecap="round" /></svg>
          <span>Foldlog</span>
        </a>
        <nav class="nav" aria-label="Views">
          {parts.map(([p, title]) => <a key={p} href={'/' + p} aria-current={p === current ? 'page' : undefined}>{title}</a>)}
        </nav>
        <div class="top-right">{!locked && <Linked />}<CopyLink /><Keys /><ThemeSwitch /></div>
      </div>
    </header>
  )
}

function Linked() {
  const link = useLink()
  const now = useNow(10000)
  const text = { live: 'Live', away: 'Reconnecting…', connecting: 'Connecting…', held: 'Delayed' }[link]
  const title = { live: 'Changes appear as they are written.', away: 'The server does not answer. What is shown may be old.', connecting: 'What is shown may be old.', held: 'Changes appear every ten seconds.' }[link]
  const ahead = clockAhead(), clock = Math.abs(ahead) > 30_000 ? ` This computer's clock is ${duration(Math.abs(ahead))} ${ahead > 0 ? 'behind' : 'ahead of'} the server's; ages are told by the server's.` : ''
  return <span class={'linked ' + link} role="status" title={title + clock}><i aria-hidden="true" /><span>{text}</span>{clock && <time class="note">server {moment(now).slice(11, 16)}</time>}</span>
}

/** The address has all of a view: whoever is given it sees the same. */
function CopyLink() {
  const [done, set] = useState(false)
  const copy = () => {
    copyText(location.href)
    set(true)
    setTimeout(() => set(false), 1500)
  }
  return (
    <button class="icon share" onClick={copy} aria-label="Copy the link to this view" title="Copy the link to this view">
      <svg width="17" height="17" viewBox="0 0 16 16" aria-hidden="true">{done ? <path d="M3 8.5l3.2 3L13 4.5" /> : <path d="M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2.2-2.2a2.6 2.6 0 0 0-3.7-3.7l-.9.9M9.2 6.8a2.6 2.6 0 0 0-3.7 0L3.3 9a2.6 2.6 0 0 0 3.7 3.7l.9-.9" />}</svg>
      <span class="sr" aria-live="polite">{done ? 'Copied' : ''}</span>
    </button>
  )
}

/** Says what cannot be overlooked: that nothing new comes. */
function Away() {
  const link = useLink(), away = link === 'away'
  return (
    <div class={away || link === 'held' ? 'gone on' : 'gone'} role="status">
      {away && <><strong>The server does not answer.</strong> What is shown may be old; it goes on by itself.</>}
      {link === 'held' && <><strong>Changes come late.</strong> The server answers, but its events do not come through: a proxy may hold them back, or too many pages are open. The page is read anew every ten seconds.</>}
    </div>
  )
}

function ThemeSwitch() {
  const shown = useTheme()
  const chosen = chosenTheme()
  const next = shown === 'dark' ? 'light' : 'dark'
  return (
    <button class="icon" onClick={() => chooseTheme(chosen === 'auto' ? next : matchMedia('(prefers-color-scheme: dark)').matches === (next === 'dark') ? 'auto' : next)} aria-label={`Switch to ${next} colours`} title={`Switch to ${next} colours`}>
      <svg width="17" height="17" viewBox="0 0 16 16" aria-hidden="true">
        {shown === 'dark' ? <><circle cx="8" cy="8" r="3" /><path d="M8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.4 1.4M11.6 11.6L13 13M3 13l1.4-1.4M11.6 4.4L13 3" /></> : <path d="M13.5 9.8A6 6 0 0 1 6.2 2.5a6 6 0 1 0 7.3 7.3z" />}
      </svg>
    </button>
  )
}

function Login({ done }: { done: () => void }) {
  const [token, setToken] = useState('')
  const [error, setError] = useState<Error | null>(null)
  const submit = (e: Event) => {
    e.preventDefault()
    post('session/open', { token: token.trim() }).then(done, setError)
  }
  return (
    <form class="panel login" onSubmit={submit}>
      <h1>This server asks for a token</h1>
      <p class="muted">Whoever runs it makes one with <code>foldlog serve token add NAME</code>.</p>
      <label>Token<input type="password" autoComplete="current-password" autoFocus value={token} onInput={e => setToken(e.currentTarget.value)} style={{ width: '100%' }} /></label>
      {error && <p class="bad" role="alert">{error.message}</p>}
      <button class="primary" disabled={!token.trim()}>Open</button>
    </form>
  )
}
