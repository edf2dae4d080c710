import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import { Curves, type Line } from '../chart/curves'
import { get, post, url } from '../lib/api'
import { type Along, alongOf, placed } from '../lib/along'
import { colorAt, colorsOf, type Ink } from '../lib/color'
import { finder } from '../lib/find'
import { count, plural, text as textOf, value } from '../lib/format'
import { groupedLines } from '../lib/groups'
import { useLive, useThrottled } from '../lib/live'
import { usePins } from '../lib/pins'
import { at, useQuery } from '../lib/router'
import { betterOf, groupsOf, measured, measureOf, partsOf, piecesOf } from '../lib/runs'
import type { Diff, NameItem, Page, RunItem, RunSeries } from '../lib/types'
import { useLoad, useNow, useSeen, useSettled } from '../lib/use'
import { useTheme } from '../lib/theme'
import { Check, Copy, Empty, Failure, lifeOf, Menu, Panel, Pin, RunState, Show, Tabs } from '../parts/basic'
import { ChartBar, useChartSettings } from '../parts/settings'
import { fixedRows, Table } from '../parts/table'

import { Columns, columnsOf } from './runs'

import { RunParams } from './compare/params'
import type { ChartSettings } from './run/chart'

export function Compare() {
  const [s, set, q] = useChartSettings()
  const slugs = q.getAll('run').slice(0, 1000)
  const hidden = new Set(q.getAll('hide'))
  const [strong, setStrong] = useState<string | null>(null)
  const [version, setVersion] = useState(0)
  const theme = useTheme()
  const key = slugs.join('\0')
  const colors = useMemo(() => colorsOf(slugs), [key, theme])
  const names = useLoad(slugs.length ? 'names ' + key : null, sig => get<Page<NameItem>>('names', { run: slugs, limit: 5000 }, sig), true)
  const known = useLoad(slugs.length ? 'known ' + key : null, sig => get<Page<RunItem>>('runs', { slug: slugs, limit: 1000 }, sig), true)
  useEffect(() => { if (version > 0) known.reload() }, [version])
  const soon = useThrottled(() => setVersion(v => v + 1), 1000)
  const changed = (r: { slug: string }) => { if (slugs.includes(r.slug)) soon() }
  useLive('all', () => url('live'), { run: changed, reset: soon }, soon)
  const tab = q.get('tab') ?? 'curves'
  const shown = slugs.filter(r => !hidden.has(r))
  const groups = useGroups(slugs, q.get('group') ?? '', theme)
  if (!slugs.length) return <><div class="head"><div><h1>Compare runs</h1></div><RunMenu slugs={slugs} set={run => set({ run })} /></div><div class="panel"><Empty title="No runs chosen">Choose some in <a class="link" href={at.runs}>the list of runs</a>.</Empty></div></>
  const toggle = (slug: string) => {
    const next = new Set(hidden)
    if (!next.delete(slug)) next.add(slug)
    set({ hide: [...next] })
  }
  return (
    <>
      <div class="head"><div><div class="crumbs"><a href={at.runs}>Runs</a></div><h1>Compare {plural(slugs.length, 'run')}</h1></div><RunMenu slugs={slugs} set={run => set({ run, hide: [...hidden].filter(h => run.includes(h)) })} /></div>
      <div class="legend long" role="group" aria-label="Runs">
        {slugs.slice(0, 40).map(slug => (
          groups ? null : <span key={slug} onMouseEnter={() => setStrong(slug)} onMouseLeave={() => setStrong(null)} style={{ opacity: hidden.has(slug) ? 0.45 : 1 }}>
            <button aria-pressed={!hidden.has(slug)} aria-label={`Show ${slug}`} title={hidden.has(slug) ? 'Show' : 'Hide'} onClick={() => toggle(slug)} onFocus={() => setStrong(slug)} onBlur={() => setStrong(null)}><Stroke color={hidden.has(slug) ? 'var(--faint)' : colors.get(slug)!.color} dash={colors.get(slug)!.dash} /></button>
            <a href={at.run(slug)} class="clip">{slug}</a><Fate known={known.data} slug={slug} />
          </span>
        ))}
        {groups && [...groups.colors].map(([g, color]) => <span key={g} onMouseEnter={() => setStrong(`group ${g}`)} onMouseLeave={() => setStrong(null)}><Stroke color={color} dash={[]} />{g} <span class="note">{plural([...groups.of.values()].filter(v => v === g).length, 'run')}</span></span>)}
        {!groups && slugs.length > 40 && <span class="note">and {slugs.length - 40} more: point at a curve for its name</span>}
      </div>
      <Tabs label="Parts of the comparison" current={tab} onPick={t => set({ tab: t === 'curves' ? null : t })} tabs={[['curves', 'Curves', names.data ? count(names.data.total) : ''], ['params', 'Parameters'], ['table', 'Table'], ['diff', 'Metadata']]} />
      {tab === 'params' ? <RunParams slugs={slugs} version={version} /> : tab === 'table' ? <RunTable slugs={slugs} version={version} /> : tab === 'diff' ? <Differences slugs={slugs} /> : (
        <>
          <ChartBar s={s} set={set} q={q} names={(names.data?.items ?? []).map(i => i.name)}><GroupBy slugs={slugs} value={q.get('group') ?? ''} set={group => set({ group })} /></ChartBar>
          <Show of={names}>{n => <Overlays names={n.items.map(i => i.name)} slugs={shown} colors={colors} groups={groups} s={s} q={q} set={set} strong={strong} onStrong={setStrong} version={version} />}</Show>
        </>
      )}
    </>
  )
}

/** Which runs are compared. */
function RunMenu({ slugs, set }: { slugs: string[]; set: (slugs: string[]) => void }) {
  const [typed, type] = useState('')
  const [open, setOpen] = useState(false)
  const q = useSettled(typed)
  const found = useLoad(open ? 'choose ' + q : null, s => get<Page<RunItem>>('runs', { q, limit: 60 }, s), true)
  const offered = [...new Set([...(q ? [] : slugs.slice(0, 60)), ...(found.data?.items ?? []).map(r => r.slug)])]
  return (
    <span onFocusCapture={() => setOpen(true)} onMouseEnter={() => setOpen(true)}>
      <Menu label="Choose runs">
        <input type="search" placeholder="Find runs" aria-label="Find runs" value={typed} onInput={e => type(e.currentTarget.value)} />
        {offered.map(slug => <Check key={slug} on={slugs.includes(slug)} set={on => set(on ? [...slugs, slug] : slugs.filter(s => s !== slug))}><span>{slug}</span></Check>)}
        {found.data && found.data.total > found.data.items.length && <span class="note">There are more: type to find them.</span>}
        {found.data?.total === 0 && <span class="note">Nothing of that name.</span>}
      </Menu>
    </span>
  )
}

interface Groups { of: Map<string, string>; colors: Map<string, string> }

/** The runs by their value of a key of the metadata, each value with a colour. */
function useGroups(slugs: string[], key: string, theme: string): Groups | null {
  const runs = useLoad(key ? ['group', key, ...slugs].join('\0') : null, s => get<Page<RunItem>>('runs', { slug: slugs, meta: [key], limit: 1000 }, s), true)
  return useMemo(() => {
    if (!key || !runs.data) return null
    const of = new Map(runs.data.items.map(r => [r.slug, `${key} ${key in r.metadata ? textOf(r.metadata[key]) : 'not there'}`]))
    const values = [...new Set(of.values())].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }))
    return { of, colors: new Map(values.map((v, i) => [v, colorAt(i)])) }
  }, [key, runs.data, theme])
}

/** By what runs can be grouped: in what they differ. */
function GroupBy({ slugs, value, set }: { slugs: string[]; value: string; set: (key: string | null) => void }) {
  const some = slugs.slice(0, 20)
  const diff = useLoad('diff false' + some.join('\0'), s => get<Diff>('diff', { run: some, all: false }, s), true)
  const keys = [...new Set([...(value ? [value] : []), ...(diff.data?.rows ?? []).filter(r => !r.same && r.values.every(v => v.length < 80)).map(r => r.path)])]
  return <label>Group by<select value={value} onChange={e => set(e.currentTarget.value || null)} style={{ maxWidth: 200 }}><option value="">nothing</option>{keys.map(k => <option key={k}>{k}</option>)}</select></label>
}

/** What is to be known of a run beside its curves: that it goes on, did not end well, or is not there. */
function Fate({ known, slug }: { known: Page<RunItem> | null; slug: string }) {
  const now = useNow()
  const run = known?.items.find(r => r.slug === slug)
  if (!known || run && lifeOf(run, now) === 'done') return null
  return run ? <RunState run={run} /> : <span class="note">not under this root</span>
}

/** The line of a run as charts draw it. */
function Stroke({ color, dash }: { color: string; dash: number[] }) {
  return <svg width="20" height="12" viewBox="0 0 20 12" aria-hidden="true" style={{ flex: 'none' }}><path d="M1 6h18" stroke={color} stroke-width="3" stroke-dasharray={dash.join(' ')} /></svg>
}

interface OverlayProps { slugs: string[]; colors: Map<string, Ink>; groups: Groups | null; s: ChartSettings; strong: string | null; onStrong: (key: string | null) => void; version: number }

function Overlays({ names, q, set, ...p }: OverlayProps & { names: string[]; q: URLSearchParams; set: ReturnType<typeof useQuery>[1] }) {
  const find = q.get('m') ?? '', full = q.get('chart')
  const zoom = useCallback((from: number, to: number) => set({ from: String(from), to: String(to) }), [])
  const reset = useCallback(() => set({ from: null, to: null }), [])
  const [pins, pin] = usePins(q, set)
  const found = names.filter(finder(find)), first = pins.filter(p => found.includes(p))
  const list = [...first, ...groupsOf(found.filter(n => !first.includes(n))).flatMap(g => g[1])]
  const along = useAlong(p.slugs, p.s.along, p.version)
  if (!list.length) return <div class="panel"><Empty title={find ? 'No metric of that name' : 'These runs have no points yet'} /></div>
  return (
    <div class="charts">
      {list.map(name => <Overlay key={name} {...p} along={along} name={name} full={full === name || list.length === 1} onFull={() => set({ chart: full === name ? null : name })} pinned={pins.includes(name)} onPin={() => pin(name)} zoom={zoom} reset={reset} />)}
    </div>
  )
}

/** Where the steps of each run lie along a metric. */
function useAlong(slugs: string[], name: string, version: number): Map<string, Along> | null {
  const body = { runs: slugs, names: [name], points: Math.max(150, Math.min(3000, Math.floor(60000 / Math.max(1, slugs.length)))), newest: true, axis: 'step' }
  const load = useLoad(name && slugs.length ? JSON.stringify(body) : null, sig => post<{ runs: RunSeries[] }>('series', body, sig), true)
  useEffect(() => { if (version > 0) load.reload() }, [version])
  return useMemo(() => name && load.data ? new Map(load.data.runs.map(r => [r.slug, alongOf(r.curves.flatMap(piecesOf))])) : null, [name, load.data])
}

function Overlay(p: OverlayProps & { along: Map<string, Along> | null; name: string; full: boolean; onFull: () => void; pinned: boolean; onPin: () => void; zoom: (a: number, b: number) => void; reset: () => void }) {
  const [ref, seen] = useSeen<HTMLElement>()
  const { s } = p
  const points = Math.max(150, Math.min(1200, Math.floor((p.full ? 60000 : 30000) / Math.max(1, p.slugs.length))))
  const axis = s.x === 'step' || s.along ? 'step' : 'time'
  const zoomed = s.x === 'relative' || s.along ? null : s.range
  const body = { runs: p.slugs, names: [p.name], points, newest: true, axis, ...(zoomed ? { from: Math.floor(zoomed[0]), to: Math.ceil(zoomed[1]) } : {}) }
  const key = JSON.stringify(body)
  const load = useLoad(seen && p.slugs.length ? key : null, sig => post<{ runs: RunSeries[] }>('series', body, sig), true)
  useEffect(() => { if (p.version > 0) load.reload() }, [p.version])
  const lines = useMemo(() => {
    const each = load.data ? overlayLines(load.data.runs, p.colors, s.x, p.along) : []
    return p.groups ? groupedLines(each, slug => p.groups!.of.get(slug) ?? 'other', p.groups.colors) : each
  }, [load.data, p.colors, p.groups, p.along, s.x])
  const best = useMemo(() => load.data ? bestRun(load.data.runs, p.name) : null, [load.data, p.name])
  const curves = load.data?.runs.flatMap(r => r.curves) ?? []
  const sampled = curves.some(c => c.sampled), total = curves.reduce((n, c) => n + Number(c.total), 0)
  const height = p.full ? 420 : 230
  return (
    <section class={p.full ? 'panel chart full' : 'panel chart'} ref={ref} aria-label={p.name}>
      <header><h2 title={p.name}>{p.name}</h2><span class="note">{load.data ? plural(curves.length, 'run') : ''}</span>
        <div class="actions" style={{ gap: 0 }}><Pin name={p.name} on={p.pinned} toggle={p.onPin} /><button class="icon" aria-pressed={p.full} onClick={p.onFull} aria-label={`${p.name} larger`} title="Larger"><svg width="15" height="15" viewBox="0 0 16 16"><path d={p.full ? 'M13 3L9.5 6.5M9.5 3.5v3h3M3 13l3.5-3.5M6.5 12.5v-3h-3' : 'M9.5 6.5L13 3M10 3h3v3M6.5 9.5L3 13M3 10v3h3'} /></svg></button></div></header>
      {load.error && !load.data ? <Failure error={load.error} retry={load.reload} />
        : seen ? <Curves lines={lines} label={`${p.name} of ${plural(curves.length, 'run')}`} height={height} xKind={s.x} xLabel={s.along || undefined} logX={s.logX} logY={s.logY} clip={s.clip} smooth={s.smooth} range={s.range} strong={p.strong} zoom={p.zoom} reset={p.reset} />
        : <div style={{ height }} />}
      <footer>{best && <span class="best-run" onMouseEnter={() => p.onStrong(best.slug)} onMouseLeave={() => p.onStrong(null)}><span>best last value <b>{value(best.last)}</b></span><Stroke color={p.colors.get(best.slug)?.color ?? '#888'} dash={p.colors.get(best.slug)?.dash ?? []} /><a class="clip" href={at.run(best.slug)}>{best.slug}</a></span>}{load.data && (sampled ? <span>sampled from {count(total)} points{s.along ? '' : ', zoom for detail'}</span> : <span>{plural(total, 'point')}</span>)}{lines.some(l => l.spread) && <span>bands: one standard deviation</span>}</footer>
    </section>
  )
}

/** The run whose last value is the best of several, if the name of the metric tells what is better. */
function bestRun(runs: RunSeries[], name: string): { slug: string; last: number } | null {
  const better = betterOf(name), found: { slug: string; last: number }[] = []
  for (const r of runs) {
    let at = -1, last = NaN
    for (const p of r.curves.flatMap(piecesOf)) {
      const i = p.values.length - 1
      if (i >= 0 && !p.older && p.times[i] >= at) { at = p.times[i]; last = p.values[i] }
    }
    if (Number.isFinite(last)) found.push({ slug: r.slug, last })
  }
  if (!better || found.length < 2) return null
  return found.reduce((a, b) => (better === 'lower' ? b.last < a.last : b.last > a.last) ? b : a)
}

function overlayLines(runs: RunSeries[], colors: Map<string, Ink>, x: ChartSettings['x'], along: Map<string, Along> | null): Line[] {
  return runs.flatMap(r => r.curves.flatMap(c => {
    const pieces = piecesOf(c)
    const across = { kind: x, first: Math.min(...pieces.map(p => p.times[0])), along: along?.get(r.slug) }
    const series = [...new Set(pieces.map(p => p.series))]
    return pieces.map(p => ({ key: r.slug, label: r.slug, color: colors.get(r.slug)?.color ?? '#888', ...placed(p, across), dash: series.indexOf(p.series) > 0 ? [4, 3] : colors.get(r.slug)?.dash }))
  }))
}

function RunTable({ slugs, version }: { slugs: string[]; version: number }) {
  const [q, set] = useQuery()
  const chosen = q.getAll('col')
  const names = useLoad('first ' + slugs.join('\0'), s => get<Page<NameItem>>('names', { run: slugs, limit: 6 }, s))
  const cols = chosen.length ? chosen : (names.data?.items ?? []).map(n => 'metric:' + n.name)
  const sort = q.get('sort') ?? '', key = JSON.stringify([slugs, cols, sort])
  const { metric, meta } = partsOf(cols)
  const list = useLoad(key, s => get<Page<RunItem>>('runs', { slug: slugs, sort, metric, meta, limit: 1000 }, s), true)
  useEffect(() => { if (version > 0) list.reload() }, [version])
  return (
    <>
      <div class="bar"><span class="push" /><Columns chosen={chosen} set={c => set({ col: c })} /></div>
      <section class="panel"><Show of={list}>{page => <Table label="compared runs" rows={fixedRows(page.items)} columns={columnsOf(cols, bestOf(page.items, cols.filter(c => c.startsWith('metric:'))))} id={r => r.slug} href={r => at.run(r.slug)} sort={sort} onSort={v => set({ sort: v })} height={700} />}</Show></section>
    </>
  )
}

/** The best last value of each metric of which its name tells what is better. */
function bestOf(runs: RunItem[], columns: string[]): Map<string, number> {
  const out = new Map<string, number>()
  for (const column of columns) {
    const better = betterOf(measureOf(column).name), values = runs.map(r => measured(r, column) ?? NaN).filter(Number.isFinite)
    if (better && values.length > 1) out.set(column, better === 'lower' ? Math.min(...values) : Math.max(...values))
  }
  return out
}

function Differences({ slugs }: { slugs: string[] }) {
  const [q, set] = useQuery()
  const all = q.get('same') === '1', setAll = (on: boolean) => set({ same: on ? '1' : null })
  const runs = slugs.slice(0, 20)
  const diff = useLoad('diff ' + all + runs.join('\0'), s => get<Diff>('diff', { run: runs, all }, s), true)
  const rows = diff.data?.rows ?? []
  const text = () => ['', ...diff.data!.runs].join('\t') + '\n' + rows.map(r => [r.path, ...r.values].join('\t')).join('\n')
  return (
    <Panel title="Metadata" note={diff.data ? `${plural(rows.filter(r => !r.same).length, 'difference')}${slugs.length > 20 ? ', of the first 20 runs' : ''}` : undefined}
      actions={<><Check on={all} set={setAll}>What they share too</Check>{diff.data && <Copy text={text()} label="Copy the table" />}</>}>
      <Show of={diff}>{d => d.rows.length === 0 ? <Empty title="These runs do not differ in their metadata" /> : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Metadata"><table class="plain">
          <thead><tr><th>Key</th>{d.runs.map(r => <th key={r}><a href={at.run(r)}>{r}</a></th>)}</tr></thead>
          <tbody>{d.rows.map(r => (
            <tr key={r.path} class={all && !r.same ? 'differs' : ''}><td class="muted">{r.path}</td>{r.values.map((v, i) => <td key={i} class={v.length < 16 ? 'mono short' : 'mono'}>{r.has[i] ? shorten(v) : <span class="muted">–</span>}</td>)}</tr>
          ))}</tbody>
        </table></div>
      )}</Show>
    </Panel>
  )
}

const shorten = (v: string) => v.length > 200 ? v.slice(0, 199) + '…' : v
