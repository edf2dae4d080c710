import { useMemo } from 'preact/hooks'
import { Curves, type Line } from '../../chart/curves'
import { ApiError, bytesOf, get, number, seg, url } from '../../lib/api'
import { colorsOf } from '../../lib/color'
import { count, plural, value } from '../../lib/format'
import { useLive, useThrottled } from '../../lib/live'
import { at, useQuery } from '../../lib/router'
import { bestSoFar, type Columns, finite, lower, packedType, unpacked } from '../../lib/study'
import { useTheme } from '../../lib/theme'
import type { StudyDetail } from '../../lib/types'
import { useLoad } from '../../lib/use'
import { Choice, Empty, Panel, Show } from '../../parts/basic'
import { shares } from './spread'

/** A study among others, and whether it can be drawn beside the first one. */
interface Side { study: StudyDetail; columns: Columns; label: string; alike: boolean }

const mostSides = 20

async function read(id: string, signal: AbortSignal): Promise<[StudyDetail, Columns] | null> {
  try {
    return await Promise.all([get<StudyDetail>('studies/' + seg(id), {}, signal), bytesOf(`studies/${seg(id)}/columns`, packedType, signal).then(unpacked)])
  } catch (e) {
    if (e instanceof ApiError && e.status === 404) return null
    throw e
  }
}

function sidesOf(list: [StudyDetail, Columns][]): Side[] {
  const single = list.find(([s]) => s.directions.length === 1)?.[0]
  return list.map(([study, columns]) => ({
    study, columns, label: list.some(([o]) => o.id !== study.id && o.name === study.name) ? `${study.name}, ${study.journal}` : study.name,
    alike: study.directions.length === 1 && study.directions[0] === single?.directions[0],
  }))
}

/** Studies beside each other: how soon each came to what, and how its trials lie. */
export function CompareStudies() {
  const [q, set] = useQuery()
  const ids = [...new Set(q.getAll('study'))].slice(0, mostSides)
  const load = useLoad(ids.length ? 'sides ' + ids.join() : null, s => Promise.all(ids.map(id => read(id, s))), true)
  const soon = useThrottled(load.reload, 3000)
  useLive('all', () => url('live'), { study: (s: { id: string }) => { if (ids.includes(s.id)) soon() }, reset: soon }, soon)
  const sides = useMemo(() => sidesOf((load.data ?? []).filter(s => s !== null)), [load.data])
  const drawn = sides.filter(s => s.alike), missing = load.data ? load.data.filter(s => s === null).length : 0
  const clock = q.get('x') === 'relative'
  return (
    <>
      <div class="head"><div><div class="crumbs"><a href={at.studies}>Studies</a></div><h1>Compare {plural(ids.length, 'study', 'studies')}</h1></div></div>
      {!ids.length && <div class="panel"><Empty title="No studies chosen">Choose some in <a class="link" href={at.studies}>the list of studies</a>.</Empty></div>}
      {missing > 0 && <div class="banner">{plural(missing, 'study is', 'studies are')} not under this root.</div>}
      {ids.length > 0 && <Show of={load} height={420}>{() => (
        <>
          <Standing sides={sides} />
          {drawn.length > 0 && <>
            <div class="bar"><Choice label="Axis" value={clock ? 'relative' : 'trial'} set={x => set({ x: x === 'trial' ? null : x })} options={[['trial', 'Trial'], ['relative', 'Elapsed']]} /></div>
            <div class="charts"><Progress sides={drawn} clock={clock} /><Spread sides={drawn} /></div>
          </>}
        </>
      )}</Show>}
    </>
  )
}

const inkOf = (sides: Side[]) => { const inks = colorsOf(sides.map(s => s.label)); return (s: Side) => ({ ...inks.get(s.label)!, key: s.study.id, label: s.label }) }

/** The best so far in steps, trial by trial or by when they ended. */
function stepsOf({ study, columns: c }: Side, clock: boolean): { xs: number[]; ys: number[] } {
  const down = lower(study, 0), v = c.values[0], xs: number[] = [], ys: number[] = []
  const done = [...c.numbers.keys()].filter(i => c.states[i] === 'c' && Number.isFinite(v[i]) && (!clock || c.ended[i] > 0))
  if (clock) done.sort((a, b) => c.ended[a] - c.ended[b])
  const began = c.started.reduce((least, t) => t > 0 && t < least ? t : least, Infinity), place = (i: number) => clock ? c.ended[i] - began : i
  for (const i of done) {
    const last = ys[ys.length - 1]
    if (ys.length && !(down ? v[i] < last : v[i] > last)) continue
    if (ys.length) { xs.push(place(i)); ys.push(last) }
    xs.push(place(i)); ys.push(v[i])
  }
  if (done.length > 1) { xs.push(place(done[done.length - 1])); ys.push(ys[ys.length - 1]) }
  return { xs, ys }
}

function Progress({ sides, clock }: { sides: Side[]; clock: boolean }) {
  const theme = useTheme()
  const lines = useMemo(() => {
    const ink = inkOf(sides)
    return sides.map((s): Line => ({ ...ink(s), ...stepsOf(s, clock) }))
  }, [sides, clock, theme])
  const metric = sides[0].study.metrics[0]
  return <Panel title="Best so far" note={`${metric}, ${lower(sides[0].study, 0) ? 'lower' : 'higher'} is better`}><Curves lines={lines} xKind={clock ? 'relative' : 'value'} xLabel={clock ? undefined : 'trial'} height={300} label={`Best ${metric} so far of ${plural(sides.length, 'study', 'studies')}`} /></Panel>
}

function Spread({ sides }: { sides: Side[] }) {
  const theme = useTheme()
  const lines = useMemo(() => {
    const ink = inkOf(sides)
    return sides.map((s): Line => ({ ...ink(s), ...shares(finite(s.columns.values[0], i => s.columns.states[i] === 'c'), lower(s.study, 0)) }))
  }, [sides, theme])
  const metric = sides[0].study.metrics[0]
  return <Panel title="Distribution" note={`percent of the complete trials with that ${metric} or a ${lower(sides[0].study, 0) ? 'lower' : 'higher'} one`}><Curves lines={lines} xKind="value" xLabel={metric} height={300} label={`Distributions of ${metric}`} /></Panel>
}

/** Where each study stands; and when it was as good as the poorest of them is. */
function Standing({ sides }: { sides: Side[] }) {
  useTheme()
  const drawn = sides.filter(s => s.alike), ink = inkOf(sides)
  const bests = drawn.map(s => s.study.best ? number(s.study.best.values[0]) : NaN).filter(v => !Number.isNaN(v))
  const down = drawn.length > 0 && lower(drawn[0].study, 0), top = down ? Math.min(...bests) : Math.max(...bests), target = down ? Math.max(...bests) : Math.min(...bests)
  const reached = (s: Side) => { const b = bestSoFar(s.columns, 0, down), k = b.ys.findIndex(v => down ? v <= target : v >= target); return k < 0 ? null : b.xs[k] }
  return (
    <section class="panel"><div class="scroll" tabIndex={0} role="region" aria-label="Studies"><table class="plain">
      <thead><tr><th>Study</th><th class="right">Best</th><th class="right">{bests.length > 1 ? `Reached ${value(target)} at` : 'Reached at'}</th><th class="right">Complete</th><th class="right">Failed</th><th>Sampler</th></tr></thead>
      <tbody>{sides.map(s => {
        const best = s.alike && s.study.best ? number(s.study.best.values[0]) : NaN, first = s.alike ? reached(s) : null
        return (
          <tr key={s.study.id}>
            <td><i class="swatch" style={{ background: s.alike ? ink(s).color : 'var(--line)', marginRight: 9 }} /><a href={at.study(s.study.id)}>{s.label}</a>{!s.alike && <span class="note"> {s.study.directions.length > 1 ? 'several objectives: not drawn' : 'another direction: not drawn'}</span>}</td>
            <td class="right">{Number.isNaN(best) ? '–' : <span class={best === top && bests.length > 1 ? 'best' : ''}>{value(best)}</span>}</td>
            <td class="right">{first === null ? '–' : <a class="link" href={at.trial(s.study.id, first)}>trial {count(first)}</a>}</td>
            <td class="right">{count(s.study.states.complete)}</td><td class="right">{count(s.study.states.failed)}</td><td class="short">{s.study.sampler}</td>
          </tr>
        )
      })}</tbody>
    </table></div></section>
  )
}
