import { useCallback, useMemo } from 'preact/hooks'
import { among, count, duration, moment, value } from '../lib/format'
import { type Geom, Plot, type Tip } from './plot'
import { withoutOutliers } from '../lib/study'
import { around, type Axis } from './scale'

/** One line of a chart: a run, or a piece of it that an older process wrote. */
export interface Line {
  key: string
  label: string
  color: string
  xs: ArrayLike<number>
  ys: ArrayLike<number>
  dim?: boolean
  dash?: number[]
  /** how far to both sides a band is drawn around it */
  spread?: number[]
  /** as wide as lines that stand out */
  bold?: boolean
}
export interface Band { from: number; to: number; label: string; odd: boolean }
export interface Mark { x: number; kind: 'checkpoint' | 'resumed' | 'interrupted' | 'failed' | 'remark'; label: string }
/** Steps, the clock, milliseconds since the beginning, or what was measured. */
export type XKind = 'step' | 'time' | 'relative' | 'value'

export interface CurvesProps {
  lines: Line[]
  label: string
  height?: number
  xKind?: XKind
  xLabel?: string
  logX?: boolean
  logY?: boolean
  smooth?: number
  /** leaves outliers out of the vertical axis */
  clip?: boolean
  bands?: Band[]
  marks?: Mark[]
  range?: [number, number] | null
  strong?: string | null
  zoom?: (from: number, to: number) => void
  reset?: () => void
}

/** smoothed is an exponential moving average without the bias of its start. */
export function smoothed(ys: ArrayLike<number>, weight: number): Float64Array {
  const out = new Float64Array(ys.length)
  let sum = 0, norm = 0
  for (let i = 0; i < ys.length; i++) {
    const v = ys[i]
    if (!Number.isFinite(v)) { out[i] = v; continue }
    sum = sum * weight + (1 - weight) * v
    norm = norm * weight + (1 - weight)
    out[i] = sum / norm
  }
  return out
}

export function extent(lines: Line[], logX: boolean, logY: boolean, range?: [number, number] | null) {
  let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity
  for (const l of lines) {
    for (let i = 0; i < l.xs.length; i++) {
      const x = l.xs[i], y = l.ys[i]
      if (range && (x < range[0] || x > range[1])) continue
      if (Number.isFinite(x) && (!logX || x > 0)) { if (x < x0) x0 = x; if (x > x1) x1 = x }
      if (!Number.isFinite(y) || logY && y <= 0) continue
      const by = l.spread?.[i] ?? 0, low = logY && y - by <= 0 ? y : y - by
      if (low < y0) y0 = low
      if (y + by > y1) y1 = y + by
    }
  }
  return { x0, x1, y0, y1 }
}

/** The finite values in a range, of which outliers are told. */
function valuesIn(lines: Line[], logY: boolean, range?: [number, number] | null): number[] {
  const out: number[] = []
  for (const l of lines) for (let i = 0; i < l.xs.length; i++) {
    if ((!range || l.xs[i] >= range[0] && l.xs[i] <= range[1]) && Number.isFinite(l.ys[i]) && (!logY || l.ys[i] > 0)) out.push(l.ys[i])
  }
  return out
}

export function Curves(p: CurvesProps) {
  const { lines, xKind = 'step', smooth = 0 } = p
  const [x, y, shown] = useMemo((): [Axis, Axis, (Line & { smooth: ArrayLike<number> | null })[]] => {
    const e = extent(lines, !!p.logX, !!p.logY, p.range)
    if (p.clip && e.y0 < e.y1) [e.y0, e.y1] = withoutOutliers(valuesIn(lines, !!p.logY, p.range))
    const kind = xKind === 'time' ? 'time' : xKind === 'relative' ? 'duration' : xKind === 'value' ? 'number' : 'integer'
    const [from, to] = p.range ?? [e.x0, e.x1]
    const x = around(from, to, { log: p.logX && from > 0, air: 0 })
    return [{ ...x, kind, label: p.xLabel }, e.y0 <= e.y1 ? around(e.y0, e.y1, { log: p.logY && e.y0 > 0 }) : { min: 0, max: 1, kind: 'category' },
      lines.map(l => ({ ...l, smooth: smooth > 0 && l.xs.length > 2 ? smoothed(l.ys, smooth) : null }))]
  }, [lines, xKind, p.logX, p.logY, p.clip, smooth, p.range?.[0], p.range?.[1], p.xLabel])

  const draw = useCallback((g: Geom) => {
    p.bands?.forEach(b => drawBand(g, b))
    const odd = y.kind === 'category' && lines.some(l => l.ys.length > 0)
    if (odd) drawNote(g, p.logY && lines.some(l => Array.prototype.some.call(l.ys, Number.isFinite)) ? 'no positive value for a logarithmic axis' : 'no finite value')
    drawMarks(g, p.marks ?? [])
    const many = shown.length > 30 && !shown.some(l => l.bold)
    const first = [...shown].sort((a, b) => Number(!!b.dim) - Number(!!a.dim))
    for (const l of first) if (l.spread) drawSpread(g, l, l.spread)
    for (const l of first) if (l.key !== p.strong) drawLine(g, l, !!y.log, many, p.strong ? 0.25 : 1)
    for (const l of shown) if (l.key === p.strong) drawLine(g, l, !!y.log, false, 1, true)
    p.bands?.forEach(b => drawBandName(g, b))
  }, [shown, p.bands, p.marks, p.strong, x, y])

  const xText = useCallback((v: number) => xKind === 'time' ? moment(v) : xKind === 'relative' ? duration(v) : xKind === 'value' ? `${p.xLabel ?? ''} ${value(v)}`.trim() : `step ${Number.isSafeInteger(Math.round(v)) ? '' : 'about '}${count(Math.round(v))}`, [xKind, p.xLabel])
  const tip = useCallback((px: number, py: number, g: Omit<Geom, 'ctx'>): Tip | null => tipOf(shown, px, py, g, xText, y.max - y.min, p.marks), [shown, xText, y, p.marks])
  const stops = useCallback(() => {
    const all = new Set<number>()
    for (const l of lines) for (let i = 0; i < l.xs.length; i++) if (l.xs[i] >= x.min && l.xs[i] <= x.max) all.add(l.xs[i])
    return [...all].sort((a, b) => a - b)
  }, [lines, x])
  const table = () => [['line', xKind === 'step' ? 'step' : xKind === 'value' ? p.xLabel ?? 'x' : 'milliseconds', 'value'], ...lines.flatMap(l => Array.from(l.xs, (v, i) => [l.label, v, l.ys[i]]))]
  return <Plot height={p.height ?? 220} x={x} y={y} label={p.label} draw={draw} tip={tip} stops={stops} zoom={p.zoom} reset={p.reset} table={table} shared={!!p.zoom} />
}

function drawLine(g: Geom, l: Line & { smooth: ArrayLike<number> | null }, log: boolean, many: boolean, alpha: number, strong = false) {
  const { ctx } = g
  ctx.strokeStyle = ctx.fillStyle = l.color
  ctx.lineJoin = 'round'
  ctx.setLineDash(l.dash ?? [])
  const base = l.dim ? 0.32 : 1
  if (l.smooth) {
    ctx.globalAlpha = 0.22 * base * alpha
    ctx.lineWidth = 1
    trace(g, l.xs, l.ys, log)
  }
  ctx.globalAlpha = base * alpha
  ctx.lineWidth = strong || l.bold ? 2.6 : many ? 1 : 1.6
  trace(g, l.xs, l.smooth ?? l.ys, log)
  ctx.setLineDash([])
  drawOdd(g, l)
  ctx.globalAlpha = 1
}

/** The band around a mean. */
function drawSpread(g: Geom, l: Line, spread: number[]) {
  const { ctx } = g
  ctx.save()
  ctx.fillStyle = l.color
  ctx.globalAlpha = 0.16
  ctx.beginPath()
  for (let i = 0; i < l.xs.length; i++) ctx.lineTo(g.x(l.xs[i]), g.y(l.ys[i] + spread[i]))
  for (let i = l.xs.length - 1; i >= 0; i--) ctx.lineTo(g.x(l.xs[i]), g.y(l.ys[i] - spread[i]))
  ctx.fill()
  ctx.restore()
}

/** trace draws what is finite and has a place on the axis; a value alone between gaps is a dot. */
function trace(g: Geom, xs: ArrayLike<number>, ys: ArrayLike<number>, log: boolean) {
  const { ctx } = g
  ctx.beginPath()
  let down = false, lone = false, lastX = 0, lastY = 0
  const dot = () => { ctx.moveTo(lastX + 2, lastY); ctx.arc(lastX, lastY, 2, 0, 7); }
  const dots: [number, number][] = []
  for (let i = 0; i < xs.length; i++) {
    const v = ys[i]
    if (!Number.isFinite(v) || log && v <= 0) {
      if (lone) dots.push([lastX, lastY])
      down = lone = false
      continue
    }
    const x = g.x(xs[i]), y = g.y(v)
    if (down) { ctx.lineTo(x, y); lone = false } else { ctx.moveTo(x, y); down = lone = true }
    lastX = x; lastY = y
  }
  if (lone) dots.push([lastX, lastY])
  ctx.stroke()
  if (dots.length) {
    ctx.beginPath()
    for ([lastX, lastY] of dots) dot()
    ctx.fill()
  }
}

/** drawOdd marks what is no number where it happened: at the edge it left by. */
function drawOdd(g: Geom, l: Line) {
  const { ctx } = g
  let drawn = 0
  for (let i = 0; i < l.ys.length && drawn < 2000; i++) {
    const v = l.ys[i]
    if (Number.isFinite(v)) continue
    drawn++
    const x = g.x(l.xs[i]), up = v === Infinity, y = up ? g.top + 4 : g.bottom - 4
    ctx.save()
    ctx.globalAlpha = 1
    ctx.strokeStyle = ctx.fillStyle = g.colors.bad
    ctx.lineWidth = 1.5
    ctx.beginPath()
    if (Number.isNaN(v)) {
      ctx.moveTo(x - 3, y - 3); ctx.lineTo(x + 3, y + 3); ctx.moveTo(x + 3, y - 3); ctx.lineTo(x - 3, y + 3)
      ctx.stroke()
    } else {
      const d = up ? -4 : 4
      ctx.moveTo(x, y + d); ctx.lineTo(x - 4, y - d / 2); ctx.lineTo(x + 4, y - d / 2)
      ctx.fill()
    }
    ctx.restore()
  }
}

function drawNote(g: Geom, text: string) {
  const { ctx } = g
  ctx.save()
  ctx.fillStyle = g.colors.muted
  ctx.textAlign = 'center'
  ctx.textBaseline = 'middle'
  ctx.fillText(text, (g.left + g.right) / 2, (g.top + g.bottom) / 2)
  ctx.restore()
}

const widthOf = (g: Geom, b: Band) => [Math.max(g.left, g.x(b.from)), Math.min(g.right, g.x(b.to))] as const

function drawBand(g: Geom, b: Band) {
  const { ctx } = g, [x0, x1] = widthOf(g, b)
  if (x1 <= x0) return
  ctx.save()
  ctx.fillStyle = g.colors.muted
  ctx.globalAlpha = b.odd ? 0.1 : 0.04
  ctx.fillRect(x0, g.top, x1 - x0, g.bottom - g.top)
  ctx.restore()
}

/** The name of a band, as much as there is room for, over the lines: it is read where they are thick, too. */
function drawBandName(g: Geom, b: Band) {
  const { ctx } = g, [x0, x1] = widthOf(g, b)
  if (x1 <= x0) return
  ctx.save()
  ctx.beginPath()
  ctx.rect(x0, g.top, x1 - x0 - 4, 16)
  ctx.clip()
  ctx.textBaseline = 'top'
  ctx.textAlign = 'left'
  ctx.strokeStyle = g.colors.panel
  ctx.lineWidth = 3
  ctx.lineJoin = 'round'
  ctx.strokeText(b.label, x0 + 4, g.top + 1)
  ctx.fillStyle = g.colors.muted
  ctx.fillText(b.label, x0 + 4, g.top + 1)
  ctx.restore()
}

const markColor = (m: Mark, g: Omit<Geom, 'ctx'>) => m.kind === 'failed' ? g.colors.bad : m.kind === 'interrupted' ? g.colors.warn : m.kind === 'checkpoint' ? g.colors.good : m.kind === 'remark' ? g.colors.muted : g.colors.accent

/** What was said often is a row of ticks, not a bar. */
function drawMarks(g: Geom, marks: Mark[]) {
  const ticks = new Set<number>()
  for (const m of marks) {
    const place = Math.round(g.x(m.x) / 6)
    if (m.kind === 'remark' && ticks.has(place)) continue
    if (m.kind === 'remark') ticks.add(place)
    drawMark(g, m)
  }
}

function drawMark(g: Geom, m: Mark) {
  const x = Math.round(g.x(m.x)) + 0.5
  if (x < g.left || x > g.right + 1) return
  const { ctx } = g
  ctx.save()
  ctx.strokeStyle = ctx.fillStyle = markColor(m, g)
  if (m.kind === 'checkpoint') {
    ctx.beginPath(); ctx.moveTo(x, g.bottom - 7); ctx.lineTo(x - 3.5, g.bottom); ctx.lineTo(x + 3.5, g.bottom); ctx.fill()
  } else if (m.kind === 'remark') {
    ctx.fillRect(x - 1, g.top - 5, 1.5, 6)
  } else {
    ctx.setLineDash(m.kind === 'failed' ? [] : [3, 3])
    ctx.globalAlpha = 0.85
    ctx.beginPath(); ctx.moveTo(x, g.top); ctx.lineTo(x, g.bottom); ctx.stroke()
    ctx.setLineDash([])
    ctx.beginPath(); ctx.arc(x, g.bottom, 3, 0, 7); ctx.fill()
  }
  ctx.restore()
}

function nearest(xs: ArrayLike<number>, x: number): number {
  let lo = 0, hi = xs.length - 1
  if (hi < 0) return -1
  while (hi - lo > 1) {
    const mid = (lo + hi) >> 1
    if (xs[mid] < x) lo = mid
    else hi = mid
  }
  return Math.abs(xs[lo] - x) <= Math.abs(xs[hi] - x) ? lo : hi
}

const mostRows = 8

function tipOf(lines: (Line & { smooth: ArrayLike<number> | null })[], px: number, py: number, g: Omit<Geom, 'ctx'>, xText: (v: number) => string, span: number, marks?: Mark[]): Tip | null {
  const near: { l: Line; i: number; x: number; y: number; d: number; shown: number }[] = []
  let bestX = Infinity
  const target = (() => { // the pointer in values, by bisection, whatever the scale
    let xAt = NaN
    for (const l of lines) for (let i = 0; i < l.xs.length; i += Math.max(1, l.xs.length >> 6)) {
      const d = Math.abs(g.x(l.xs[i]) - px)
      if (!(d >= bestX)) { bestX = d; xAt = l.xs[i] }
    }
    return xAt
  })()
  if (Number.isNaN(target)) return null
  for (const l of lines) {
    let i = nearest(l.xs, target)
    while (i + 1 < l.xs.length && Math.abs(g.x(l.xs[i + 1]) - px) <= Math.abs(g.x(l.xs[i]) - px)) i++
    while (i > 0 && Math.abs(g.x(l.xs[i - 1]) - px) < Math.abs(g.x(l.xs[i]) - px)) i--
    if (i < 0) continue
    const shown = (l.smooth ?? l.ys)[i], x = g.x(l.xs[i])
    near.push({ l, i, x, y: g.y(shown), shown, d: Math.abs(x - px) })
  }
  const least = Math.min(...near.map(n => n.d))
  const rows = near.filter(n => n.d <= least + 12).sort((a, b) => dist(a, py) - dist(b, py))
  if (!rows.length) return null
  const lead = rows[0]
  const marked = marks?.filter(m => Math.abs(g.x(m.x) - px) < 5).slice(0, 3) ?? []
  return {
    at: [lead.x, lead.y], title: xText(lead.l.xs[lead.i]),
    rows: [
      ...rows.slice(0, mostRows).map((r, k) => ({
        color: r.l.color, label: r.l.label, strong: k === 0 && rows.length > 1,
        value: among(r.l.ys[r.i], span) + (r.shown !== r.l.ys[r.i] && Number.isFinite(r.shown) ? ` (${among(r.shown, span)})` : ''),
      })),
      ...marked.map(m => ({ color: markColor(m, g), label: m.label, value: '' })),
    ],
    more: Math.max(0, rows.length - mostRows),
    mark: Number.isFinite(lead.y) ? [[lead.x, lead.y, lead.l.color]] : [],
  }
}

const dist = (n: { y: number }, py: number) => Number.isFinite(n.y) ? Math.abs(n.y - py) : 1e6
