import type { ComponentChildren } from 'preact'
import type { XKind } from '../chart/curves'
import { useQuery } from '../lib/router'
import type { ChartSettings } from '../views/run/chart'
import { Check, Choice } from './basic'

const ofMetric = 'metric:'

/** What the address says about how curves are shown. */
export function useChartSettings(): [ChartSettings, ReturnType<typeof useQuery>[1], URLSearchParams] {
  const [q, set] = useQuery()
  const from = Number(q.get('from')), to = Number(q.get('to')), x = q.get('x') ?? ''
  const along = x.startsWith(ofMetric) ? x.slice(ofMetric.length) : ''
  return [{
    x: (along ? 'value' : ['time', 'relative'].includes(x) ? x : 'step') as XKind, along, logX: q.get('logx') === '1', logY: q.get('log') === '1', clip: q.get('clip') === '1',
    smooth: Math.min(0.99, Math.max(0, Number(q.get('smooth')) || 0)), range: q.has('from') && to > from ? [from, to] : null,
    older: q.get('older') !== '0', marks: q.get('marks') !== '0',
  }, set, q]
}

export function ChartBar({ s, set, q, names, children }: { s: ChartSettings; set: ReturnType<typeof useQuery>[1]; q: URLSearchParams; names: string[]; children?: ComponentChildren }) {
  return (
    <div class="bar">
      <input type="search" placeholder="Find metrics" aria-label="Find metrics" title="A part of the name, or a regular expression such as val/.*loss" value={q.get('m') ?? ''} onInput={e => set({ m: e.currentTarget.value })} style={{ width: 180 }} />
      <Choice label="Axis" value={s.x} set={x => set({ x: x === 'step' ? null : x, from: null, to: null })} options={[['step', 'Step'], ['relative', 'Elapsed'], ['time', 'Clock']]} />
      <select aria-label="Metric as axis" title="Draws the curves along a metric, such as epochs or tokens" value={s.along} onChange={e => set({ x: e.currentTarget.value ? ofMetric + e.currentTarget.value : null, from: null, to: null })} style={{ width: 112 }}>
        <option value="">Along …</option>{[...new Set([...(s.along ? [s.along] : []), ...names])].map(n => <option key={n}>{n}</option>)}
      </select>
      <label>Smooth<input type="range" min="0" max="0.98" step="0.02" value={s.smooth} onInput={e => set({ smooth: Number(e.currentTarget.value) ? e.currentTarget.value : null })} /><span style={{ width: 30 }}>{s.smooth ? s.smooth.toFixed(2) : 'off'}</span></label>
      <Check on={s.logY} set={on => set({ log: on ? '1' : null })}>Log y</Check>
      <Check on={s.logX} set={on => set({ logx: on ? '1' : null })}>Log x</Check>
      <Check on={s.clip} set={on => set({ clip: on ? '1' : null })}>Clip outliers</Check>
      {children}
      {s.range && <button onClick={() => set({ from: null, to: null })}>Reset zoom</button>}
    </div>
  )
}
