import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useTheme } from '../lib/theme'
import { hearPointer, tellPointer } from './pointer'
import { Save } from './save'
import { usePinch } from './pinch'
import { type Axis, placeOf, ticks, valueAt } from './scale'

// The frame of every chart: axes, the pointer, zoom by dragging, the keyboard, and
// a word for screen readers. What is drawn in it is the business of its user.

export interface Colors { text: string; muted: string; grid: string; line: string; panel: string; accent: string; bad: string; warn: string; good: string; pruned: string; live: string }

export interface Geom {
  ctx: CanvasRenderingContext2D
  left: number; top: number; right: number; bottom: number
  x: (v: number) => number
  y: (v: number) => number
  colors: Colors
}

export interface Tip {
  /** where, in pixels of the canvas */
  at: [number, number]
  title: string
  rows: { color?: string; label: string; value: string; strong?: boolean }[]
  more?: number
  mark?: [number, number, string][]
  cross?: boolean
}

export interface PlotProps {
  height: number
  x: Axis
  y: Axis
  label: string
  draw: (g: Geom) => void
  tip?: (px: number, py: number, g: Omit<Geom, 'ctx'>) => Tip | null
  /** x values that the arrow keys go through, ascending */
  stops?: () => number[]
  zoom?: (from: number, to: number) => void
  reset?: () => void
  pick?: (px: number, py: number) => void
  /** whether what is pointed at is shown in the other charts of the page */
  shared?: boolean
  /** what is drawn, as rows, the first of them their headings */
  table?: () => (string | number)[][]
  children?: ComponentChildren
}

export function colorsOfPage(el: Element): Colors {
  const s = getComputedStyle(el)
  const v = (name: string) => s.getPropertyValue('--' + name).trim()
  return {
    text: v('text'), muted: v('muted'), grid: v('grid'), line: v('line'), panel: v('panel'), accent: v('accent'),
    bad: v('bad'), warn: v('warn'), good: v('good'), pruned: v('pruned'), live: v('live'),
  }
}

export const font = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif'

export function Plot(p: PlotProps) {
  const box = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const geom = useRef<Omit<Geom, 'ctx'> | null>(null)
  const [width, setWidth] = useState(0)
  const [tip, setTip] = useState<Tip | null>(null)
  const [other, setOther] = useState<Tip | null>(null)
  const [said, say] = useState('')
  const [drag, setDrag] = useState<[number, number] | null>(null)
  const stop = useRef(-1)
  const last = useRef<[number, number] | null>(null)
  const tapped = useRef<{ before: string; x: number; y: number; at: number } | null>(null)
  const touched = useRef(false)
  const theme = useTheme()

  useLayoutEffect(() => {
    const el = box.current!
    setWidth(el.clientWidth)
    const o = new ResizeObserver(() => setWidth(el.clientWidth))
    o.observe(el)
    return () => o.disconnect()
  }, [])

  useLayoutEffect(() => {
    if (width > 0) geom.current = paint(canvas.current!, box.current!, width, p)
  }, [width, theme, p.height, p.x, p.y, p.draw])

  // A finger has no place to leave to: what it showed goes when it is put down elsewhere.
  useEffect(() => {
    if (!tip) return
    const away = (e: PointerEvent) => { if (!box.current?.contains(e.target as Node)) leave() }
    document.addEventListener('pointerdown', away)
    return () => document.removeEventListener('pointerdown', away)
  }, [tip === null])

  // What was under the pointer may have moved: a curve that grows is read off as it does.
  useEffect(() => {
    if (tip && last.current) show(...last.current)
    else setTip(null)
    setOther(null)
  }, [p.draw])

  const heard = useRef<(x: number | null) => void>(() => {})
  heard.current = x => {
    const g = geom.current, r = box.current?.getBoundingClientRect()
    const there = x !== null && g && r && r.bottom > 0 && r.top < innerHeight && x >= p.x.min && x <= p.x.max
    setOther(there ? p.tip?.(g.x(x), (g.top + g.bottom) / 2, g) ?? null : null)
  }
  const hear = useRef((x: number | null) => heard.current(x)).current
  useEffect(() => p.shared ? hearPointer(hear) : undefined, [p.shared])

  const where = (e: PointerEvent | MouseEvent): [number, number] => {
    const r = canvas.current!.getBoundingClientRect()
    return [e.clientX - r.left, e.clientY - r.top]
  }
  const show = (px: number, py: number) => {
    const g = geom.current
    const t = g && px >= g.left - 6 && px <= g.right + 6 ? p.tip?.(px, py, g) ?? null : null
    last.current = t && [px, py]
    setTip(t)
    setOther(null)
    if (p.shared) tellPointer(t && g ? valueAt(p.x, (t.at[0] - g.left) / (g.right - g.left)) : null, hear)
    return t
  }
  const leave = () => { last.current = null; setTip(null); if (p.shared) tellPointer(null, hear) }
  const pinch = usePinch(canvas, geom, p)
  const move = (e: PointerEvent) => {
    const [px, py] = where(e)
    if (pinch.on()) return
    if (drag) setDrag([drag[0], px])
    else show(px, py)
  }
  const down = (e: PointerEvent) => {
    touched.current = e.pointerType === 'touch'
    if (touched.current) {
      const [x, y] = where(e), twice = tapped.current && e.timeStamp - tapped.current.at < 350 && Math.abs(x - tapped.current.x) < 20
      if (twice && p.reset) { p.reset(); tapped.current = null; return }
      tapped.current = { before: tip?.title ?? '', x, y, at: e.timeStamp }
      show(x, y)
      return
    }
    if (e.button !== 0 || !p.zoom) return
    canvas.current!.setPointerCapture(e.pointerId)
    const [px] = where(e)
    leave()
    setDrag([px, px])
  }
  // The first tap shows what is there, another one on the same opens it.
  const tap = (px: number, py: number) => {
    const t = tapped.current
    if (t && tip && t.before === tip.title && Math.hypot(px - t.x, py - t.y) < 12) p.pick?.(px, py)
  }
  const up = (e: PointerEvent) => {
    const [px, py] = where(e)
    const g = geom.current
    if (touched.current) { tap(px, py); return }
    if (drag && g && Math.abs(drag[1] - drag[0]) > 5) {
      const part = (x: number) => Math.min(1, Math.max(0, (x - g.left) / (g.right - g.left)))
      const a = valueAt(p.x, part(Math.min(...drag))), b = valueAt(p.x, part(Math.max(...drag)))
      if (b > a) p.zoom!(a, b)
    } else p.pick?.(px, py)
    setDrag(null)
  }
  const key = (e: KeyboardEvent) => {
    const g = geom.current
    if (!g) return
    if ((e.key === 'Escape' || e.key === '0') && p.reset) { p.reset(); leave(); return }
    if ((e.key === '+' || e.key === '-') && p.zoom) {
      const mid = tip ? (tip.at[0] - g.left) / (g.right - g.left) : 0.5
      const half = e.key === '+' ? 0.25 : 1
      p.zoom(valueAt(p.x, mid - half), valueAt(p.x, mid + half))
      e.preventDefault()
      return
    }
    const stops = p.stops?.() ?? []
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[e.key]
    if (e.key === 'Enter' && tip) { p.pick?.(...tip.at); return }
    if (by === undefined || !stops.length) return
    e.preventDefault()
    stop.current = Math.max(0, Math.min(stops.length - 1, (stop.current < 0 ? (by > 0 ? -1 : stops.length) : stop.current) + by))
    const t = show(g.x(stops[stop.current]), (g.top + g.bottom) / 2)
    if (t) say(`${t.title}: ` + t.rows.slice(0, 8).map(r => `${r.label} ${r.value}`).join(', '))
  }
  return (
    <div class="plot" ref={box} style={{ height: p.height }}>
      <canvas ref={canvas} tabIndex={0} role="img" aria-label={p.label} aria-keyshortcuts="ArrowLeft ArrowRight Plus Minus Escape"
        style={{ width: '100%', height: p.height }} class={p.zoom ? 'zooms' : ''}
        onPointerMove={move} onPointerDown={down} onPointerUp={up} onPointerLeave={() => { if (!drag && !touched.current) leave() }}
        onDblClick={() => p.reset?.()} onKeyDown={key} onBlur={leave} />
      {drag && geom.current && <div class="plot-drag" style={{ left: Math.min(...drag), width: Math.abs(drag[1] - drag[0]), top: geom.current.top, height: geom.current.bottom - geom.current.top }} />}
      {tip && !drag && geom.current && <TipBox tip={tip} g={geom.current} width={width} hint={touched.current && p.pick ? 'Tap again to open' : ''} />}
      {other && !tip && !drag && geom.current && <TipBox tip={briefly(other)} g={geom.current} width={width} hint="" faint />}
      {p.table && <Save name={p.label} canvas={() => canvas.current!} table={p.table} />}
      <span class="sr" aria-live="polite">{said}</span>
      {p.children}
    </div>
  )
}

/** What is told of a chart when another one is pointed at. */
const briefly = (t: Tip): Tip => {
  const values = t.rows.filter(r => r.value)
  return { ...t, rows: values.slice(0, 3), more: Math.max(0, values.length - 3) + (t.more ?? 0) }
}

function TipBox({ tip, g, width, hint, faint }: { tip: Tip; g: Omit<Geom, 'ctx'>; width: number; hint: string; faint?: boolean }) {
  const right = tip.at[0] > width / 2, room = (right ? tip.at[0] : width - tip.at[0]) - 8
  return (
    <>
      {tip.cross !== false && <div class="plot-cross" style={{ left: tip.at[0], top: g.top, height: g.bottom - g.top }} />}
      {tip.mark?.map(([x, y, c], i) => <div key={i} class="plot-dot" style={{ left: x, top: y, borderColor: c }} />)}
      <div class={faint ? 'plot-tip faint' : 'plot-tip'} style={{ top: g.top, maxWidth: Math.min(340, room), ...(right ? { right: width - tip.at[0] + 12 } : { left: tip.at[0] + 12 }) }}>
        {!faint && <div class="plot-tip-title">{tip.title}</div>}
        {tip.rows.map((r, i) => (
          <div key={i} class={r.strong ? 'plot-tip-row strong' : 'plot-tip-row'}>
            {r.color && <i style={{ background: r.color }} />}<span>{r.label}</span><b>{r.value}</b>
          </div>
        ))}
        {tip.more ? <div class="plot-tip-more">{tip.more} more</div> : null}
        {hint && <div class="plot-tip-more">{hint}</div>}
      </div>
    </>
  )
}

function paint(canvas: HTMLCanvasElement, box: Element, width: number, p: PlotProps): Omit<Geom, 'ctx'> {
  const dpr = Math.min(3, devicePixelRatio || 1)
  canvas.width = Math.round(width * dpr)
  canvas.height = Math.round(p.height * dpr)
  const ctx = canvas.getContext('2d')!
  ctx.setTransform(dpr, 0, 0, dpr, 0, 0)
  ctx.clearRect(0, 0, width, p.height)
  ctx.font = font
  const colors = colorsOfPage(box)
  const top = 8, bottom = p.height - (p.x.label ? 36 : 22)
  const yTicks = ticks(p.y, p.y.kind === 'category' ? 0 : Math.max(2, Math.min(8, Math.floor((bottom - top) / 30))))
  const widest = Math.max(0, ...yTicks.map(t => ctx.measureText(cut(t.text)).width))
  const left = Math.ceil(Math.max(28, Math.min(140, widest) + 10)) + (p.y.label ? 16 : 0)
  const right = width - 10
  const px = placeOf(p.x), py = placeOf(p.y)
  const g = { left, top, right, bottom, colors, x: (v: number) => left + px(v) * (right - left), y: (v: number) => bottom - py(v) * (bottom - top) }
  axes(ctx, g, p, yTicks)
  ctx.save()
  ctx.beginPath()
  ctx.rect(left - 1, top - 6, right - left + 2, bottom - top + 7)
  ctx.clip()
  p.draw({ ...g, ctx })
  ctx.restore()
  return g
}

const cut = (s: string) => s.length > 20 ? s.slice(0, 19) + '…' : s

function axes(ctx: CanvasRenderingContext2D, g: Omit<Geom, 'ctx'>, p: PlotProps, yTicks: { v: number; text: string }[]) {
  ctx.lineWidth = 1
  ctx.strokeStyle = g.colors.grid
  ctx.fillStyle = g.colors.muted
  ctx.textBaseline = 'middle'
  ctx.textAlign = 'right'
  for (const t of yTicks) {
    const y = Math.round(g.y(t.v)) + 0.5
    if (y < g.top - 4 || y > g.bottom + 4) continue
    ctx.beginPath(); ctx.moveTo(g.left, y); ctx.lineTo(g.right, y); ctx.stroke()
    ctx.fillText(cut(t.text), g.left - 6, y)
  }
  ctx.textBaseline = 'top'
  ctx.textAlign = 'center'
  let last = -1e9
  for (const t of ticks(p.x, p.x.kind === 'category' ? 0 : Math.max(2, Math.floor((g.right - g.left) / 80)))) {
    const x = Math.round(g.x(t.v)) + 0.5
    if (x < g.left - 1 || x > g.right + 1) continue
    const half = ctx.measureText(cut(t.text)).width / 2
    const at = Math.min(Math.max(x, half), g.right + 6 - half)
    if (at - half < last + 8) continue
    ctx.fillText(cut(t.text), at, g.bottom + 7)
    last = at + half
  }
  ctx.strokeStyle = g.colors.line
  ctx.beginPath(); ctx.moveTo(g.left, g.bottom + 0.5); ctx.lineTo(g.right, g.bottom + 0.5); ctx.stroke()
  if (p.x.label) ctx.fillText(p.x.label, (g.left + g.right) / 2, g.bottom + 21)
  if (p.y.label) {
    ctx.save(); ctx.translate(4, (g.top + g.bottom) / 2); ctx.rotate(-Math.PI / 2); ctx.fillText(cutLong(p.y.label), 0, 0); ctx.restore()
  }
}

const cutLong = (s: string) => s.length > 40 ? s.slice(0, 39) + '…' : s
