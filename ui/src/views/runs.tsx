import { useEffect, useRef, useState } from 'preact/hooks'
import { get, number, url } from '../lib/api'
import { colorOf } from '../lib/color'
import { brief, column, count, duration, text, value } from '../lib/format'
import { useLive, useThrottled } from '../lib/live'
import { at, go, useQuery } from '../lib/router'
import { betterOf, measured, measureOf, partsOf, telling } from '../lib/runs'
import { type Cell, cellOf } from '../lib/save'
import type { NameItem, Page, RunItem } from '../lib/types'
import { useLoad, useSettled } from '../lib/use'
import { Ago, Choice, Empty, Failure, Menu, RunState } from '../parts/basic'
import { Export } from '../parts/export'
import { type Column, Table, useRows } from '../parts/table'

/** The runs that are chosen: they stay so while one of them is looked at. */
let kept = new Set<string>()

/** The table of all runs: what to look at, and what to compare. */
export function Runs() {
  const [query, setQuery] = useQuery()
  const [typed, type] = useState(query.get('q') ?? '')
  const [where, setWhere] = useState(query.get('where') ?? '')
  const [chosen, choose] = useState(kept)
  const q = useSettled(typed), rule = useSettled(where, 500)
  useEffect(() => { setQuery({ q, where: rule }) }, [q, rule])
  const status = query.get('status') ?? '', sort = query.get('sort') ?? '-updated'
  const own = query.has('col') ? query.getAll('col').filter(Boolean) : null
  const [usual, askUsual] = useUsual()
  const columns = own ?? usual, { metric, meta } = partsOf(columns)
  const rules = rule.split(',').map(s => s.trim()).filter(Boolean)
  const rows = useRows<RunItem>(JSON.stringify([q, rule, status, sort, own]), async (offset, limit, signal) =>
    get<Page<RunItem>>('runs', { q, where: rules, status, sort, ...partsOf(own ?? await askUsual()), offset, limit }, signal))
  const soon = useThrottled(rows.reload, 1000)
  useLive('all', () => url('live'), { run: soon, 'run-gone': soon, reset: soon }, soon)
  useEffect(() => { kept = chosen }, [chosen])
  const select = (slug: string, on: boolean) => {
    const next = new Set(chosen)
    if (on) next.add(slug)
    else next.delete(slug)
    choose(next)
  }
  const first = Array.from({ length: Math.min(10, rows.total ?? 0) }, (_, i) => rows.row(i)?.slug).filter(s => s !== undefined)
  return (
    <>
      <div class="head"><div><h1>Runs</h1></div></div>
      <div class="bar">
        <input type="search" placeholder="Name, description or tag" aria-label="Filter by name, description or tag" value={typed} onInput={e => type(e.currentTarget.value)} />
        <input type="search" placeholder="metric:loss<0.5" aria-label="Conditions, divided by commas" title="KEY, one of = != < <= > >= ~, and a value; several divided by commas. KEY is a path in the metadata, metric:NAME, metric:NAME:min, status, stage …" value={where} onInput={e => setWhere(e.currentTarget.value)} />
        <Choice label="Status" value={status} set={v => setQuery({ status: v })} options={[['', 'All'], ['running', 'Running'], ['done', 'Done'], ['failed', 'Failed']]} />
        <span class="note total" aria-live="polite">{rows.total === null ? '' : `${count(rows.total)} ${rows.total === 1 ? 'run' : 'runs'}`}</span>
        <span class="push" />
        <Columns chosen={columns} set={cols => setQuery({ col: cols.length ? cols : [''] })} />
        <Export name="runs" total={rows.total} page={(offset, limit, signal) => get<Page<RunItem>>('runs', { q, where: rules, status, sort, metric, meta, offset, limit }, signal)} table={items => tableOf(columns.filter(c => c.startsWith('metric:')), meta, items)} />
        {chosen.size > 0 && <button onClick={() => choose(new Set())}>Choose none</button>}
        <button class="primary go" disabled={chosen.size === 1 || first.length < 2} title={chosen.size ? 'Compare the chosen runs' : 'Compare the first runs of the list'} onClick={() => go(at.compare(chosen.size ? [...chosen] : first))}>Compare{chosen.size ? ` ${chosen.size}` : first.length > 1 ? ` first ${first.length}` : ''}</button>
      </div>
      {rows.error && <Failure error={rows.error} retry={rows.reload} />}
      <section class="panel tall">
        <Table label="runs" rows={rows} columns={columnsOf(columns)} id={r => r.slug} href={r => at.run(r.slug)} sort={sort} onSort={s => setQuery({ sort: s })}
          selected={chosen} onSelect={select} empty={q || rule || status
            ? <Empty title="No run matches">Change the filter, or <a class="link" href={at.runs} onClick={() => { type(''); setWhere('') }}>show all runs</a>.</Empty>
            : <Empty title="There are no runs under this root">A run is a file that a training script wrote: see <code>foldlog metrics record --help</code>.</Empty>} />
      </section>
    </>
  )
}

/** The columns of a list for which none were chosen: the metrics that say most. They are known when its rows are. */
function useUsual(): [string[], () => Promise<string[]>] {
  const [usual, setUsual] = useState<string[]>([])
  const asked = useRef<Promise<string[]> | null>(null)
  return [usual, () => asked.current ??= get<Page<NameItem>>('names', { limit: 2000 }).then(n => {
    const found = telling(n.items.map(i => i.name), 2).map(name => 'metric:' + name)
    if (!found.length) asked.current = null
    setUsual(found)
    return found
  }, () => { asked.current = null; return [] })]
}

/** Runs as rows of a table, with the columns that are chosen. */
function tableOf(measures: string[], meta: string[], runs: RunItem[]): Cell[][] {
  return [['run', 'status', ...measures.map(titleOf), ...meta, 'last step', 'points', 'seconds', 'stage', 'failure', 'tags', 'last event'], ...runs.map(r => [
    r.slug, r.status, ...measures.map((m): Cell => measured(r, m) ?? ''), ...meta.map(k => k in r.metadata ? cellOf(r.metadata[k]) : ''),
    r.last_step, Number(r.points), (r.last_ms - r.first_ms) / 1000, r.stage, r.failure, r.tags.join(' '), new Date(r.last_ms).toISOString(),
  ])]
}

/** The heading of a metric's column. */
function titleOf(column: string): string {
  const { name, of } = measureOf(column)
  return of === 'last' ? name : `${of} ${name}`
}

/** Room for a name and the arrow of its order, in pixels. */
const metricWidth = (name: string) => Math.min(165, Math.max(100, Math.ceil(38 + 7.6 * name.length)))

/** The columns of runs; best has the best value of metrics of which it is known what is better. */
export function columnsOf(extra: string[], best?: Map<string, number>): Column<RunItem>[] {
  const own: Column<RunItem>[] = extra.map(key => key.startsWith('metric:') ? {
    key, title: titleOf(key), width: metricWidth(titleOf(key)), right: true, sort: key, down: measureOf(key).of === 'max' || measureOf(key).of === 'last' && betterOf(key.slice(7)) !== 'lower',
    cell: r => {
      const m = r.metrics.find(m => m.name === measureOf(key).name), v = measured(r, key)
      const top = v !== null && best?.get(key) === v
      return m && v !== null ? <span class={top ? 'best' : ''} title={(top ? 'the best of these; ' : '') + (m.min === null ? '' : `from ${value(number(m.min))} to ${value(number(m.max))}`)}>{column(v)}</span> : <span class="muted">–</span>
    },
  } : { key, title: key, width: 130, sort: key, cell: r => key in r.metadata ? <span title={text(r.metadata[key])}>{brief(r.metadata[key])}</span> : <span class="muted">–</span> })
  return [
    { key: 'slug', title: 'Name', width: 190, grow: true, sort: 'slug', cell: r => <><i class="swatch" style={{ background: colorOf(r.slug), marginRight: 9 }} /><a href={at.run(r.slug)}>{r.slug}</a>{r.tags.map(t => <span class="tag" key={t} style={{ marginLeft: 6 }}>{t}</span>)}</> },
    { key: 'status', title: 'Status', width: 112, sort: 'status', cell: r => <RunState run={r} /> },
    ...own,
    { key: 'step', title: 'Step', width: 96, right: true, sort: 'step', down: true, cell: r => <span title={count(r.last_step)}>{count(r.last_step)}</span> },
    { key: 'points', title: 'Points', width: 96, right: true, sort: 'points', down: true, cell: r => count(r.points) },
    { key: 'took', title: 'Time', width: 104, right: true, cell: r => duration(r.last_ms - r.first_ms) },
    { key: 'why', title: 'Stage or failure', width: 150, grow: true, sort: 'failure', cell: r => r.failure ? <span class="bad" title={r.failure}>{r.failure}</span> : r.interrupted ? <span class="warn">stopped by {r.interrupted}</span> : r.stage },
    { key: 'updated', title: 'Last event', width: 118, right: true, sort: 'updated', down: true, cell: r => <Ago ms={r.last_ms} /> },
  ]
}

/** Which metrics and metadata are columns. */
export function Columns({ chosen, set }: { chosen: string[]; set: (cols: string[]) => void }) {
  const [typed, type] = useState('')
  const [open, setOpen] = useState(false)
  const q = useSettled(typed)
  const names = useLoad(open ? 'names ' + q : null, s => get<Page<NameItem>>('names', { q, limit: 60 }, s), true)
  const keys = useLoad(open ? 'keys ' + q : null, s => get<Page<NameItem>>('keys', { q, limit: 60 }, s), true)
  const metric = (n: NameItem) => {
    const key = 'metric:' + n.name, more = chosen.some(c => c.startsWith('metric:') && (c === key || measureOf(c).name === n.name))
    return <>{box(key, n.name, n.runs)}{more && <div class="bar" key={key + ':'} style={{ paddingLeft: 22 }}>{box(key + ':min', 'its lowest')}{box(key + ':max', 'its highest')}</div>}</>
  }
  const box = (key: string, title: string, n?: number) => (
    <label class="check" key={key}><input type="checkbox" checked={chosen.includes(key)} onChange={e => set(e.currentTarget.checked ? [...chosen, key] : chosen.filter(c => c !== key))} /><span>{title}</span>{n !== undefined && <span class="note push">{count(n)}</span>}</label>
  )
  return (
    <span onFocusCapture={() => setOpen(true)} onMouseEnter={() => setOpen(true)}>
      <Menu label={`Columns${chosen.length ? ` ${chosen.length}` : ''}`}>
        <input type="search" placeholder="Find a metric or key" aria-label="Find a metric or key" value={typed} onInput={e => type(e.currentTarget.value)} />
        {names.data && names.data.items.length > 0 && <h2 class="group">Metrics</h2>}
        {names.data?.items.map(metric)}
        {keys.data && keys.data.items.length > 0 && <h2 class="group">Metadata</h2>}
        {keys.data?.items.map(n => box(n.name, n.name, n.runs))}
        {names.data && keys.data && names.data.total + keys.data.total > 120 && <span class="note">There are more: type to find them.</span>}
        {names.data?.total === 0 && keys.data?.total === 0 && <span class="note">Nothing of that name.</span>}
      </Menu>
    </span>
  )
}

