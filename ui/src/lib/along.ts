import type { XKind } from '../chart/curves'
import type { Piece } from './runs'

/** Where the steps of a process lie along a metric; NaN outside of where the metric is known. */
export type Along = (steps: number[], segment?: number, older?: boolean) => number[]

interface Known { steps: number[]; values: number[] }

/** The horizontal axis of curves: when the run began, and for a metric as axis where steps lie along it. */
export interface Across { kind: XKind; first: number; along?: Along }

function known(pieces: Piece[]): Known {
  const all: [number, number][] = pieces.flatMap(p => p.steps.map((s, i): [number, number] => [s, p.values[i]])).filter(([, v]) => Number.isFinite(v))
  all.sort((a, b) => a[0] - b[0])
  return { steps: all.map(a => a[0]), values: all.map(a => a[1]) }
}

/** The value at a step: that of the last point there, or between its neighbours by how near they are. */
function valueAt({ steps, values }: Known, step: number): number {
  let lo = 0, hi = steps.length // the first point behind the step
  while (lo < hi) {
    const mid = (lo + hi) >> 1
    if (steps[mid] <= step) lo = mid + 1
    else hi = mid
  }
  if (lo === 0) return NaN
  if (steps[lo - 1] === step) return values[lo - 1]
  return lo === steps.length ? NaN : values[lo - 1] + (values[lo] - values[lo - 1]) * (step - steps[lo - 1]) / (steps[lo] - steps[lo - 1])
}

/** Steps along a metric: of the process that wrote them, or of what counts if that has not written the metric. */
export function alongOf(pieces: Piece[]): Along {
  const cache = new Map<string, Known>(), counts = known(pieces.filter(p => !p.older))
  return (steps, segment, older = false) => {
    const key = `${segment} ${older}`
    let own = segment === undefined ? counts : cache.get(key)
    if (!own) {
      const list = pieces.filter(p => p.segment === segment && p.older === older)
      cache.set(key, own = list.length ? known(list) : counts)
    }
    return steps.map(s => valueAt(own, s))
  }
}

/** The places of points on the axis, and their values; along a metric in its order, without those that have no place. */
export function placed(p: Piece, x: Across): { xs: number[]; ys: number[] } {
  if (x.kind === 'step') return { xs: p.steps, ys: p.values }
  if (x.kind === 'time') return { xs: p.times, ys: p.values }
  if (x.kind === 'relative') return { xs: p.times.map(t => t - x.first), ys: p.values }
  const at = x.along?.(p.steps, p.segment, p.older) ?? []
  const order = [...at.keys()].filter(i => !Number.isNaN(at[i])).sort((a, b) => at[a] - at[b] || a - b)
  return { xs: order.map(i => at[i]), ys: order.map(i => p.values[i]) }
}

/** The place of what happened at a step and a time. */
export const placeOf = (step: number, ms: number, x: Across) => x.kind === 'step' ? step : x.kind === 'time' ? ms : x.kind === 'relative' ? ms - x.first : x.along?.([step])[0] ?? NaN
