import { useCallback, useMemo, useRef, useState } from 'preact/hooks'
import { serverNow } from '../lib/clock'
import type { Columns } from '../lib/study'
import { type Geom, Plot, type Tip } from './plot'
import type { Axis } from './scale'

interface Props { columns: Columns; tip: (i: number) => { title: string; rows: Tip['rows'] }; open: (i: number) => void }

/** Trials over time, a row for each worker; those without one fill rows as they fit. */
export function Timeline({ columns: c, tip, open }: Props) {
  const [range, setRange] = useState<[number, number] | null>(null)
  const drawn = useRef<{ x0: number; x1: number; y: number; i: number }[]>([])
  const { lane, lanes, from, to } = useMemo(() => lanesOf(c), [c])
  const x: Axis = useMemo(() => ({ min: range?.[0] ?? from, max: range?.[1] ?? to, kind: 'time' }), [range, from, to])
  const rowHeight = Math.max(3, Math.min(18, Math.floor(520 / Math.max(1, lanes))))
  const y: Axis = useMemo(() => ({ min: lanes - 0.5, max: -0.5, kind: 'category', names: rowHeight < 12 ? [] : Array.from({ length: lanes }, (_, i) => String(i + 1)) }), [lanes, rowHeight])
  const draw = useCallback((g: Geom) => { drawn.current = drawBars(g, c, lane, rowHeight, to) }, [c, lane, x, y, rowHeight])
  const find = (px: number, py: number) => drawn.current.findLast(b => px >= b.x0 - 2 && px <= b.x1 + 2 && Math.abs(py - b.y) <= rowHeight / 2 + 1)
  const stops = useCallback(() => [...c.started].filter(v => v > 0 && v >= x.min && v <= x.max).sort((a, b) => a - b), [c, x])
  if (!(to > from)) return <div class="empty"><strong>No trial has begun</strong></div>
  return (
    <Plot height={Math.max(140, lanes * rowHeight + 40)} x={x} y={y} label={`Timeline of ${c.numbers.length} trials in ${lanes} rows`} draw={draw} stops={stops} table={() => [['number', 'row', 'began', 'ended'], ...Array.from(lane, (l, i) => [i, l + 1, c.started[i], c.ended[i]])]} zoom={(a, b) => setRange([a, b])} reset={() => setRange(null)}
      tip={(px, py) => {
        const b = find(px, py) ?? drawn.current.find(b => Math.abs(b.x0 - px) < 1)
        return b ? { at: [Math.max(b.x0, Math.min(px, b.x1)), b.y], cross: false, ...tip(b.i) } : null
      }}
      pick={(px, py) => { const b = find(px, py); if (b) open(b.i) }} />
  )
}

function lanesOf(c: Columns) {
  const n = c.numbers.length, lane = new Int32Array(n).fill(-1)
  const byWorker = new Map<number, number>(), free: number[] = []
  let from = Infinity, to = -Infinity, lanes = 0
  const order = [...c.started.keys()].filter(i => c.started[i] > 0).sort((a, b) => c.started[a] - c.started[b])
  for (const i of order) {
    const end = c.ended[i] || serverNow()
    from = Math.min(from, c.started[i])
    to = Math.max(to, end)
    const worker = c.workers.at[i]
    if (worker > 0) {
      if (!byWorker.has(worker)) byWorker.set(worker, lanes++)
      lane[i] = byWorker.get(worker)!
      continue
    }
    let k = free.findIndex(until => until >= 0 && until <= c.started[i])
    if (k < 0) { k = lanes++; while (free.length < k) free.push(-1) }
    free[k] = end
    lane[i] = k
  }
  return { lane, lanes, from, to: to > from ? to : from + 1000 }
}

/** A cross in the middle of a bar: what failed is told by more than its colour. */
function strike(ctx: CanvasRenderingContext2D, color: string, x: number, y: number) {
  ctx.strokeStyle = color
  ctx.lineWidth = 1.5
  ctx.beginPath(); ctx.moveTo(x - 2.5, y - 2.5); ctx.lineTo(x + 2.5, y + 2.5); ctx.moveTo(x + 2.5, y - 2.5); ctx.lineTo(x - 2.5, y + 2.5)
  ctx.stroke()
}

function drawBars(g: Geom, c: Columns, lane: Int32Array, rowHeight: number, now: number) {
  const { ctx, colors } = g
  const tone: { [s: string]: string } = { c: colors.good, r: colors.live, p: colors.pruned, f: colors.bad, s: colors.warn, w: colors.muted }
  const out: { x0: number; x1: number; y: number; i: number }[] = []
  const h = Math.max(2, rowHeight - 3)
  for (let i = 0; i < lane.length; i++) {
    if (lane[i] < 0) continue
    const x0 = g.x(c.started[i]), x1 = Math.max(x0 + 1, g.x(c.ended[i] || now))
    if (x1 < g.left || x0 > g.right) continue
    const y = g.y(lane[i])
    ctx.fillStyle = tone[c.states[i]] ?? colors.muted
    const wide = Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 1 : 0)), high = c.states[i] === 'p' ? Math.max(2, h / 2) : h
    ctx.fillRect(x0, y - high / 2, wide, high)
    if (c.states[i] === 'f' && wide > 5 && h > 5) strike(ctx, colors.panel, x0 + wide / 2, y)
    out.push({ x0, x1, y, i })
  }
  return out
}
