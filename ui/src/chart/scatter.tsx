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
  /** what a point is drawn as, a dot unless told: no difference is one of colour alone */
  shape?: (i: number) => Shape
  /** points that stand out are drawn last */
  strong?: (i: number) => boolean
  line?: { xs: number[]; ys: number[]; steps?: boolean }
  /** points without a value that are marked at the lower edge */
  lost?: (i: number) => boolean
  label: string
  height?: number
  tip: (i: number) => { title: string; rows: Tip['rows'] }
  open?: (i: number) => void
  zoom?: (from: number, to: number) => void
  reset?: () => void
}

export type Shape = 'dot' | 'ring' | 'cross'

export function Scatter(p: ScatterProps) {
  const grid = useRef<Grid | null>(null)
  const draw = useCallback((g: Geom) => { grid.current = drawDots(g, p) }, [p.x, p.y, p.xs, p.ys, p.color, p.shape, p.line, p.strong, p.lost])
  const tip = (px: number, py: number, g: Omit<Geom, 'ctx'>): Tip | null => {
    let i = nearest(grid.current, px, py)
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
    const i = nearest(grid.current, px, py)
    if (i >= 0) p.open?.(i)
  }
  return <Plot height={p.height ?? 240} x={p.x} y={p.y} label={p.label} draw={draw} tip={tip} stops={stops} pick={pick} zoom={p.zoom} reset={p.reset}
    table={() => [['number', p.x.label ?? 'x', p.y.label ?? 'y'], ...Array.from(p.xs, (v, i) => [i, v, p.ys[i]])]} />
}

/** Where the dots are: of each square of the plane the last dot, and of each dot the one before it in its square. */
interface Grid { px: Float32Array; py: Float32Array; across: number; head: Int32Array; before: Int32Array }

const size = 20

function nearest(s: Grid | null, px: number, py: number): number {
  let best = -1, least = 18 * 18
  if (!s) return best
  for (let dx = -1; dx <= 1; dx++) for (let dy = -1; dy <= 1; dy++) {
    const x = Math.floor(px / size) + dx, y = Math.floor(py / size) + dy
    if (x < 0 || y < 0 || x >= s.across) continue
    for (let i = s.head[y * s.across + x] ?? -1; i >= 0; i = s.before[i]) {
      const d = (s.px[i] - px) ** 2 + (s.py[i] - py) ** 2
      if (d < least) { least = d; best = i }
    }
  }
  return best
}

const known = new Map<string, [number, number, number]>()
let reader: CanvasRenderingContext2D | null = null

/** A colour of style sheets as numbers. */
function rgbOf(color: string): [number, number, number] {
  const old = known.get(color)
  if (old) return old
  reader ??= document.createElement('canvas').getContext('2d')!
  reader.fillStyle = color
  const n = parseInt(String(reader.fillStyle).slice(1), 16)
  const rgb: [number, number, number] = [n >> 16, n >> 8 & 255, n & 255]
  known.set(color, rgb)
  return rgb
}

/** Very many dots, as pixels: to draw each as a shape takes a browser a second. */
class Cloud {
  private readonly scale = Math.min(3, devicePixelRatio || 1)
  private readonly image: ImageData
  private readonly spots: Uint8Array

  constructor(private readonly wide: number, high: number) {
    this.image = new ImageData(Math.ceil(wide * this.scale), Math.ceil(high * this.scale))
    this.spots = new Uint8Array((wide + 1) * (high + 1))
  }

  /** Puts a dot there, unless there is one on that spot. */
  add(x: number, y: number, color: string): boolean {
    const spot = Math.round(y) * this.wide + Math.round(x)
    if (this.spots[spot]) return false
    this.spots[spot] = 1
    const rgb = rgbOf(color)
    const { width, height, data } = this.image, side = Math.round(3 * this.scale)
    const x0 = Math.round(x * this.scale - side / 2), y0 = Math.round(y * this.scale - side / 2)
    for (let py = Math.max(0, y0); py < Math.min(height, y0 + side); py++) for (let px = Math.max(0, x0); px < Math.min(width, x0 + side); px++) {
      const k = 4 * (py * width + px), part = data[k + 3] === 0 ? 1 : 0.5
      for (let c = 0; c < 3; c++) data[k + c] += (rgb[c] - data[k + c]) * part
      data[k + 3] += (255 - data[k + 3]) * 0.32
    }
    return true
  }

  draw(ctx: CanvasRenderingContext2D) {
    const canvas = document.createElement('canvas')
    canvas.width = this.image.width
    canvas.height = this.image.height
    canvas.getContext('2d')!.putImageData(this.image, 0, 0)
    ctx.drawImage(canvas, 0, 0, this.image.width / this.scale, this.image.height / this.scale)
  }
}

function drawDots(g: Geom, p: ScatterProps): Grid {
  const { ctx } = g
  const n = p.xs.length, many = n > 3000
  const wide = Math.ceil(g.right) + 1, high = Math.ceil(g.bottom) + 1, across = Math.ceil(wide / size) + 1
  const px = new Float32Array(n).fill(-1e4), py = new Float32Array(n).fill(-1e4)
  const head = new Int32Array(across * (Math.ceil(high / size) + 1)).fill(-1), before = new Int32Array(n).fill(-1)
  const r = n > 5000 ? 1.6 : n > 800 ? 2.2 : 3.2
  const cloud = many ? new Cloud(wide, high) : null, strong: number[] = []
  let last = ''
  const put = (i: number, radius: number) => {
    const c = p.color(i, g)
    if (c !== last) ctx.fillStyle = ctx.strokeStyle = last = c
    const shape = p.shape?.(i)
    if (shape && shape !== 'dot') { outline(ctx, shape, px[i], py[i], Math.max(2, radius)); return }
    if (radius < 2) { ctx.fillRect(px[i] - radius, py[i] - radius, 2 * radius, 2 * radius); return }
    ctx.beginPath(); ctx.arc(px[i], py[i], radius, 0, 6.3); ctx.fill()
  }
  ctx.globalAlpha = many ? 1 : n > 800 ? 0.7 : 0.85
  for (let i = 0; i < n; i++) {
    const there = Number.isFinite(p.ys[i])
    if (!Number.isFinite(p.xs[i]) || !there && !p.lost?.(i)) continue
    const x = g.x(p.xs[i]), y = there ? g.y(p.ys[i]) : g.bottom - 4
    if (!(x >= 0 && x < wide && y >= 0 && y < high)) continue
    px[i] = x; py[i] = y
    const stands = p.strong?.(i)
    if (cloud && !stands && !cloud.add(x, y, p.color(i, g))) continue
    const k = Math.floor(y / size) * across + Math.floor(x / size)
    before[i] = head[k]
    head[k] = i
    if (stands) strong.push(i)
    else if (!cloud) put(i, r)
  }
  cloud?.draw(ctx)
  ctx.globalAlpha = 1
  if (p.line) drawPath(g, p.line, cloud !== null)
  for (const i of strong) {
    if (cloud) {
      ctx.fillStyle = last = g.colors.panel
      ctx.beginPath(); ctx.arc(px[i], py[i], r + 2.6, 0, 6.3); ctx.fill()
    }
    put(i, r + 1.2)
  }
  return { px, py, across, head, before }
}

function outline(ctx: CanvasRenderingContext2D, shape: Shape, x: number, y: number, r: number) {
  ctx.lineWidth = 1.6
  ctx.beginPath()
  if (shape === 'ring') ctx.arc(x, y, r - 0.3, 0, 6.3)
  else { ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x + r, y - r); ctx.lineTo(x - r, y + r) }
  ctx.stroke()
}

function drawPath(g: Geom, l: { xs: number[]; ys: number[]; steps?: boolean }, crowd: boolean) {
  const { ctx } = g
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
  if (crowd) { // a rim, so that it stands out
    ctx.strokeStyle = g.colors.panel
    ctx.lineWidth = 4
    ctx.stroke()
  }
  ctx.strokeStyle = g.colors.accent
  ctx.lineWidth = 1.8
  ctx.stroke()
}

/** column is the dot of a column of pixels that is nearest, for the keyboard. */
function column(p: ScatterProps, px: number, g: Omit<Geom, 'ctx'>): number {
  let best = -1, least = Infinity
  for (let i = 0; i < p.xs.length; i++) {
    const y = g.y(p.ys[i])
    if (!(y >= g.top && y <= g.bottom)) continue
    const d = Math.abs(g.x(p.xs[i]) - px)
    if (d < least) { least = d; best = i }
  }
  return best
}
