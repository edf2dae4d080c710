import { useMemo, useState } from 'preact/hooks'
import { type Band, Curves, type Line, type Mark, type XKind } from '../../chart/curves'
import { type Across, type Along, placed, placeOf } from '../../lib/along'
import { colorAt, colorOf } from '../../lib/color'
import { among, count, plural, value } from '../../lib/format'
import { type Feed, marked, useCurve } from '../../lib/feed'
import { number } from '../../lib/api'
import { seriesText, type Piece } from '../../lib/runs'
import type { Annotation, RunSeries } from '../../lib/types'
import { useSeen } from '../../lib/use'
import { useTheme } from '../../lib/theme'
import { Copy, Failure, Pin } from '../../parts/basic'

/** along is the metric that is the axis, of the kind that measured values have. */
export interface ChartSettings { x: XKind; along: string; logX: boolean; logY: boolean; clip: boolean; smooth: number; range: [number, number] | null; older: boolean; marks: boolean }

export interface RunChartProps {
  slug: string
  first: number
  name: string
  feed: Feed
  settings: ChartSettings
  along?: Along
  annotations: Annotation[]
  full: boolean
  onFull: () => void
  pinned: boolean
  onPin: () => void
  zoom: (from: number, to: number) => void
  reset: () => void
}

export function RunChart(p: RunChartProps) {
  const [ref, seen] = useSeen<HTMLElement>()
  return (
    <section class={p.full ? 'panel chart full' : 'panel chart'} ref={ref} aria-label={p.name}>
      {seen ? <Seen {...p} /> : <><header><h2>{p.name}</h2></header><div style={{ height: heightOf(p.full) }} /><footer /></>}
    </section>
  )
}

const heightOf = (full: boolean) => full ? 420 : 210

function Seen(p: RunChartProps) {
  const { settings: s } = p
  const axis = s.x === 'step' || s.along ? 'step' : 'time'
  const [asTable, setTable] = useState(false)
  const x = useMemo((): Across => ({ kind: s.x, first: p.first, along: p.along }), [s.x, p.first, p.along])
  const range = s.along ? null : s.range && s.x === 'relative' ? [s.range[0] + p.first, s.range[1] + p.first] as [number, number] : s.range
  const { curve, error, retry } = useCurve(p.slug, p.name, axis, range, p.full ? 3000 : 1200, p.feed)
  const theme = useTheme()
  const lines = useMemo(() => curve ? linesOf(p.slug, curve.pieces, x, s.older) : [], [curve, x, s.older, theme])
  const bands = useMemo(() => s.marks && curve ? bandsOf(curve.stages, x) : [], [curve?.stages, x, s.marks])
  const marks = useMemo(() => s.marks ? marksOf(p.annotations, x) : [], [p.annotations, x, s.marks])
  const last = lastOf(curve?.pieces ?? [])
  const odd = curve ? curve.pieces.reduce((n, c) => n + c.values.filter(v => !Number.isFinite(v)).length, 0) : 0
  const hidden = s.logY && curve ? curve.pieces.reduce((n, c) => n + c.values.filter(v => v <= 0 && Number.isFinite(v)).length, 0) : 0
  const [low, high] = useMemo(() => boundsOf(curve?.pieces ?? []), [curve])
  const points = curve ? curve.pieces.reduce((n, c) => n + c.values.length, 0) : 0
  const placeless = s.along && curve ? curve.pieces.reduce((n, c) => n + (c.older && !s.older ? 0 : c.values.length), 0) - lines.reduce((n, l) => n + l.xs.length, 0) : 0
  const label = curve ? `${p.name}: ${plural(curve.total, 'point')}, last ${last === null ? 'none' : value(last)}` : p.name
  return (
    <>
      <header>
        <h2 title={p.name}>{p.name}</h2>
        <span class="now">{last === null ? '' : value(last)}</span>
        <div class="actions" style={{ marginLeft: 0, gap: 0 }}>
          <Pin name={p.name} on={p.pinned} toggle={p.onPin} />
          <button class="icon" aria-pressed={asTable} onClick={() => setTable(!asTable)} aria-label={`${p.name} as a table`} title="As a table"><svg width="15" height="15" viewBox="0 0 16 16"><path d="M2 3h12v10H2zM2 6.5h12M2 10h12M6.5 3v10" /></svg></button>
          <button class="icon" aria-pressed={p.full} onClick={p.onFull} aria-label={`${p.name} larger`} title="Larger"><svg width="15" height="15" viewBox="0 0 16 16"><path d={p.full ? 'M13 3L9.5 6.5M9.5 3.5v3h3M3 13l3.5-3.5M6.5 12.5v-3h-3' : 'M9.5 6.5L13 3M10 3h3v3M6.5 9.5L3 13M3 10v3h3'} /></svg></button>
        </div>
      </header>
      {error && !curve ? <Failure error={error} retry={retry} />
        : asTable && curve ? <ValueTable pieces={curve.pieces} height={heightOf(p.full)} />
        : <Curves lines={lines} label={label} height={heightOf(p.full)} xKind={s.x} xLabel={s.along || undefined} logX={s.logX} logY={s.logY} clip={s.clip} smooth={s.smooth} bands={bands} marks={marks} range={s.range} zoom={p.zoom} reset={p.reset} />}
      <footer>
        {curve?.sampled && <span title="The ends, and of each stretch the lowest, the highest and what is no number">sampled: {count(points)} of {count(curve.total)} points{s.range || s.along ? '' : ', zoom for detail'}</span>}
        {curve && !curve.sampled && <span>{plural(curve.total, 'point')}</span>}
        {low < high && <span>from {among(low, high - low)} to {among(high, high - low)}</span>}
        {hidden > 0 && <span class="warn">{count(hidden)} not above 0, which a logarithmic axis lacks</span>}
        {placeless > 0 && <span>{count(placeless)} where {s.along} is not known</span>}
        {odd > 0 && <span class="bad">{count(odd)} not finite</span>}
        {lines.some(l => l.dim) && <span>older copies are pale</span>}
        {seriesOf(curve?.pieces ?? []).map((t, i) => <span key={t} style={{ display: 'inline-flex', gap: 6, alignItems: 'center' }}><i class="swatch" style={{ background: colorAt(i) }} />{t || 'plain'}</span>)}
      </footer>
    </>
  )
}

/** The least and the greatest of what counts. */
function boundsOf(pieces: Piece[]): [number, number] {
  let low = Infinity, high = -Infinity
  for (const p of pieces) if (!p.older) for (const v of p.values) if (Number.isFinite(v)) { if (v < low) low = v; if (v > high) high = v }
  return [low, high]
}

function seriesOf(pieces: Piece[]): string[] {
  const all = [...new Set(pieces.map(p => p.series))]
  return all.length > 1 ? all.map(seriesText) : []
}

function linesOf(slug: string, pieces: Piece[], x: Across, older: boolean): Line[] {
  const series = [...new Set(pieces.map(p => p.series))]
  const own = colorOf(slug)
  return pieces.filter(p => older || !p.older).map((p, i) => ({
    key: String(i), dim: p.older, ...placed(p, x),
    color: series.length > 1 ? colorAt(series.indexOf(p.series)) : own,
    label: [seriesText(p.series), p.segment > 0 || pieces.length > 1 ? `process ${p.segment + 1}` : '', p.older ? 'older copy' : ''].filter(Boolean).join(', ') || 'value',
  }))
}

function lastOf(pieces: Piece[]): number | null {
  let at = -1, v: number | null = null
  for (const p of pieces) {
    const i = p.values.length - 1
    if (i >= 0 && !p.older && p.times[i] >= at) { at = p.times[i]; v = p.values[i] }
  }
  return v
}

/** Stages as bands; what a newer process has done again counts. */
export function bandsOf(stages: RunSeries['stages'], x: Across): Band[] {
  const list: { at: number; label: string }[] = []
  for (const s of stages) {
    const known = placeOf(number(s.step), s.ts_ms, x), at = Number.isNaN(known) && !list.length ? -Infinity : known
    if (Number.isNaN(at)) continue
    if (x.kind === 'value' && list.length && at < list[list.length - 1].at) return [] // a metric that does not grow has no stretches
    while (list.length && list[list.length - 1].at >= at) list.pop()
    if (list.at(-1)?.label !== s.stage) list.push({ at, label: s.stage })
  }
  return list.map((s, i) => ({ from: s.at, to: list[i + 1]?.at ?? Infinity, label: s.label, odd: i % 2 === 0 }))
}

export function marksOf(list: Annotation[], x: Across): Mark[] {
  return list.map(a => ({
    x: placeOf(number(a.step), a.ts_ms, x), kind: marked.includes(a.class) ? a.class as Mark['kind'] : 'remark',
    label: !marked.includes(a.class) ? a.text.slice(0, 160) : a.class === 'checkpoint' ? `checkpoint ${a.checkpoint}` : a.class === 'resumed' ? `resumed from ${a.checkpoint || 'a checkpoint'}` : a.class === 'failed' ? `failed: ${a.error || a.text}`.slice(0, 120) : `stopped by ${a.signal || 'a signal'}`,
  }))
}

function ValueTable({ pieces, height }: { pieces: Piece[]; height: number }) {
  const rows = pieces.flatMap(p => p.values.map((v, i) => [p.steps[i], p.segment + 1, seriesText(p.series), v, p.older] as const))
  const text = 'step\tprocess\tseries\tvalue\n' + rows.map(r => r.slice(0, 4).join('\t')).join('\n')
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Values" style={{ height, maxHeight: height }}>
      <table class="plain">
        <thead><tr><th class="right">Step</th><th class="right">Process</th><th class="right">Value <Copy text={text} label="Copy all values" /></th></tr></thead>
        <tbody>{rows.slice(-500).map(([step, segment, , v, older], i) => <tr key={i} class={older ? 'muted' : ''}><td class="right">{count(step)}</td><td class="right">{segment}</td><td class="right">{value(v)}</td></tr>)}</tbody>
      </table>
      {rows.length > 500 && <p class="note" style={{ padding: 8 }}>The last 500 of {count(rows.length)}; the copy has all.</p>}
    </div>
  )
}
