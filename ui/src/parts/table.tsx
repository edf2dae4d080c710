import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { go } from '../lib/router'

// A table of any length: only the rows in sight are in the page, and only the
// pages that have been in sight lately are in memory.

export interface Column<T> {
  key: string
  title: string
  width: number
  /** takes what is left of the width */
  grow?: boolean
  right?: boolean
  /** the key that the server sorts by */
  sort?: string
  /** whether the first click sorts downwards */
  down?: boolean
  cell: (row: T) => ComponentChildren
}

const pageSize = 100
const mostPages = 40

export interface Rows<T> { total: number | null; row: (i: number) => T | undefined; want: (from: number, to: number) => void; reload: () => void; error: Error | null }

/** Rows that are loaded by pages as they come into sight. A new key begins anew. */
export function useRows<T>(key: string, load: (offset: number, limit: number, signal: AbortSignal) => Promise<{ items: T[]; total: number }>): Rows<T> {
  const [, tick] = useState(0)
  const s = useRef({ key: '', version: 0, pages: new Map<number, { items: T[]; version: number }>(), loading: new Set<number>(), total: null as number | null, error: null as Error | null, range: [0, 60] as [number, number], abort: new AbortController() })
  const loader = useRef(load)
  loader.current = load
  const st = s.current
  if (st.key !== key) {
    st.abort.abort()
    Object.assign(st, { key, pages: new Map(), loading: new Set(), total: null, error: null, range: [0, 60], abort: new AbortController(), version: st.version + 1 })
  }
  const fetchPage = (page: number) => {
    const { version, abort } = st
    if (st.loading.has(page)) return
    st.loading.add(page)
    loader.current(page * pageSize, pageSize, abort.signal).then(answer => {
      if (abort.signal.aborted) return
      st.loading.delete(page)
      st.pages.delete(page)
      st.pages.set(page, { items: answer.items, version })
      while (st.pages.size > mostPages) st.pages.delete(st.pages.keys().next().value!)
      st.total = answer.total
      st.error = null
      tick(n => n + 1)
      if (version !== st.version) want(...st.range)
    }, error => {
      if (abort.signal.aborted) return
      st.loading.delete(page)
      st.error = error
      tick(n => n + 1)
    })
  }
  const want = (from: number, to: number) => {
    st.range = [from, to]
    const last = st.total === null ? to : Math.min(to, st.total - 1)
    for (let p = Math.floor(from / pageSize); p <= Math.floor(Math.max(last, 0) / pageSize); p++) {
      if (st.pages.get(p)?.version !== st.version) fetchPage(p)
    }
  }
  useEffect(() => { want(...st.range) }, [key])
  useEffect(() => () => st.abort.abort(), [])
  const reload = useCallback(() => { st.version++; want(...st.range) }, [])
  return { total: st.total, error: st.error, want, reload, row: i => st.pages.get(Math.floor(i / pageSize))?.items[i % pageSize] }
}

/** Rows that can only be read on from one page to the next, up to as far as somebody scrolls. */
export function useCursorRows<T>(key: string, load: (cursor: string, limit: number, signal: AbortSignal) => Promise<{ items: T[]; total: number; next: string }>): Rows<T> & { matches: number | null } {
  const [, tick] = useState(0)
  const s = useRef({ key: '', items: [] as T[], next: '' as string | null, matches: null as number | null, busy: false, error: null as Error | null, until: 0, abort: new AbortController() })
  const st = s.current
  const begin = () => Object.assign(st, { next: '', busy: false, error: null, abort: new AbortController() })
  if (st.key !== key) {
    st.abort.abort()
    Object.assign(st, { key, items: [], matches: null, until: 0 })
    begin()
  }
  const loader = useRef(load)
  loader.current = load
  const more = (fresh: boolean) => {
    if (st.busy || st.next === null) return
    st.busy = true
    const { abort } = st
    const limit = fresh ? Math.min(1000, Math.max(pageSize, st.items.length)) : 200
    loader.current(st.next, limit, abort.signal).then(page => {
      if (abort.signal.aborted) return
      st.items = fresh ? page.items : st.items.concat(page.items)
      st.next = page.next || null
      st.matches = page.total
      st.busy = false
      st.error = null
      tick(n => n + 1)
      if (st.until > st.items.length) more(false)
    }, error => { if (!abort.signal.aborted) { st.busy = false; st.error = error; tick(n => n + 1) } })
  }
  useEffect(() => { more(true) }, [key])
  useEffect(() => () => st.abort.abort(), [])
  const reload = useCallback(() => { st.abort.abort(); begin(); more(true) }, [])
  const total = st.matches === null ? null : Math.min(st.matches, st.items.length + (st.next === null ? 0 : 20))
  return { total, matches: st.matches, error: st.error, reload, row: i => st.items[i], want: (_, to) => { st.until = to; if (st.matches !== null && to > st.items.length) more(false) } }
}

export interface TableProps<T> {
  label: string
  columns: Column<T>[]
  rows: Rows<T>
  id: (row: T) => string
  href?: (row: T) => string
  sort?: string
  onSort?: (sort: string) => void
  selected?: Set<string>
  onSelect?: (id: string, on: boolean) => void
  /** rows to show at most before it scrolls; all the height there is if left out */
  height?: number
  /** a row to begin at */
  jump?: number | null
  empty?: ComponentChildren
}

const rowHeight = 34

export function Table<T>(p: TableProps<T>) {
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 600 })
  const [active, setActive] = useState(0)
  const total = p.rows.total
  const from = Math.max(0, Math.floor(view.top / rowHeight) - 8)
  const to = Math.min(total ?? 12, Math.ceil((view.top + Math.min(view.height, 4000)) / rowHeight) + 8)
  useLayoutEffect(() => {
    const el = box.current!
    const see = () => setView({ top: el.scrollTop, height: el.clientHeight })
    see()
    const o = new ResizeObserver(see)
    o.observe(el)
    return () => o.disconnect()
  }, [])
  useEffect(() => { p.rows.want(from, to) }, [from, to, p.rows.total])
  useEffect(() => {
    if (p.jump === null || p.jump === undefined || total === null) return
    box.current!.scrollTop = Math.max(0, p.jump * rowHeight - 60)
    setActive(p.jump)
  }, [p.jump, total === null])
  const see = (i: number) => {
    setActive(i)
    const el = box.current!, y = i * rowHeight, head = rowHeight
    if (y < el.scrollTop) el.scrollTop = y
    else if (y + rowHeight > el.scrollTop + el.clientHeight - head) el.scrollTop = y + rowHeight - el.clientHeight + head
  }
  const key = (e: KeyboardEvent) => {
    if (!total || (e.target as Element).closest('input, button') && e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 2)
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: total - 1 }[e.key]
    const row = p.rows.row(active)
    if (to !== undefined) { e.preventDefault(); see(Math.max(0, Math.min(total - 1, to))) }
    else if (e.key === 'Enter' && row && p.href) { e.preventDefault(); go(p.href(row)) }
    else if (e.key === ' ' && row && p.onSelect) { e.preventDefault(); p.onSelect(p.id(row), !p.selected?.has(p.id(row))) }
  }
  const template = (p.onSelect ? '36px ' : '') + p.columns.map(c => c.grow ? `minmax(${c.width}px, 1fr)` : `${c.width}px`).join(' ')
  const least = p.columns.reduce((w, c) => w + c.width, p.onSelect ? 36 : 0)
  const items = []
  for (let i = from; i < to; i++) items.push(<Row key={i} i={i} p={p} row={p.rows.row(i)} active={i === active} template={template} onActive={setActive} />)
  const rows = total ?? 12
  return (
    <div class="table" role="grid" aria-label={p.label} aria-rowcount={rows + 1} tabIndex={0} ref={box} onKeyDown={key}
      aria-activedescendant={total ? `${p.label}-${active}` : undefined}
      style={{ height: p.height ? Math.min(p.height, Math.max(2, rows + 1) * rowHeight + 14) : undefined }} onScroll={e => setView({ top: e.currentTarget.scrollTop, height: e.currentTarget.clientHeight })}>
      <div style={{ minWidth: least }}>
        <div class="tr th" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
          {p.onSelect && <span role="columnheader"><span class="sr">chosen</span></span>}
          {p.columns.map(c => <Head key={c.key} c={c} sort={p.sort} onSort={p.onSort} />)}
        </div>
        {total === 0 ? <div class="table-empty">{p.empty ?? 'Nothing here.'}</div> : (
          <div role="rowgroup" style={{ height: rows * rowHeight, position: 'relative' }}>
            <div style={{ transform: `translateY(${from * rowHeight}px)` }}>{items}</div>
          </div>
        )}
      </div>
    </div>
  )
}

function Head<T>({ c, sort, onSort }: { c: Column<T>; sort?: string; onSort?: (s: string) => void }) {
  if (!c.sort || !onSort) return <span role="columnheader" class={c.right ? 'right' : ''} title={c.title}>{c.title}</span>
  const on = sort?.replace(/^[-+]/, '') === c.sort
  const down = on && sort!.startsWith('-')
  const next = on ? (down ? '+' : '-') + c.sort : (c.down ? '-' : '+') + c.sort
  return (
    <span role="columnheader" aria-sort={on ? (down ? 'descending' : 'ascending') : 'none'} class={c.right ? 'right' : ''}>
      <button class={on ? 'on' : ''} onClick={() => onSort(next)} title={`Sort by ${c.title}`}>{c.title}{on && <i aria-hidden="true">{down ? '↓' : '↑'}</i>}</button>
    </span>
  )
}

function Row<T>({ i, p, row, active, template, onActive }: { i: number; p: TableProps<T>; row: T | undefined; active: boolean; template: string; onActive: (i: number) => void }) {
  const id = row && p.id(row)
  return (
    <div class={active ? 'tr active' : 'tr'} role="row" id={`${p.label}-${i}`} aria-rowindex={i + 2} style={{ gridTemplateColumns: template }}
      onClick={e => {
        onActive(i)
        if (row && p.href && !(e.target as Element).closest('a, button, input, label') && !getSelection()?.toString()) go(p.href(row))
      }}>
      {p.onSelect && (
        <span role="gridcell" class="pick">{row && <input type="checkbox" tabIndex={-1} aria-label={`choose ${id}`} checked={p.selected?.has(id!)} onChange={() => p.onSelect!(id!, !p.selected?.has(id!))} />}</span>
      )}
      {p.columns.map(c => <span key={c.key} role="gridcell" class={c.right ? 'right' : ''}>{row ? c.cell(row) : <i class="ghost" />}</span>)}
    </div>
  )
}

/** Rows that are all there. */
export function fixedRows<T>(list: T[]): Rows<T> {
  return { total: list.length, row: i => list[i], want: () => {}, reload: () => {}, error: null }
}
