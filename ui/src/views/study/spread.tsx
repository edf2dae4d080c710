import { useCallback, useMemo } from 'preact/hooks'
import { Curves, type Line } from '../../chart/curves'
import { around, type Axis } from '../../chart/scale'
import { Scatter } from '../../chart/scatter'
import { colorsOfPage } from '../../chart/plot'
import { count, plural, value } from '../../lib/format'
import { at, go } from '../../lib/router'
import { finite, lower } from '../../lib/study'
import { useTheme } from '../../lib/theme'
import { type Growth, volumes } from '../../lib/volume'
import { Empty, Panel } from '../../parts/basic'
import { type TabProps, tipRows } from './tabs'

const mostPlaces = 800, fewestToHalve = 10

/** The share of values, in percent, that are at least as good as each of them. */
export function shares(values: Float64Array, down: boolean): { xs: number[]; ys: number[] } {
  const sorted = values.slice().sort(), n = sorted.length, xs: number[] = [], ys: number[] = []
  const step = Math.max(1, (n - 1) / mostPlaces)
  for (let k = 0; k < n; k = k === n - 1 ? n : Math.min(n - 1, Math.round(k + step))) {
    let last = k
    if (down) while (last + 1 < n && sorted[last + 1] === sorted[k]) last++
    else while (last > 0 && sorted[last - 1] === sorted[k]) last--
    xs.push(sorted[k])
    ys.push(100 * (down ? last + 1 : n - last) / n)
  }
  return { xs, ys }
}

/** How many trials are as good as a value: of the older half and of the newer one, which tells whether the search gets anywhere. */
export function Distribution({ study, columns, objective }: TabProps) {
  const theme = useTheme(), down = lower(study, objective)
  const [lines, n] = useMemo((): [Line[], number] => {
    const all = finite(columns.values[objective], i => columns.states[i] === 'c'), half = Math.floor(all.length / 2), color = colorsOfPage(document.documentElement)
    if (all.length < 2 * fewestToHalve) return [all.length > 1 ? [{ key: 'all', label: 'of all', color: color.accent, ...shares(all, down) }] : [], all.length]
    return [[{ key: 'older', label: `of the older ${count(half)}`, color: color.muted, dash: [4, 3], ...shares(all.slice(0, half), down) }, { key: 'newer', label: `of the newer ${count(all.length - half)}`, color: color.accent, ...shares(all.slice(half), down) }], all.length]
  }, [columns, objective, down, theme])
  if (!lines.length) return null
  return (
    <Panel title="Distribution" note={`percent of the complete trials with that ${study.metrics[objective]} or a ${down ? 'lower' : 'higher'} one`}>
      <Curves lines={lines} xKind="value" xLabel={study.metrics[objective]} height={210} label={`Distribution of ${study.metrics[objective]} over ${plural(n, 'complete trial')}`} />
      {lines.length > 1 && <div class="body legend"><span><i class="swatch" style={{ background: 'var(--accent)' }} />newer half</span><span><i class="swatch half" style={{ background: 'var(--muted)' }} />older half</span></div>}
    </Panel>
  )
}

const none: Growth = { xs: [], ys: [], left: 0 }

/** How the front of two or three objectives grew. */
export function Volume({ study, columns }: TabProps) {
  const down = study.metrics.map((_, k) => lower(study, k))
  const growth = useMemo(() => volumes(columns, down), [columns, study.directions.join()])
  const { xs, ys, left } = growth ?? none
  const all = columns.numbers.length
  const [places, line, x, y] = useMemo((): [Float64Array, { xs: number[]; ys: number[]; steps: boolean }, Axis, Axis] => {
    const places = new Float64Array(all).fill(NaN)
    xs.forEach((i, k) => { places[i] = ys[k] })
    return [places, { xs: xs.length ? [...xs, all - 1] : [], ys: ys.length ? [...ys, ys[ys.length - 1]] : [], steps: true },
      { min: -1, max: Math.max(10, all), kind: 'integer', label: 'trial' }, ys.length ? around(Math.min(...ys), ys[ys.length - 1]) : { min: 0, max: 1, kind: 'category' }]
  }, [xs, ys, all])
  const color = useCallback((_: number, g: Parameters<Parameters<typeof Scatter>[0]['color']>[1]) => g.colors.accent, [])
  if (!growth) return <Panel title="Hypervolume"><Empty title="The front is too large to compute it here"><code>foldlog study compare {study.journal}</code> does.</Empty></Panel>
  if (!xs.length) return null
  const last = value(ys[ys.length - 1])
  return (
    <Panel title="Hypervolume" note={`${last}, of what the front dominates; more is better`}>
      <Scatter x={x} y={y} xs={columns.numbers} ys={places} color={color} line={line} height={210} label={`Hypervolume after ${plural(all, 'trial')}: ${last}`}
        tip={i => { const t = tipRows(study, columns, i); return { ...t, rows: [{ label: 'hypervolume', value: value(places[i]), strong: true }, ...t.rows] } }} open={i => go(at.trial(study.id, i))} />
      <div class="body legend"><span class="muted">a dot is a trial that added to it{left > 0 && `; ${plural(left, 'trial')} more did`}</span></div>
    </Panel>
  )
}
