import { useMemo } from 'preact/hooks'
import { around, type Axis } from '../../chart/scale'
import { Scatter } from '../../chart/scatter'
import { scaleColor, scaleColors } from '../../lib/color'
import { at, go, useQuery } from '../../lib/router'
import { type ParamAxis, paramAxis } from '../../lib/study'
import { useTheme } from '../../lib/theme'
import { Panel } from '../../parts/basic'
import { type TabProps, tipRows } from './tabs'

/** The axis of a parameter by itself. */
export const axisOf = (a: ParamAxis): Axis => a.names ? { min: a.min, max: a.max, kind: 'category', names: a.names } : a.log ? around(a.min, a.max, { log: true, air: 0.02 }) : around(a.min, a.max, { air: 0.02 })

/** Where trials are on it: those of one choice lie beside each other. */
export const spread = (a: ParamAxis) => a.names ? a.at.map((v, i) => v + (((i * 2654435761) % 1000) / 1000 - 0.5) * 0.5) : a.at

const mostLarge = 100

/** Two parameters against each other: in which corner the good trials are. */
export function TwoParams({ study, columns, objective, names, rank }: TabProps & { names: string[]; rank: Float64Array }) {
  const [q, set] = useQuery()
  const theme = useTheme()
  const chosen = (key: string, first: number) => { const n = q.get(key); return n !== null && names.includes(n) ? n : names[first] }
  const across = chosen('across', 0), up = chosen('up', 1)
  const [a, b] = useMemo(() => [paramAxis(study, columns, across), paramAxis(study, columns, up)], [study.space, columns, across, up])
  const [x, y] = useMemo((): [Axis, Axis] => [{ ...axisOf(a), label: across }, { ...axisOf(b), label: up }], [a, b])
  const [xs, ys] = useMemo(() => [spread(a), spread(b).map((v, i) => Number.isNaN(rank[i]) ? NaN : v)], [a, b, rank])
  const color = useMemo(() => { const shade = scaleColors(); return (i: number) => shade(rank[i]) }, [rank, theme])
  const strong = useMemo(() => { const n = rank.reduce((n, r) => n + (Number.isNaN(r) ? 0 : 1), 0), from = Math.max(0.9, 1 - mostLarge / n); return (i: number) => rank[i] >= from }, [rank])
  const pick = (key: string, label: string, value: string) => <label>{label}<select value={value} onChange={e => set({ [key]: e.currentTarget.value })}>{names.map(n => <option key={n}>{n}</option>)}</select></label>
  return (
    <Panel title="Two parameters" note="each dot is a complete trial, the best are larger" actions={<div class="bar">{pick('across', 'Across', across)}{pick('up', 'Up', up)}</div>}>
      <Scatter x={x} y={y} xs={xs} ys={ys} color={color} strong={strong} height={320} label={`${study.metrics[objective]} by ${across} and ${up}`} tip={i => tipRows(study, columns, i)} open={i => go(at.trial(study.id, i))} />
      <div class="body legend"><span><i class="swatch" style={{ background: scaleColor(1) }} />best</span><span><i class="swatch" style={{ background: scaleColor(0.05) }} />worst</span></div>
    </Panel>
  )
}
