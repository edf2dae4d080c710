import type { Columns } from './study'

// The hypervolume of studies of two or three objectives, as study compare has it: what the
// front dominates, less being better, up to a tenth of the range beyond the worst values.

export type Point = number[]

/** Comparisons that a history may take, some tenths of a second: beyond, its volumes have fewer places, and of a front that is too large there is none. */
const mostEffort = 2e7, mostStages = 200

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

function covers(a: Point, b: Point): boolean {
  for (let k = 0; k < a.length; k++) if (!(a[k] <= b[k])) return false
  return true
}

/** Takes a point into a front, which is in the order of the first number, and out of it what that covers. */
function joins(front: Point[], p: Point): boolean {
  let lo = 0, hi = front.length // where those begin that are worse in the first number
  while (lo < hi) {
    const mid = (lo + hi) >> 1
    if (front[mid][0] <= p[0]) lo = mid + 1
    else hi = mid
  }
  // Of two numbers the second falls along the front: the one before tells of all.
  for (let k = lo - 1; k >= (p.length === 2 ? Math.max(0, lo - 1) : 0); k--) if (covers(front[k], p)) return false
  front.splice(lo, 0, p)
  let kept = 0
  for (const f of front) if (f === p || !covers(p, f)) front[kept++] = f
  front.length = kept
  return true
}

/** About how many comparisons that takes. */
const effortOf = (front: Point[], p: Point) => p.length === 2 ? 20 : front.length

/** The area that points of two numbers or more dominate with their first two, which are in the order of the first. */
function areaOf(points: Point[], corner: Point): number {
  let area = 0, low = corner[1]
  for (const p of points) {
    if (p[0] >= corner[0] || p[1] >= low) continue
    area += (corner[0] - p[0]) * (low - p[1])
    low = p[1]
  }
  return area
}

/** The volume that points of two or three numbers dominate. */
export function volumeOf(points: Point[], corner: Point): number {
  if (corner.length === 2) return areaOf([...points].sort((a, b) => a[0] - b[0]), corner)
  const byDepth = points.filter(p => p[2] < corner[2]).sort((a, b) => a[2] - b[2]), seen: Point[] = []
  let volume = 0
  byDepth.forEach((p, k) => {
    const place = seen.findIndex(s => s[0] > p[0]), deep = (byDepth[k + 1]?.[2] ?? corner[2]) - p[2]
    seen.splice(place < 0 ? seen.length : place, 0, p)
    if (deep > 0) volume += deep * areaOf(seen, corner)
  })
  return volume
}

/** The volume at trials that added to it; left is how many more did. */
export interface Growth { xs: number[]; ys: number[]; left: number }

interface Stage { trial: number; front: Point[] }

/** How the front grew, at a number of trials of which the last one that added to it is one; null if it is too large. */
function stagesOf(at: number[], points: Point[]): { stages: Stage[]; grown: number } | null {
  const front: Point[] = []
  let stages: Stage[] = [], every = 1, grown = 0, effort = 0, last: Stage | null = null
  for (let i = 0; i < points.length; i++) {
    effort += effortOf(front, points[i])
    if (effort > mostEffort) return null
    if (!joins(front, points[i])) continue
    effort += front.length
    last = { trial: at[i], front }
    if (grown++ % every) continue
    stages.push({ trial: at[i], front: front.slice() })
    if (stages.length < 2 * mostStages) continue
    stages = stages.filter((_, k) => k % 2 === 0)
    every *= 2
  }
  if (last && stages[stages.length - 1].trial !== last.trial) stages.push(last)
  return { stages, grown }
}

/** The hypervolume after each trial that added to it, or after some of them if there are very many; null of a front that is too large. */
export function volumes(c: Columns, down: boolean[]): Growth | null {
  const { at, points } = pointsOf(c, down), corner = cornerOf(points), found = stagesOf(at, points)
  if (!found) return null
  const size = found.stages.at(-1)?.front.length ?? 0, each = corner.length === 2 ? 10 * size : size * size
  const every = Math.max(1, Math.ceil(found.stages.length * each / mostEffort)), n = found.stages.length
  const taken = found.stages.filter((_, k) => (n - 1 - k) % every === 0)
  return { xs: taken.map(s => s.trial), ys: taken.map(s => volumeOf(s.front, corner)), left: found.grown - taken.length }
}
