import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { count, middle } from '../lib/format'
import { cameBack, go } from '../lib/router'

// A table of any length: only the rows in sight are in the page, and only the
// pages that have been in sight lately are in memory.

export interface Column<T> {
  key: string
  title: string
  width: number
  /** takes what is left of the width */
  grow?: boolean
  right?: boolean
  /** the key that the server sorts by, or sorted */
  sort?: string
  /** what sorted goes by; what is NaN or null comes last */
  by?: (row: T) => string | number | null
  /** whether the first click sorts downwards */
  down?: boolean
  cell: (row: T) => ComponentChildren
}

const pageSize = 100
const mostPages = 40

export interface Rows<T> { key: string; total: number | null; row: (i: number) => T | undefined; want: (from: number, to: number) => void; reload: () => void; error: Error | null }

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
  return { key, total: st.total, error: st.error, want, reload, row: i => st.pages.get(Math.floor(i / pageSize))?.items[i % pageSize] }
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

/** The most pixels that browsers make an element tall, with room to spare. */
const tallest = 5_000_000

/**
 * Where a table stands, in pixels of all its rows. With more rows than an element can be
 * tall the scroll bar stands for all of them: small movements are as they are, large
 * ones go where they point, and at rest the bar is put where it belongs.
 */
function useScroll(box: { current: HTMLDivElement | null }, total: number) {
  const [view, setView] = useState({ top: 0, bar: 0, height: 600 })
  const s = useRef({ top: 0, bar: 0, height: 600, rest: 0, whole: 0, drawn: 0 })
  s.current.whole = (total + 1) * rowHeight
  s.current.drawn = Math.min(s.current.whole, tallest)
  const tell = () => { const { top, bar, height } = s.current; setView({ top, bar, height }) }
  const limits = () => ({ most: Math.max(1, s.current.whole - s.current.height), mostBar: Math.max(1, s.current.drawn - s.current.height) })
  const put = (bar: number) => {
    s.current.bar = Math.round(bar)
    box.current!.scrollTop = s.current.bar
    tell()
  }
  const settle = () => {
    const { most, mostBar } = limits()
    if (!box.current) return
    // Somebody has moved the bar, and the page has not been told yet.
    if (Math.abs(box.current.scrollTop - s.current.bar) > 1) return moved()
    if (Math.abs(s.current.top / most * mostBar - s.current.bar) > 1) put(s.current.top / most * mostBar)
  }
  const moved = () => {
    const el = box.current!, st = s.current, by = el.scrollTop - st.bar
    st.height = el.clientHeight
    st.bar = el.scrollTop
    const { most, mostBar } = limits(), scaled = st.whole !== st.drawn
    if (!scaled) st.top = st.bar
    else if (st.bar <= 0) st.top = 0
    else if (st.bar >= mostBar - 1) st.top = most
    else if (Math.abs(by) < 3 * st.height) st.top = Math.min(most, Math.max(0, st.top + by))
    else st.top = st.bar / mostBar * most
    tell()
    clearTimeout(st.rest)
    if (scaled) st.rest = window.setTimeout(settle, 200)
  }
  const go = (top: number) => {
    const { most, mostBar } = limits(), st = s.current
    st.top = Math.min(most, Math.max(0, top))
    put(st.whole === st.drawn ? st.top : st.top / most * mostBar)
  }
  useLayoutEffect(() => {
    moved()
    const o = new ResizeObserver(() => moved())
    o.observe(box.current!)
    return () => { o.disconnect(); clearTimeout(s.current.rest) }
  }, [])
  return { ...view, drawn: s.current.drawn - rowHeight, moved, go }
}

/** Where tables stood when they were left, for those who come back. */
const left = new Map<string, { top: number; active: number }>()
const mostLeft = 50

export function Table<T>(p: TableProps<T>) {
  const box = useRef<HTMLDivElement>(null)
  const [active, setActive] = useState(0)
  const total = p.rows.total, name = p.label + p.rows.key
  const view = useScroll(box, total ?? 12)
  const from = Math.max(0, Math.floor(view.top / rowHeight) - 8)
  const to = Math.min(total ?? 12, Math.ceil((view.top + Math.min(view.height, 4000)) / rowHeight) + 8)
  useEffect(() => { p.rows.want(from, to) }, [from, to, p.rows.total])
  useEffect(() => {
    if (total === null) return
    const stood = cameBack() ? left.get(name) : undefined
    left.delete(name)
    if (stood) {
      view.go(stood.top)
      setActive(stood.active)
    } else if (p.jump !== null && p.jump !== undefined) {
      view.go(p.jump * rowHeight - 60)
      setActive(p.jump)
    }
  }, [p.jump, total === null])
  const stands = useRef({ name, top: 0, active: 0 })
  stands.current = { name, top: view.top, active }
  useEffect(() => () => {
    left.set(stands.current.name, stands.current)
    if (left.size > mostLeft) left.delete(left.keys().next().value!)
  }, [])
  const first = useRef(p.rows.key)
  useLayoutEffect(() => {
    if (first.current === p.rows.key) return
    first.current = p.rows.key
    view.go(0)
    setActive(0)
  }, [p.rows.key])
  const see = (i: number) => {
    setActive(i)
    const y = i * rowHeight, inside = box.current!.clientHeight - rowHeight
    if (y < view.top) view.go(y)
    else if (y + rowHeight > view.top + inside) view.go(y + rowHeight - inside)
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
  // The table is one stop of the tab key: its rows are gone through by arrows, however many.
  useLayoutEffect(() => { box.current!.querySelectorAll<HTMLElement>('[role=gridcell] a').forEach(a => { a.tabIndex = -1 }) })
  const template = (p.onSelect ? '36px ' : '') + p.columns.map(c => c.grow ? `minmax(${c.width}px, 1fr)` : `${c.width}px`).join(' ')
  const least = p.columns.reduce((w, c) => w + c.width, p.onSelect ? 36 : 0)
  const items = []
  for (let i = from; i < to; i++) items.push(<Row key={i} i={i} p={p} row={p.rows.row(i)} active={i === active} template={template} onActive={setActive} />)
  const rows = total ?? 12
  return (
    <div class="table" role="grid" aria-label={p.label} aria-rowcount={rows + 1} tabIndex={0} ref={box} onKeyDown={key}
      aria-activedescendant={total ? rowId(p.label, active) : undefined}
      style={total === 0 ? { height: 'auto' } : p.height ? { height: Math.min(p.height, Math.max(2, rows + 1) * rowHeight + 14) } : total === null ? undefined : { maxHeight: Math.max(5, rows + 1) * rowHeight + 16 }} onScroll={view.moved}>
      <div style={{ minWidth: least }}>
        <div class="tr th" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
          {p.onSelect && <span role="columnheader"><span class="sr">chosen</span></span>}
          {p.columns.map(c => <Head key={c.key} c={c} sort={p.sort} onSort={p.onSort} />)}
        </div>
        {total === 0 ? <div class="table-empty">{p.empty ?? 'Nothing here.'}</div> : (
          <div role="rowgroup" style={{ height: view.drawn, position: 'relative' }}>
            <div style={{ transform: `translateY(${from * rowHeight + view.bar - view.top}px)` }}>{items}</div>
          </div>
        )}
      </div>
    </div>
  )
}

/** How many letters of a long heading there is room for; columns are made wide enough for short ones. */
const longest = <T,>(c: Column<T>) => c.grow ? 80 : c.title.length <= 15 ? 15 : Math.max(8, Math.floor((c.width - 30) / 8.8))

function Head<T>({ c, sort, onSort }: { c: Column<T>; sort?: string; onSort?: (s: string) => void }) {
  if (!c.sort || !onSort) return <span role="columnheader" class={c.right ? 'right' : ''} title={c.title}>{middle(c.title, longest(c))}</span>
  const on = sort?.replace(/^[-+]/, '') === c.sort
  const down = on && sort!.startsWith('-')
  const next = on ? (down ? '+' : '-') + c.sort : (c.down ? '-' : '+') + c.sort
  return (
    <span role="columnheader" aria-sort={on ? (down ? 'descending' : 'ascending') : 'none'} class={c.right ? 'right' : ''}>
      <button class={on ? 'on' : ''} onClick={() => onSort(next)} title={`Sort by ${c.title}`}>{middle(c.title, longest(c))}{on && <i aria-hidden="true">{down ? '↓' : '↑'}</i>}</button>
    </span>
  )
}

const rowId = (label: string, i: number) => `${label.replaceAll(' ', '-')}-${i}`

function Row<T>({ i, p, row, active, template, onActive }: { i: number; p: TableProps<T>; row: T | undefined; active: boolean; template: string; onActive: (i: number) => void }) {
  const id = row && p.id(row)
  return (
    <div class={active ? 'tr active' : 'tr'} role="row" id={rowId(p.label, i)} aria-rowindex={i + 2} style={{ gridTemplateColumns: template }}
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

/** Rows that are all there, in the order of a column. */
export function sorted<T>(list: T[], columns: Column<T>[], sort: string): T[] {
  const by = columns.find(c => c.sort === sort.replace(/^[-+]/, ''))?.by, way = sort.startsWith('-') ? -1 : 1
  if (!by) return list
  const none = (v: string | number | null) => v === null || Number.isNaN(v)
  return list.map(row => ({ row, v: by(row) })).sort(({ v: a }, { v: b }) =>
    none(a) || none(b) ? Number(none(a)) - Number(none(b)) : way * (typeof a === 'string' ? a.localeCompare(String(b), undefined, { numeric: true }) : a! - Number(b))).map(r => r.row)
}

/** What is said of a list of which not all is there. */
export const newest = (page: { total: number; items: unknown[] }) => page.total > page.items.length ? `, the newest ${count(page.items.length)} are shown` : ''

/** Rows that are all there. */
export function fixedRows<T>(list: T[]): Rows<T> {
  return { key: '', total: list.length, row: i => list[i], want: () => {}, reload: () => {}, error: null }
}

/** Where to go in a table: a number of a row, from 1, or of what its rows are. */
export function Jump({ label, from, to, value, set, width = 104 }: { label: string; from: number; to: number; value: string; set: (v: string | null) => void; width?: number }) {
  return (
    <label>Go to<input type="number" min={from} max={to} placeholder={`${from} – ${to}`} aria-label={label} style={{ width }} value={value} disabled={to < from}
      onChange={e => { const n = Math.round(Number(e.currentTarget.value)); set(e.currentTarget.value === '' ? null : String(Math.max(from, Math.min(to, n)))) }} /></label>
  )
}
