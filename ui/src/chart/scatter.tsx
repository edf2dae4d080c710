import { useCallback, useRef } from 'preact/hooks'
import { type Geom, Plot, type Tip } from './plot'
import type { Axis } from './scale'

/** Dots in a plane, with a line on top if wanted. All columns are of one length. */
export interface ScatterProps {
  x: Axis
  y: Axis
  xs: ArrayLike<number>
  ys: ArrayLike<number>
  color: (i: number, g: Geom) => string
  /** points that stand out are drawn last */
  strong?: (i: number) => boolean
  line?: { xs: number[]; ys: number[]; steps?: boolean }
  label: string
  height?: number
  tip: (i: number) => { title: string; rows: Tip['rows'] }
  open?: (i: number) => void
  zoom?: (from: number, to: number) => void
  reset?: () => void
}

export function Scatter(p: ScatterProps) {
  const grid = useRef<{ cells: Map<number, number[]>; px: Float32Array; py: Float32Array } | null>(null)
  const draw = useCallback((g: Geom) => { grid.current = drawDots(g, p) }, [p.x, p.y, p.xs, p.ys, p.color, p.line, p.strong])
  const find = (px: number, py: number): number => {
    const s = grid.current
    if (!s) return -1
    let best = -1, least = 18 * 18
    for (let dx = -1; dx <= 1; dx++) for (let dy = -1; dy <= 1; dy++) {
      for (const i of s.cells.get(cell(px + dx * size, py + dy * size)) ?? []) {
        const d = (s.px[i] - px) ** 2 + (s.py[i] - py) ** 2
        if (d < least) { least = d; best = i }
      }
    }
    return best
  }
  const tip = (px: number, py: number, g: Omit<Geom, 'ctx'>): Tip | null => {
    let i = find(px, py)
    if (i < 0 && Math.abs(py - (g.top + g.bottom) / 2) < 1) i = column(p, px, g)
    const s = grid.current
    if (i < 0 || !s) return null
    return { at: [s.px[i], s.py[i]], cross: false, mark: [[s.px[i], s.py[i], g.colors.accent]], ...p.tip(i) }
  }
  const stops = () => {
    const all = new Set<number>()
    for (let i = 0; i < p.xs.length; i++) if (Number.isFinite(p.ys[i]) && p.xs[i] >= p.x.min && p.xs[i] <= p.x.max) all.add(p.xs[i])
    return [...all].sort((a, b) => a - b)
  }
  const pick = (px: number, py: number) => {
    const i = find(px, py)
    if (i >= 0) p.open?.(i)
  }
  return <Plot height={p.height ?? 240} x={p.x} y={p.y} label={p.label} draw={draw} tip={tip} stops={stops} pick={pick} zoom={p.zoom} reset={p.reset} />
}

const size = 20
const cell = (px: number, py: number) => Math.floor(px / size) * 4096 + Math.floor(py / size)

function drawDots(g: Geom, p: ScatterProps) {
  const { ctx } = g
  const n = p.xs.length
  const px = new Float32Array(n), py = new Float32Array(n)
  const cells = new Map<number, number[]>()
  const r = n > 5000 ? 1.6 : n > 800 ? 2.2 : 3.2
  const seen = new Set<number>()
  ctx.globalAlpha = n > 5000 ? 0.55 : n > 800 ? 0.7 : 0.85
  let last = ''
  const put = (i: number, radius: number) => {
    const c = p.color(i, g)
    if (c !== last) ctx.fillStyle = last = c
    if (radius < 2) { ctx.fillRect(px[i] - radius, py[i] - radius, 2 * radius, 2 * radius); return }
    ctx.beginPath(); ctx.arc(px[i], py[i], radius, 0, 6.3); ctx.fill()
  }
  for (let i = 0; i < n; i++) {
    if (!Number.isFinite(p.xs[i]) || !Number.isFinite(p.ys[i])) { px[i] = py[i] = -1e4; continue }
    px[i] = g.x(p.xs[i]); py[i] = g.y(p.ys[i])
    const strong = p.strong?.(i)
    if (n > 5000 && !strong) { // dots on one spot are one dot
      const spot = Math.round(px[i]) * 8192 + Math.round(py[i])
      if (seen.has(spot)) continue
      seen.add(spot)
    }
    const k = cell(px[i], py[i]), list = cells.get(k)
    if (list) list.push(i)
    else cells.set(k, [i])
    if (!strong) put(i, r)
  }
  ctx.globalAlpha = 1
  if (p.line) drawPath(g, p.line)
  for (let i = 0; i < n; i++) if (p.strong?.(i) && Number.isFinite(p.ys[i])) put(i, r + 1.2)
  return { cells, px, py }
}

function drawPath(g: Geom, l: { xs: number[]; ys: number[]; steps?: boolean }) {
  const { ctx } = g
  ctx.strokeStyle = g.colors.accent
  ctx.lineWidth = 1.8
  ctx.lineJoin = 'round'
  ctx.beginPath()
  l.xs.forEach((v, i) => {
    const x = g.x(v), y = g.y(l.ys[i])
    if (i === 0) ctx.moveTo(x, y)
    else {
      if (l.steps) ctx.lineTo(x, g.y(l.ys[i - 1]))
      ctx.lineTo(x, y)
    }
  })
  ctx.stroke()
}

/** column is the dot of a column of pixels that is nearest, for the keyboard. */
function column(p: ScatterProps, px: number, g: Omit<Geom, 'ctx'>): number {
  let best = -1, least = Infinity
  for (let i = 0; i < p.xs.length; i++) {
    if (!Number.isFinite(p.ys[i])) continue
    const d = Math.abs(g.x(p.xs[i]) - px)
    if (d < least) { least = d; best = i }
  }
  return best
}
