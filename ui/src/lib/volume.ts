import type { Columns } from './study'

// The hypervolume of studies of two or three objectives, as study compare has it: what the
// front dominates, less being better, up to a tenth of the range beyond the worst values.

export type Point = number[]

/** Comparisons that a history may take, a tenth of a second; beyond it has fewer places. */
const mostEffort = 3e7

/** The complete trials with finite values, as points of which less is better. */
export function pointsOf(c: Columns, down: boolean[]): { at: number[]; points: Point[] } {
  const at: number[] = [], points: Point[] = []
  for (let i = 0; i < c.numbers.length; i++) {
    if (c.states[i] !== 'c' || !c.values.every(v => Number.isFinite(v[i]))) continue
    at.push(i)
    points.push(c.values.map((v, k) => down[k] ? v[i] : -v[i]))
  }
  return { at, points }
}

/** Where volumes go up to. */
export function cornerOf(points: Point[]): Point {
  return (points[0] ?? []).map((_, k) => {
    let low = Infinity, high = -Infinity
    for (const p of points) { if (p[k] < low) low = p[k]; if (p[k] > high) high = p[k] }
    return low === high ? high + 1 : high + (high / 2 - low / 2) / 5
  })
}

const covers = (a: Point, b: Point) => a.every((v, k) => v <= b[k])

/** The front with a point more, or null if that adds nothing. */
function joined(front: Point[], p: Point): Point[] | null {
  if (front.some(f => covers(f, p))) return null
  const rest = front.filter(f => !covers(p, f))
  rest.push(p)
  return rest
}

/** The area that points of two numbers dominate. */
function areaOf(points: Point[], [x1, y1]: Point): number {
  let area = 0, low = y1
  for (const [x, y] of [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
    if (x >= x1 || y >= low) continue
    area += (x1 - x) * (low - y)
    low = y
  }
  return area
}

/** The volume that a front of two or three numbers dominates. */
export function volumeOf(front: Point[], corner: Point): number {
  if (corner.length === 2) return areaOf(front, corner)
  const byDepth = front.filter(p => p[2] < corner[2]).sort((a, b) => a[2] - b[2])
  let volume = 0
  byDepth.forEach((p, k) => {
    const deep = (byDepth[k + 1]?.[2] ?? corner[2]) - p[2]
    if (deep > 0) volume += deep * areaOf(byDepth.slice(0, k + 1), corner)
  })
  return volume
}

/** The hypervolume after each trial that added to it, or after some of them if there are very many. */
export function volumes(c: Columns, down: boolean[]): { xs: number[]; ys: number[]; left: number } {
  const { at, points } = pointsOf(c, down), corner = cornerOf(points)
  const grown: { trial: number; front: Point[] }[] = []
  let front: Point[] = []
  points.forEach((p, i) => {
    const next = joined(front, p)
    if (next) grown.push({ trial: at[i], front: front = next })
  })
  const each = corner.length === 2 ? front.length * 10 : front.length ** 2 * 5
  const every = Math.max(1, Math.ceil(grown.length * each / mostEffort))
  const taken = grown.filter((_, k) => (grown.length - 1 - k) % every === 0)
  return { xs: taken.map(g => g.trial), ys: taken.map(g => volumeOf(g.front, corner)), left: grown.length - taken.length }
}
