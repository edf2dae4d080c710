import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import { Curves, type Line } from '../../chart/curves'
import { Parallel } from '../../chart/parallel'
import type { Geom } from '../../chart/plot'
import { around, type Axis } from '../../chart/scale'
import { Scatter, type Shape } from '../../chart/scatter'
import { Timeline } from '../../chart/timeline'
import { get, number, numbers, seg } from '../../lib/api'
import { scaleColor, scaleColors } from '../../lib/color'
import { finder } from '../../lib/find'
import { brief, count, duration, moment, plural, value } from '../../lib/format'
import { at, go, useQuery } from '../../lib/router'
import { bestSoFar, type Columns, finite, lower, type ParamAxis, paramAxis, paramNames, ranks, valueOf, withoutOutliers } from '../../lib/study'
import { useTheme } from '../../lib/theme'
import type { Front, Importance, Outbox, StudyDetail, TrialCurves } from '../../lib/types'
import { useLoad, useSeen } from '../../lib/use'
import { Check, Choice, Empty, Panel, Show } from '../../parts/basic'
import { stateOf, stateTone } from './states'
import { axisOf, spread, TwoParams } from './two'

export interface TabProps { study: StudyDetail; columns: Columns; objective: number }

const toneOf = (letter: string, g: Geom) => letter === 'c' ? g.colors.accent : letter === 'r' ? g.colors.live : letter === 'p' ? g.colors.pruned : letter === 'f' ? g.colors.bad : g.colors.muted

const shapeOf: { [state: string]: Shape } = { p: 'ring', f: 'cross' }

export function tipRows(s: StudyDetail, c: Columns, i: number) {
  return {
    title: `trial ${i}, ${stateOf[c.states[i]]}`,
    rows: [
      ...s.metrics.map((m, k) => ({ label: m, value: value(c.values[k]?.[i] ?? NaN), strong: true })),
      ...paramNames(s, c).map(p => [p, valueOf(c.params.get(p), i)] as const).filter(([, v]) => v !== null).slice(0, 10).map(([p, v]) => ({ label: p, value: brief(v) })),
    ],
  }
}

/** Every trial's result in order, and the best so far. */
export function History({ study, columns, objective }: TabProps) {
  const [q, set] = useQuery()
  const log = q.get('log') === '1', all = q.get('outliers') === '1'
  const setLog = (on: boolean) => set({ log: on ? '1' : null }), setAll = (on: boolean) => set({ outliers: on ? '1' : null })
  const down = lower(study, objective)
  const ys = columns.values[objective]
  const best = useMemo(() => bestSoFar(columns, objective, down), [columns, objective])
  const [x, y] = useMemo((): [Axis, Axis] => {
    const shown = finite(ys, i => !log || ys[i] > 0)
    const [lo, hi] = all || log ? [minOf(shown), maxOf(shown)] : withoutOutliers(shown)
    const across: Axis = { min: -1, max: Math.max(10, columns.numbers.length), kind: 'integer', label: 'trial' }
    if (shown.length === 0) return [across, { min: 0, max: 1, kind: 'category' }]
    return [across, around(lo, hi, { log: log && lo > 0 })]
  }, [columns, objective, log, all])
  const color = useCallback((i: number, g: Geom) => toneOf(columns.states[i], g), [columns])
  const shape = useCallback((i: number) => shapeOf[columns.states[i]] ?? 'dot', [columns])
  const strong = useCallback((i: number) => best.at.has(i), [best])
  const line = useMemo(() => ({ ...best, steps: true }), [best])
  const lost = useCallback((i: number) => 'fp'.includes(columns.states[i]), [columns])
  const hidden = useMemo(() => ys.reduce((n, v) => n + (v < y.min || v > y.max ? 1 : 0), 0), [ys, y])
  return (
    <Panel title="History" note={`${study.metrics[objective]}, ${down ? 'lower' : 'higher'} is better`} actions={<><Check on={log} set={setLog}>Log y</Check><Check on={all} set={setAll}>Outliers</Check></>}>
      <Scatter x={x} y={y} xs={columns.numbers} ys={ys} color={color} shape={shape} strong={strong} line={line} lost={lost} height={300} label={`History of ${plural(columns.numbers.length, 'trial')}, best ${value(best.ys.at(-1) ?? NaN)}`}
        tip={i => tipRows(study, columns, i)} open={i => go(at.trial(study.id, i))} />
      <div class="body legend"><span><i class="swatch" style={{ background: 'var(--accent)' }} />complete, and the best so far as a line</span>{columns.states.includes('p') && <span><i class="swatch ring" style={{ color: 'var(--pruned)' }} />pruned</span>}{columns.states.includes('f') && <span><i class="swatch cross" style={{ color: 'var(--bad)' }} />failed</span>}{/[fp]/.test(columns.states) && <span class="muted">at the lower edge if without a value</span>}{y.kind === 'category' && <span class="muted">{log ? 'no trial has a positive value' : 'no trial has a value yet'}</span>}{hidden > 0 && <span class="muted">{plural(hidden, 'outlier')} out of sight</span>}</div>
    </Panel>
  )
}

const minOf = (l: ArrayLike<number>) => { let m = Infinity; for (let i = 0; i < l.length; i++) if (l[i] < m) m = l[i]; return m }
const maxOf = (l: ArrayLike<number>) => { let m = -Infinity; for (let i = 0; i < l.length; i++) if (l[i] > m) m = l[i]; return m }

/** Below this R² importances mean little: study importance says so, too. */
const POORLY = 0.3

function verdict({ explained }: Importance) {
  if (explained === null) return 'All values are the same.'
  if (number(explained) < POORLY) return 'Do not trust this yet: a model of these trials predicts little of others.'
  return `Of what parameters explain by themselves. A model of these trials predicts ${(100 * number(explained)).toFixed(0)} % of the spread of others.`
}

const mostBars = 12

export function ImportanceBars({ study, objective }: TabProps) {
  const [all, setAll] = useState(false)
  const load = useLoad(`importance ${study.id} ${objective}`, s => get<Importance>(`studies/${seg(study.id)}/importance`, { objective }, s), true)
  useEffect(() => {
    if (!load.data?.pending && load.data?.seq === study.seq) return
    const t = setTimeout(load.reload, load.data?.pending ? 400 : 3000)
    return () => clearTimeout(t)
  }, [load.data, study.seq])
  return (
    <Panel title="What matters" note={load.data?.items.length ? load.data.sample < load.data.of ? `from ${count(load.data.sample)} of ${count(load.data.of)} complete trials` : `from ${plural(load.data.of, 'complete trial')}` : undefined}>
      <Show of={load}>{d => d.items.length === 0 ? <Empty title={d.pending ? 'Being computed …' : 'Two complete trials at least are needed'} /> : (
        <>
          <div class="bars">{d.items.slice(0, all ? undefined : mostBars).map(i => <><span class="name" title={i.name}>{i.name}</span><div class="track"><i style={{ width: `${Math.max(0.5, 100 * number(i.share))}%` }} /></div><b class="right">{(100 * number(i.share)).toFixed(0)} %</b></>)}</div>
          {d.items.length > mostBars && <div style={{ padding: '0 16px 12px' }}><button onClick={() => setAll(!all)} aria-expanded={all}>{all ? 'Show fewer' : `Show all ${count(d.items.length)}`}</button></div>}
          <p class="note" style={{ padding: '0 16px 14px' }}>{verdict(d)}</p>
        </>
      )}</Show>
    </Panel>
  )
}

export function Parameters({ study, columns, objective }: TabProps) {
  const names = paramNames(study, columns)
  const theme = useTheme()
  const down = lower(study, objective)
  const rank = useMemo(() => ranks(columns, objective, down), [columns, objective, down])
  const [q, set] = useQuery()
  const find = q.get('m') ?? ''
  const axes = useMemo(() => names.filter(finder(find)).map(n => paramAxis(study, columns, n)), [study.space, columns, find])
  const y = useMemo(() => {
    const [lo, hi] = withoutOutliers(finite(columns.values[objective], i => columns.states[i] === 'c'))
    return around(lo, hi)
  }, [columns, objective])
  const ys = useMemo(() => columns.values[objective].map((v, i) => columns.states[i] === 'c' ? v : NaN), [columns, objective])
  const name = study.metrics[objective]
  const result = useMemo(() => ({ name, at: ys, min: y.min, max: y.max }), [name, ys, y])
  const last = columns.numbers.length
  const color = useMemo(() => { const shade = scaleColors(); return (i: number) => shade(0.15 + 0.85 * i / last) }, [last, theme])
  if (!names.length) return <div class="panel"><Empty title="The trials have no parameters yet" /></div>
  return (
    <>
      {names.length > 8 && <div class="bar"><input type="search" placeholder="Find parameters" aria-label="Find parameters" value={q.get('m') ?? ''} onInput={e => set({ m: e.currentTarget.value })} /><span class="note" aria-live="polite">{count(axes.length)} of {plural(names.length, 'parameter')}</span></div>}
      {axes.length === 0 && <div class="panel"><Empty title="No parameter of that name" /></div>}
      {axes.length > 0 && <Panel title="Parallel coordinates" note="each line is a complete trial, the best are on top; drag along an axis to choose a range">
        <Parallel axes={axes} objective={result} rank={rank} open={i => go(at.trial(study.id, i))} tip={i => tipRows(study, columns, i)} />
      </Panel>}
      {names.length > 1 && <TwoParams study={study} columns={columns} objective={objective} names={names} rank={rank} />}
      <div class="charts">
        {axes.map(a => <Slice key={a.name} axis={a} y={y} ys={ys} color={color} study={study} columns={columns} objective={objective} />)}
      </div>
      <p class="note">Later trials are drawn {theme === 'dark' ? 'brighter' : 'darker'}.</p>
    </>
  )
}

/** Results by one parameter, drawn when it comes into sight. */
function Slice({ axis: a, y, ys, color, study, columns, objective }: TabProps & { axis: ParamAxis; y: Axis; ys: Float64Array; color: (i: number) => string }) {
  const [ref, seen] = useSeen<HTMLDivElement>()
  const x = useMemo(() => axisOf(a), [a]), xs = useMemo(() => spread(a), [a])
  return (
    <Panel title={a.name} note={a.log ? 'logarithmic' : undefined}>
      <div ref={ref} style={{ minHeight: 228 }}>{seen && <Scatter x={x} y={y} xs={xs} ys={ys} color={color} height={220} label={`${study.metrics[objective]} by ${a.name}`} tip={i => tipRows(study, columns, i)} open={i => go(at.trial(study.id, i))} />}</div>
    </Panel>
  )
}

export function FrontTab({ study, columns }: TabProps) {
  const [q, set] = useQuery()
  const axis = (key: string, first: number) => { const k = Number(q.get(key) ?? first); return k in study.metrics ? k : first }
  const a = axis('across', 0), b = axis('up', 1)
  const load = useLoad(`front ${study.id}`, s => get<Front>(`studies/${seg(study.id)}/front`, {}, s), true)
  useEffect(() => {
    if (!load.data?.pending && load.data?.seq === study.seq) return
    const t = setTimeout(load.reload, load.data?.pending ? 400 : 3000)
    return () => clearTimeout(t)
  }, [load.data, study.seq])
  const front = useMemo(() => new Set(load.data?.items.map(i => i.number)), [load.data])
  const done = (k: number) => columns.values[k].map((v, i) => columns.states[i] === 'c' ? v : NaN)
  const [xs, ys, x, y] = useMemo(() => {
    const xs = done(a), ys = done(b), [x0, x1] = withoutOutliers(xs), [y0, y1] = withoutOutliers(ys)
    return [xs, ys, { ...around(x0, x1), label: study.metrics[a] } as Axis, { ...around(y0, y1), label: study.metrics[b] } as Axis]
  }, [columns, a, b])
  const color = useCallback((i: number, g: Geom) => front.has(i) ? g.colors.accent : g.colors.muted, [front])
  const strong = useCallback((i: number) => front.has(i), [front])
  const pick = study.metrics.map((m, i) => [String(i), m] as [string, string])
  return (
    <Panel title="Pareto front" note={load.data ? `${plural(load.data.total, 'trial')} that no other is better than in everything` : 'being computed …'}
      actions={study.metrics.length > 2 && <><Choice label="Across" options={pick} value={String(a)} set={across => set({ across })} /><Choice label="Up" options={pick} value={String(b)} set={up => set({ up })} /></>}>
      <Scatter x={x} y={y} xs={xs} ys={ys} color={color} strong={strong} height={420} label={`Pareto front of ${study.metrics[a]} and ${study.metrics[b]}`} tip={i => tipRows(study, columns, i)} open={i => go(at.trial(study.id, i))} />
      <div class="body legend"><span><i class="swatch" style={{ background: 'var(--accent)' }} />on the front</span><span><i class="swatch" style={{ background: 'var(--muted)' }} />other complete trials</span><span class="muted">{study.metrics.map((m, i) => `${m}: ${study.directions[i] === 'maximize' ? 'higher' : 'lower'} is better`).join('; ')}</span></div>
    </Panel>
  )
}

export function CurvesTab({ study, columns, objective }: TabProps) {
  const [q, set] = useQuery()
  const limit = ['30', '500'].includes(q.get('most') ?? '') ? q.get('most')! : '100', log = q.get('log') === '1'
  const theme = useTheme()
  const load = useLoad(`curves ${study.id} ${objective} ${limit} ${study.seq}`, s => get<TrialCurves>(`studies/${seg(study.id)}/curves`, { objective, limit: Number(limit), points: 200 }, s), true)
  const rank = useMemo(() => ranks(columns, objective, lower(study, objective)), [columns, objective])
  const lines = useMemo(() => (load.data?.items ?? []).map((t): Line => ({
    key: String(t.number), label: `trial ${t.number} ${t.state}`, xs: numbers(t.steps), ys: numbers(t.values), dash: t.state === 'pruned' ? [4, 3] : [], dim: t.state === 'pruned' || t.state === 'failed',
    color: t.state === 'running' ? (theme === 'dark' ? '#7fb0ff' : '#2563d9') : t.state === 'failed' ? (theme === 'dark' ? '#ff8177' : '#c0342b') : scaleColor(Number.isNaN(rank[t.number]) ? 0.3 : rank[t.number]),
  })).sort((a, b) => rank[Number(a.key)] - rank[Number(b.key)] || 0), [load.data, rank, theme])
  return (
    <Panel title="Intermediate values" note={load.data ? `the newest ${plural(load.data.items.length, 'trial')} that reported` : undefined}
      actions={<><Check on={log} set={on => set({ log: on ? '1' : null })}>Log y</Check><Choice label="How many" options={[['30', '30'], ['100', '100'], ['500', '500']]} value={limit} set={most => set({ most: most === '100' ? null : most })} /></>}>
      <Show of={load}>{d => d.items.length === 0 ? <Empty title="No trial has reported a value yet">A trial reports with <code>foldlog study report</code>, or by what its command prints.</Empty>
        : <Curves lines={lines} label={`Intermediate ${study.metrics[objective]} of ${plural(d.items.length, 'trial')}`} height={400} logY={log} xLabel={study.unit || 'step'} />}</Show>
      <div class="body legend"><span><i class="swatch" style={{ background: scaleColor(1) }} />best</span><span><i class="swatch" style={{ background: scaleColor(0.05) }} />worst</span><span class="muted">pruned trials are dashed</span></div>
    </Panel>
  )
}

export function TimelineTab({ study, columns }: TabProps) {
  return (
    <Panel title="Timeline" note="each bar is a trial, each row a worker; drag to zoom">
      <Timeline columns={columns} open={i => go(at.trial(study.id, i))}
        tip={i => ({ title: `trial ${i}, ${stateOf[columns.states[i]]}`, rows: [{ label: 'began', value: moment(columns.started[i]) }, { label: 'took', value: columns.ended[i] ? duration(columns.ended[i] - columns.started[i]) : 'still running' }, ...study.metrics.map((m, k) => ({ label: m, value: value(columns.values[k][i]) }))] })} />
      <div class="body legend">{Object.entries(stateTone).filter(([s]) => s !== 'waiting' && study.states[s as keyof typeof study.states] > 0).map(([s, tone]) => <span key={s}><i class={s === 'pruned' ? 'swatch half' : s === 'failed' ? 'swatch cross' : 'swatch'} style={{ [s === 'failed' ? 'color' : 'background']: `var(--${tone})` }} />{s}</span>)}</div>
    </Panel>
  )
}

export function OutboxTab({ study }: TabProps) {
  const load = useLoad(`outbox ${study.id} ${study.seq}`, s => get<Outbox>(`studies/${seg(study.id)}/outbox`, {}, s), true)
  return (
    <Panel title="Outbox" note="what is still to be done after trials ended, such as a retry">
      <Show of={load}>{d => d.items.length === 0 ? <Empty title="Everything has been delivered" /> : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Outbox"><table class="plain">
          <thead><tr><th>Trial</th><th>Epoch</th><th>Next</th><th>Effects</th></tr></thead>
          <tbody>{d.items.map(i => <tr key={i.number + i.epoch}><td><a class="link" href={at.trial(study.id, i.number)}>{i.number}</a></td><td>{i.epoch}</td><td>{i.phase}</td><td>{i.effects.map(e => `${e.name}${e.done ? ' ✓' : ''}`).join(', ')}</td></tr>)}</tbody>
        </table>{d.total > d.items.length && <p class="note" style={{ padding: 12 }}>The first {count(d.items.length)} of {count(d.total)}.</p>}</div>
      )}</Show>
    </Panel>
  )
}
