import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { scaleColor, scaleColors } from '../lib/color'
import { plural, value } from '../lib/format'
import type { ParamAxis } from '../lib/study'
import { useTheme } from '../lib/theme'
import { colorsOfPage, type Tip } from './plot'
import { type Axis, placeOf, ticks } from './scale'

interface Props {
  axes: ParamAxis[]
  objective: { name: string; at: Float64Array; min: number; max: number }
  rank: Float64Array
  open: (i: number) => void
  tip: (i: number) => { title: string; rows: Tip['rows'] }
}

const height = 340, top = 40, bottom = height - 14, mostLines = 3000, most = 14

/** A line for each complete trial across all parameters to its result. */
export function Parallel(p: Props) {
  const box = useRef<HTMLDivElement>(null), canvas = useRef<HTMLCanvasElement>(null)
  const [width, setWidth] = useState(0)
  const [brush, setBrush] = useState<Map<number, [number, number]>>(new Map())
  const [hover, setHover] = useState<{ i: number; x: number; y: number } | null>(null)
  const drag = useRef<{ axis: number; from: number } | null>(null)
  const theme = useTheme()
  const columns = useMemo(() => [...p.axes.slice(0, most), { ...p.objective, log: false, names: null }].map(a => {
    const axis: Axis = a.names ? { min: a.min, max: a.max, kind: 'category', names: a.names } : { min: a.min, max: a.max, log: a.log }
    return { name: a.name, at: a.at, axis, place: placeOf(axis) }
  }), [p.axes, p.objective])
  const shown = useMemo(() => {
    const all: number[] = []
    for (let i = 0; i < p.rank.length; i++) if (!Number.isNaN(p.rank[i])) all.push(i)
    all.sort((a, b) => p.rank[a] - p.rank[b])
    if (all.length <= mostLines) return all
    const best = all.slice(-mostLines / 3), rest = all.slice(0, -mostLines / 3), step = rest.length / (mostLines * 2 / 3)
    return [...Array.from({ length: mostLines * 2 / 3 }, (_, k) => rest[Math.floor(k * step)]), ...best]
  }, [p.rank])
  const complete = useMemo(() => p.rank.reduce((n, r) => n + (Number.isNaN(r) ? 0 : 1), 0), [p.rank])
  const inside = useMemo(() => new Set(shown.filter(i => [...brush].every(([k, [lo, hi]]) => { const v = columns[k].place(columns[k].at[i]); return v >= lo && v <= hi }))), [shown, brush, columns])
  useLayoutEffect(() => {
    const el = box.current!
    const o = new ResizeObserver(() => setWidth(el.clientWidth))
    o.observe(el)
    setWidth(el.clientWidth)
    return () => o.disconnect()
  }, [])
  const least = Math.max(width, columns.length * 92)
  const xAt = (k: number) => 56 + k * (least - 112) / Math.max(1, columns.length - 1)
  const yAt = (k: number, i: number) => { const v = columns[k].at[i]; return Number.isFinite(v) ? bottom - columns[k].place(v) * (bottom - top) : NaN }
  useLayoutEffect(() => {
    if (!width) return
    const c = canvas.current!, dpr = Math.min(3, devicePixelRatio || 1)
    c.width = least * dpr
    c.height = height * dpr
    const ctx = c.getContext('2d')!
    ctx.scale(dpr, dpr)
    const col = colorsOfPage(c)
    const line = (i: number) => {
      ctx.beginPath()
      let down = false
      for (let k = 0; k < columns.length; k++) {
        const y = yAt(k, i)
        if (Number.isNaN(y)) { down = false; continue }
        down ? ctx.lineTo(xAt(k), y) : ctx.moveTo(xAt(k), y)
        down = true
      }
      ctx.stroke()
    }
    ctx.lineWidth = 1
    const dense = shown.length > 300
    const shade = scaleColors()
    for (const i of shown) if (!inside.has(i)) { ctx.globalAlpha = 0.05; ctx.strokeStyle = col.muted; line(i) }
    for (const i of shown) if (inside.has(i)) {
      const r = p.rank[i]
      ctx.globalAlpha = (dense ? 0.08 : 0.3) + (dense ? 0.6 : 0.6) * r ** (dense ? 6 : 2)
      ctx.lineWidth = r > 0.97 ? 1.8 : 1
      ctx.strokeStyle = shade(r)
      line(i)
    }
    if (hover) { ctx.globalAlpha = 1; ctx.lineWidth = 2.6; ctx.strokeStyle = col.accent; line(hover.i) }
    ctx.globalAlpha = 1
    ctx.font = '11px system-ui, "Noto Sans", "DejaVu Sans", sans-serif'
    columns.forEach((a, k) => {
      const x = Math.round(xAt(k)) + 0.5
      ctx.strokeStyle = col.line; ctx.lineWidth = 1
      ctx.beginPath(); ctx.moveTo(x, top - 4); ctx.lineTo(x, bottom + 4); ctx.stroke()
      ctx.textAlign = 'center'
      ctx.fillStyle = col.text
      ctx.font = '600 11.5px system-ui, "Noto Sans", "DejaVu Sans", sans-serif'
      ctx.fillText(a.name.length > 16 ? a.name.slice(0, 15) + '…' : a.name, x, 20)
      ctx.font = '11px system-ui, "Noto Sans", "DejaVu Sans", sans-serif'
      ctx.textAlign = k === columns.length - 1 ? 'left' : 'right'
      for (const t of ticks(a.axis, 5)) {
        const y = bottom - a.place(t.v) * (bottom - top)
        const text = t.text.length > 9 ? t.text.slice(0, 8) + '…' : t.text, w = ctx.measureText(text).width
        const tx = k === columns.length - 1 ? x + 6 : x - 6
        ctx.fillStyle = col.panel; ctx.globalAlpha = 0.75
        ctx.fillRect(k === columns.length - 1 ? tx - 1 : tx - w - 1, y - 7, w + 2, 14)
        ctx.globalAlpha = 1; ctx.fillStyle = col.muted
        ctx.fillText(text, tx, y + 4)
      }
      const b = brush.get(k)
      if (b) {
        ctx.fillStyle = col.accent; ctx.globalAlpha = 0.22
        ctx.fillRect(x - 7, bottom - b[1] * (bottom - top), 14, (b[1] - b[0]) * (bottom - top))
        ctx.globalAlpha = 1
      }
    })
  }, [width, columns, shown, inside, hover?.i, theme, brush])

  const where = (e: PointerEvent) => { const r = canvas.current!.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top] as const }
  const part = (y: number) => Math.min(1, Math.max(0, (bottom - y) / (bottom - top)))
  const near = (px: number, py: number) => {
    let best = -1, leastD = 8
    const k = Math.max(0, Math.min(columns.length - 2, Math.floor((px - 56) / ((least - 112) / Math.max(1, columns.length - 1))))), t = (px - xAt(k)) / (xAt(k + 1) - xAt(k) || 1)
    for (const i of inside) {
      const d = Math.abs(yAt(k, i) + (yAt(Math.min(k + 1, columns.length - 1), i) - yAt(k, i)) * t - py)
      if (d <= leastD) { leastD = d; best = i }
    }
    return best
  }
  const move = (e: PointerEvent) => {
    const [px, py] = where(e)
    if (drag.current) {
      const a = part(drag.current.from), b = part(py)
      setBrush(new Map(brush).set(drag.current.axis, [Math.min(a, b), Math.max(a, b)]))
      return
    }
    const i = near(px, py)
    setHover(i < 0 ? null : { i, x: px, y: py })
  }
  const down = (e: PointerEvent) => {
    const [px, py] = where(e)
    const k = columns.findIndex((_, k) => Math.abs(xAt(k) - px) < 14)
    if (k < 0 || e.pointerType === 'touch') return
    canvas.current!.setPointerCapture(e.pointerId)
    drag.current = { axis: k, from: py }
    const next = new Map(brush)
    next.delete(k)
    setBrush(next)
  }
  const up = (e: PointerEvent) => {
    const [, py] = where(e)
    const d = drag.current
    drag.current = null
    if (d && Math.abs(py - d.from) > 3) return
    if (d) { const next = new Map(brush); next.delete(d.axis); setBrush(next) } else if (hover) p.open(hover.i)
  }
  const t = hover && p.tip(hover.i)
  return (
    <div class="plot" ref={box} style={{ overflowX: 'auto' }}>
      <canvas ref={canvas} role="img" style={{ width: least, height }} onPointerMove={move} onPointerDown={down} onPointerUp={up} onPointerLeave={() => setHover(null)}
        aria-label={`Parallel coordinates of ${plural(shown.length, 'trial')} over ${p.axes.map(a => a.name).join(', ')}; the table of trials has the same values`} />
      {t && hover && <div class="plot-tip" style={{ top: Math.min(hover.y + 10, height - 160), ...(hover.x > width / 2 ? { right: width - hover.x + 14 } : { left: hover.x + 14 }) }}><div class="plot-tip-title">{t.title}</div>{t.rows.map((r, i) => <div class="plot-tip-row" key={i}><span>{r.label}</span><b>{r.value}</b></div>)}</div>}
      <div class="legend" style={{ padding: '4px 8px 8px' }}>
        <span><i class="swatch" style={{ background: scaleColor(1) }} />best</span><span><i class="swatch" style={{ background: scaleColor(0.05) }} />worst</span>
        {shown.length < complete && <span class="muted">the best {plural(mostLines / 3, 'trial')} and an even sample of {plural(complete, 'trial')}</span>}
        {brush.size > 0 && <><span>{plural(inside.size, 'trial')} chosen</span><button class="link" onClick={() => setBrush(new Map())}>Clear</button></>}
        {p.axes.length > most && <span class="muted">the first {most} of {value(p.axes.length)} parameters</span>}
      </div>
    </div>
  )
}
