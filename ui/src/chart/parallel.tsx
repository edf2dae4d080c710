import { useCallback, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { scaleColor, scaleColors } from '../lib/color'
import { count, middle, plural } from '../lib/format'
import { endsOf, textOfEnds, useRanges } from '../lib/ranges'
import type { ParamAxis } from '../lib/study'
import { useTheme } from '../lib/theme'
import { colorsOfPage, font, type Tip } from './plot'
import { type Axis, placeOf, ticks, valueAt } from './scale'

interface Props {
  axes: ParamAxis[]
  objective: { name: string; at: Float64Array; min: number; max: number }
  rank: Float64Array
  /** what a line is, trials unless told */
  what?: [string, string]
  open: (i: number) => void
  tip: (i: number) => { title: string; rows: Tip['rows'] }
}

interface Column { name: string; at: Float64Array; axis: Axis; place: (v: number) => number }

const height = 340, top = 40, bottom = height - 14, mostLines = 1200, mostBest = 200, most = 14

/** The trials that are drawn, from the worst to the best: all, or the best and an even sample of the rest. */
function sampleOf(rank: Float64Array): { shown: Int32Array; complete: number } {
  const byRank = new Int32Array(rank.length)
  let complete = 0
  for (let i = 0; i < rank.length; i++) if (!Number.isNaN(rank[i])) byRank[complete++] = i
  const all = byRank.subarray(0, complete).sort((a, b) => rank[a] - rank[b])
  if (complete <= mostLines) return { shown: all, complete }
  const few = mostLines - mostBest, rest = complete - mostBest
  return { shown: Int32Array.from({ length: mostLines }, (_, k) => k < few ? all[Math.floor(k * rest / few)] : all[complete - mostLines + k]), complete }
}

/** A line for each complete trial across all parameters to its result. */
export function Parallel(p: Props) {
  const box = useRef<HTMLDivElement>(null), canvas = useRef<HTMLCanvasElement>(null), over = useRef<HTMLCanvasElement>(null)
  const [width, setWidth] = useState(0)
  const [ranges, setRanges] = useRanges()
  const [pulled, pull] = useState<[number, Parts | null] | null>(null)
  const [hover, setHover] = useState<{ k: number; x: number; y: number } | null>(null)
  const drag = useRef<{ axis: number; from: number } | null>(null)
  const tapped = useRef<number | null>(null)
  const theme = useTheme()
  const [one, many] = p.what ?? ['trial', 'trials']
  const columns = useMemo(() => [...p.axes.slice(0, most), { ...p.objective, log: false, names: null }].map((a): Column => {
    const axis: Axis = a.names ? { min: a.min, max: a.max, kind: 'category', names: a.names } : { min: a.min, max: a.max, log: a.log }
    return { name: a.name, at: a.at, axis, place: placeOf(axis) }
  }), [p.axes, p.objective])
  const texts = JSON.stringify([...ranges])
  // What is chosen on the axes, by their place: as the address has it, and as it is being dragged.
  const brush = useMemo(() => {
    const all = new Map<number, Parts>()
    columns.forEach((c, a) => { const parts = pulled?.[0] === a ? pulled[1] : partsOf(c, ranges.get(c.name)); if (parts) all.set(a, parts) })
    return all
  }, [columns, texts, pulled])
  const choose = (a: number, parts: Parts | null) => setRanges(new Map([[columns[a].name, parts && textsOf(columns[a], parts)]]))
  const { shown, complete } = useMemo(() => sampleOf(p.rank), [p.rank])
  // The place of every line on every axis, from 0 to 1; NaN where it has no value.
  const places = useMemo(() => columns.map(c => Float32Array.from(shown, i => Number.isFinite(c.at[i]) ? Math.min(1.04, Math.max(-0.03, c.place(c.at[i]))) : NaN)), [columns, shown])
  const inside = useMemo(() => Uint8Array.from(shown, (_, k) => Number([...brush].every(([a, [lo, hi]]) => places[a]?.[k] >= lo && places[a][k] <= hi))), [shown, brush, places])
  const chosen = useMemo(() => inside.reduce((n, v) => n + v, 0), [inside])
  useLayoutEffect(() => {
    const el = box.current!
    const o = new ResizeObserver(() => setWidth(el.clientWidth))
    o.observe(el)
    setWidth(el.clientWidth)
    return () => o.disconnect()
  }, [])
  const least = Math.max(width, columns.length * 80)
  const xAt = (a: number) => 56 + a * (least - 112) / Math.max(1, columns.length - 1)
  const yAt = (a: number, k: number) => bottom - places[a][k] * (bottom - top)
  const begin = (c: HTMLCanvasElement) => {
    const dpr = Math.min(3, devicePixelRatio || 1)
    c.width = least * dpr
    c.height = height * dpr
    const ctx = c.getContext('2d')!
    ctx.scale(dpr, dpr)
    return ctx
  }
  const trace = (ctx: CanvasRenderingContext2D, k: number) => {
    let down = false
    for (let a = 0; a < columns.length; a++) {
      const y = yAt(a, k)
      if (Number.isNaN(y)) { down = false; continue }
      down ? ctx.lineTo(xAt(a), y) : ctx.moveTo(xAt(a), y)
      down = true
    }
  }
  useLayoutEffect(() => {
    if (!width) return
    const ctx = begin(canvas.current!), col = colorsOfPage(canvas.current!)
    drawLines(ctx, shown.length, inside, col.muted, k => trace(ctx, k))
    columns.forEach((c, a) => drawAxis(ctx, c, xAt(a), a === columns.length - 1, col, xAt(1) - xAt(0) - 10))
  }, [width, columns, shown, inside, theme])
  useLayoutEffect(() => {
    if (!width) return
    const ctx = begin(over.current!), col = colorsOfPage(over.current!)
    ctx.fillStyle = ctx.strokeStyle = col.accent
    for (const [a, [lo, hi]] of brush) {
      ctx.globalAlpha = 0.22
      const high = Math.min(1.04, hi), low = Math.max(-0.03, lo)
      ctx.fillRect(xAt(a) - 7, bottom - high * (bottom - top), 14, (high - low) * (bottom - top))
      ctx.globalAlpha = 1
    }
    if (hover) { ctx.lineWidth = 2.6; ctx.beginPath(); trace(ctx, hover.k); ctx.stroke() }
  }, [width, columns, places, hover?.k, theme, brush])

  const where = (e: PointerEvent) => { const r = canvas.current!.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top] as const }
  const part = (y: number) => Math.min(1, Math.max(0, (bottom - y) / (bottom - top)))
  const near = useCallback((px: number, py: number) => {
    let best = -1, leastD = 8
    const a = Math.max(0, Math.min(columns.length - 2, Math.floor((px - 56) / ((least - 112) / Math.max(1, columns.length - 1))))), b = Math.min(a + 1, columns.length - 1)
    const t = (px - xAt(a)) / (xAt(b) - xAt(a) || 1)
    for (let k = 0; k < shown.length; k++) {
      if (!inside[k]) continue
      const d = Math.abs(yAt(a, k) + (yAt(b, k) - yAt(a, k)) * t - py)
      if (d <= leastD) { leastD = d; best = k }
    }
    return best
  }, [columns, least, shown, inside, places])
  const move = (e: PointerEvent) => {
    const [px, py] = where(e)
    if (drag.current) {
      const a = part(drag.current.from), b = part(py)
      pull([drag.current.axis, [Math.min(a, b), Math.max(a, b)]])
      return
    }
    const k = near(px, py)
    setHover(k < 0 ? null : { k, x: px, y: py })
  }
  const axisAt = (px: number) => columns.findIndex((_, a) => Math.abs(xAt(a) - px) < 14)
  // A finger on an axis chooses a range and does not scroll the page.
  useLayoutEffect(() => {
    const el = over.current!
    const hold = (e: TouchEvent) => {
      if (e.touches.length === 1 && axisAt(e.touches[0].clientX - el.getBoundingClientRect().left) >= 0) e.preventDefault()
    }
    el.addEventListener('touchstart', hold, { passive: false })
    return () => el.removeEventListener('touchstart', hold)
  }, [columns, least])
  const down = (e: PointerEvent) => {
    const [px, py] = where(e)
    const a = axisAt(px)
    tapped.current = null
    if (e.pointerType === 'touch' && a < 0) {
      const k = near(px, py)
      tapped.current = hover?.k ?? -1
      setHover(k < 0 ? null : { k, x: px, y: py })
      return
    }
    if (a < 0) return
    setHover(null)
    over.current!.setPointerCapture(e.pointerId)
    drag.current = { axis: a, from: py }
    pull([a, null])
  }
  const up = (e: PointerEvent) => {
    const [, py] = where(e)
    const d = drag.current
    drag.current = null
    if (d) {
      choose(d.axis, Math.abs(py - d.from) > 3 ? pulled?.[1] ?? null : null)
      pull(null)
    } else if (hover && (tapped.current === null || tapped.current === hover.k)) p.open(shown[hover.k])
  }
  const t = hover && p.tip(shown[hover.k])
  return (
    <div class="plot" ref={box} style={{ overflowX: 'auto' }}>
      <div style={{ position: 'relative', width: least, height }}>
        <canvas ref={canvas} role="img" style={{ width: least, height }} aria-label={`Parallel coordinates of ${plural(shown.length, one, many)} over ${p.axes.map(a => a.name).join(', ')}; the table of ${many} has the same values`} />
        <canvas ref={over} aria-hidden="true" style={{ width: least, height, position: 'absolute', inset: 0 }} onPointerMove={move} onPointerDown={down} onPointerUp={up} onPointerCancel={() => { drag.current = null; pull(null) }} onPointerLeave={e => { if (e.pointerType !== 'touch') setHover(null) }} />
      </div>
      {t && hover && <div class="plot-tip" style={{ top: Math.max(0, Math.min(hover.y + 10, height - 30 - 18 * t.rows.length)), ...(hover.x > width / 2 ? { right: width - hover.x + 14 } : { left: hover.x + 14 }) }}><div class="plot-tip-title">{t.title}</div>{t.rows.map((r, i) => <div class="plot-tip-row" key={i}><span>{r.label}</span><b>{r.value}</b></div>)}</div>}
      <div class="legend" style={{ padding: '4px 8px 8px' }}>
        <span><i class="swatch" style={{ background: scaleColor(1) }} />best</span><span><i class="swatch" style={{ background: scaleColor(0.05) }} />worst</span>
        {shown.length < complete && <span class="muted">{count(shown.length)} of {plural(complete, 'complete trial')}: the best {count(mostBest)}, and an even sample of the rest</span>}
        <span class="sr" role="status">{brush.size > 0 ? `${plural(chosen, one, many)} chosen` : ''}</span>
        {brush.size > 0 && <><span>{plural(chosen, one, many)} chosen</span><button class="link" onClick={() => setRanges(new Map([...ranges.keys()].map(name => [name, null])))}>Clear</button></>}
        {p.axes.length > most && <span class="muted">the first {most} of {count(p.axes.length)} parameters</span>}
      </div>
      <details class="sub ranges">
        <summary>Ranges by their values</summary>
        <div class="bar">{columns.map((c, a) => <Range key={c.name} column={c} range={brush.get(a)} set={r => choose(a, r)} />)}</div>
      </details>
    </div>
  )
}

/** A stretch of an axis, from 0 to 1. */
type Parts = [number, number]

/** Below and above everything on an axis. */
const under = -1, over1 = 2

/** The stretch that texts of the address stand for; null if they choose nothing that is there. */
function partsOf(c: Column, texts: string[] | undefined): Parts | null {
  if (!texts?.length) return null
  if (c.axis.names) {
    const places = c.axis.names.flatMap((name, i) => texts.includes(name) ? [c.place(i)] : [])
    return places.length ? [Math.min(...places) - 0.03, Math.max(...places) + 0.03] : null
  }
  const [low, high] = endsOf(texts[0])
  return low === -Infinity && high === Infinity ? null : [low === -Infinity ? under : c.place(low), high === Infinity ? over1 : c.place(high)]
}

/** The texts that stand for a stretch; what ends at the end of an axis takes in what lies beyond. */
function textsOf(c: Column, [from, to]: Parts): string[] {
  if (c.axis.names) return c.axis.names.filter((_, i) => c.place(i) >= from && c.place(i) <= to)
  return from <= 0 && to >= 1 ? [] : [textOfEnds(from <= 0 ? -Infinity : valueAt(c.axis, from), to >= 1 ? Infinity : valueAt(c.axis, to))]
}

/** What is chosen on an axis, in values: for the keyboard, and for whoever wants it exact. */
function Range({ column: c, range, set }: { column: Column; range?: Parts; set: (r: Parts | null) => void }) {
  const { axis } = c
  if (axis.names) {
    const at = range ? axis.names.findIndex((_, i) => c.place(i) >= range[0] && c.place(i) <= range[1]) : -1
    return <label>{c.name}<select value={at} onChange={e => { const i = Number(e.currentTarget.value); set(i < 0 ? null : [c.place(i) - 0.001, c.place(i) + 0.001]) }}><option value={-1}>any</option>{axis.names.map((n, i) => <option key={n} value={i}>{n}</option>)}</select></label>
  }
  const text = (part?: number) => part === undefined || part === under || part === over1 ? '' : String(Number(valueAt(axis, part).toPrecision(5)))
  const type = (k: 0 | 1, typed: string) => {
    const v = Number(typed), next: Parts = [range?.[0] ?? under, range?.[1] ?? over1]
    next[k] = typed.trim() === '' || Number.isNaN(v) ? [under, over1][k] : c.place(v)
    set(next[0] === under && next[1] === over1 ? null : next)
  }
  const field = (k: 0 | 1) => <input type="text" inputMode="decimal" size={8} aria-label={`${c.name} ${k ? 'to' : 'from'}`} placeholder={String(Number([axis.min, axis.max][k].toPrecision(5)))} value={text(range?.[k])} onChange={e => type(k, e.currentTarget.value)} />
  return <span role="group" aria-label={c.name}>{c.name} {field(0)} – {field(1)}</span>
}

/** Lines of about the same rank share a stroke: each for itself takes a browser long. */
const bundle = 8

function drawLines(ctx: CanvasRenderingContext2D, lines: number, inside: Uint8Array, muted: string, trace: (k: number) => void) {
  const dense = lines > 300, size = dense ? bundle : 1
  const shade = scaleColors()
  const strokes = (wanted: number, style: (r: number) => void) => {
    let n = 0
    for (let k = 0; k <= lines; k++) {
      if (k < lines && inside[k] !== wanted) continue
      if (n && (n === size || k === lines)) { ctx.stroke(); n = 0 }
      if (k === lines) break
      if (n++ === 0) { style(lines > 1 ? k / (lines - 1) : 1); ctx.beginPath() }
      trace(k)
    }
  }
  ctx.lineWidth = 1
  strokes(0, () => { ctx.globalAlpha = 0.06; ctx.strokeStyle = muted })
  strokes(1, r => {
    ctx.globalAlpha = dense ? 0.09 + 0.75 * r ** 16 : 0.3 + 0.6 * r ** 2
    ctx.lineWidth = r > 0.98 ? 1.8 : 1
    ctx.strokeStyle = shade(r)
  })
  ctx.globalAlpha = 1
}

/** As much of a name as there is room for; its end tells names that count apart. */
function fitting(ctx: CanvasRenderingContext2D, name: string, room: number): string {
  if (name.length <= 200 && ctx.measureText(name).width <= room) return name
  for (let n = Math.min(name.length - 1, 40); n > 2; n--) {
    const cut = middle(name, n)
    if (ctx.measureText(cut).width <= room) return cut
  }
  return '…'
}

function drawAxis(ctx: CanvasRenderingContext2D, c: Column, at: number, last: boolean, col: ReturnType<typeof colorsOfPage>, room: number) {
  const x = Math.round(at) + 0.5
  ctx.strokeStyle = col.line
  ctx.lineWidth = 1
  ctx.beginPath(); ctx.moveTo(x, top - 4); ctx.lineTo(x, bottom + 4); ctx.stroke()
  ctx.textAlign = 'center'
  ctx.fillStyle = col.text
  ctx.font = '600 ' + font
  ctx.fillText(fitting(ctx, c.name, room), x, 20)
  ctx.font = font
  ctx.textAlign = last ? 'left' : 'right'
  for (const t of ticks(c.axis, 5)) {
    const y = bottom - c.place(t.v) * (bottom - top)
    const text = t.text.length > 9 ? t.text.slice(0, 8) + '…' : t.text, w = ctx.measureText(text).width
    const tx = last ? x + 6 : x - 6
    ctx.fillStyle = col.panel
    ctx.globalAlpha = 0.75
    ctx.fillRect(last ? tx - 1 : tx - w - 1, y - 7, w + 2, 14)
    ctx.globalAlpha = 1
    ctx.fillStyle = col.muted
    ctx.fillText(text, tx, y + 4)
  }
}
