import { number } from './api'
import type { Json, StudyDetail, TrialColumns, TrialItem } from './types'

// All trials of a study by column, as charts want them: index and number are one.

export interface Columns {
  seq: string
  numbers: Float64Array
  /** a letter for each trial */
  states: string
  values: Float64Array[]
  params: Map<string, Json[]>
  started: Float64Array
  ended: Float64Array
  workers: string[]
}

function floats(list: (number | string)[]): Float64Array {
  const out = new Float64Array(list.length)
  for (let i = 0; i < list.length; i++) {
    const v = list[i]
    out[i] = typeof v === 'number' ? v : Number(v)
  }
  return out
}

export function columnsOf(c: TrialColumns): Columns {
  return {
    seq: c.seq, numbers: floats(c.numbers), states: c.states, values: c.values.map(floats),
    params: new Map(Object.entries(c.params)), started: floats(c.started), ended: floats(c.ended), workers: c.workers,
  }
}

const letters: { [state: string]: string } = { waiting: 'w', running: 'r', paused: 's', complete: 'c', pruned: 'p', failed: 'f' }

function grown(a: Float64Array, n: number): Float64Array {
  const b = new Float64Array(n).fill(NaN)
  b.set(a.subarray(0, Math.min(n, a.length)))
  return b
}

/** Takes in trials that have changed; the old columns stay as they are. */
export function merged(c: Columns, items: TrialItem[]): Columns {
  const n = Math.max(c.numbers.length, ...items.map(t => t.number + 1))
  const out: Columns = {
    seq: c.seq, numbers: grown(c.numbers, n), states: '', values: c.values.map(v => grown(v, n)),
    params: new Map([...c.params].map(([k, v]) => [k, v.slice()])), started: grown(c.started, n), ended: grown(c.ended, n), workers: c.workers.slice(),
  }
  const states = c.states.padEnd(n, 'w').split('')
  for (const t of items) {
    const i = t.number
    out.numbers[i] = i
    states[i] = letters[t.state] ?? 'w'
    out.values.forEach((v, k) => { v[i] = k < t.values.length ? number(t.values[k]) : NaN })
    for (const [name, v] of Object.entries(t.params)) {
      if (!out.params.has(name)) out.params.set(name, new Array(n).fill(null))
      out.params.get(name)![i] = v
    }
    out.started[i] = t.started_ms
    out.ended[i] = t.ended_ms
    out.workers[i] = t.worker ?? '0'
  }
  out.states = states.join('')
  for (const list of out.params.values()) while (list.length < n) list.push(null)
  return out
}

export const lower = (s: StudyDetail, objective: number) => s.directions[objective] !== 'maximize'

/** The best value so far at each trial that improved on it. */
export function bestSoFar(c: Columns, objective: number, down: boolean): { xs: number[]; ys: number[]; at: Set<number> } {
  const xs: number[] = [], ys: number[] = [], at = new Set<number>()
  let best = NaN
  const v = c.values[objective]
  for (let i = 0; i < v.length; i++) {
    if (c.states[i] !== 'c' || !Number.isFinite(v[i])) continue
    if (Number.isNaN(best) || (down ? v[i] < best : v[i] > best)) {
      best = v[i]
      xs.push(i); ys.push(best); at.add(i)
    }
  }
  if (xs.length) { xs.push(v.length - 1); ys.push(best) }
  return { xs, ys, at }
}

/** Places of the complete trials by value, from 0 (worst) to 1 (best); NaN for others. */
export function ranks(c: Columns, objective: number, down: boolean): Float64Array {
  const v = c.values[objective], out = new Float64Array(v.length).fill(NaN)
  const complete = new Uint32Array(v.length)
  let n = 0
  for (let i = 0; i < v.length; i++) if (c.states[i] === 'c' && Number.isFinite(v[i])) complete[n++] = i
  const order = complete.subarray(0, n).sort((a, b) => down ? v[b] - v[a] : v[a] - v[b])
  order.forEach((i, k) => { out[i] = order.length > 1 ? k / (order.length - 1) : 1 })
  return out
}

/** An axis for a parameter: numbers, or the choices that occur. */
export interface ParamAxis { name: string; log: boolean; names: string[] | null; at: Float64Array; min: number; max: number }

export function paramAxis(s: StudyDetail, c: Columns, name: string): ParamAxis {
  const space = s.space.find(p => p.name === name), column = c.params.get(name) ?? []
  const numeric = space ? space.type === 'float' || space.type === 'int' : column.every(v => v === null || typeof v === 'number' || v === 'NaN')
  if (!numeric) {
    const names = [...new Set([...(space?.choices ?? []), ...column.filter(v => v !== null)].map(v => typeof v === 'string' ? v : JSON.stringify(v)))]
    const index = new Map(names.map((n, i) => [n, i]))
    const at = Float64Array.from(column, v => v === null ? NaN : index.get(typeof v === 'string' ? v : JSON.stringify(v))!)
    return { name, log: false, names, at, min: -0.5, max: names.length - 0.5 }
  }
  const at = Float64Array.from(column, v => v === null || typeof v === 'object' ? NaN : Number(v))
  let min = Infinity, max = -Infinity
  for (const v of at) if (Number.isFinite(v)) { if (v < min) min = v; if (v > max) max = v }
  if (space && space.low !== null && space.high !== null) { min = Math.min(min, number(space.low)); max = Math.max(max, number(space.high)) }
  if (!(min <= max)) { min = 0; max = 1 }
  return { name, log: !!space?.log && min > 0, names: null, at, min, max }
}

/** Names of the parameters, the declared ones first. */
export const paramNames = (s: StudyDetail, c: Columns) => [...new Set([...s.space.map(p => p.name), ...c.params.keys()])]

/** The values between which most lie, so that one outlier does not flatten all. */
export function withoutOutliers(list: number[]): [number, number] {
  const s = Float64Array.from(list.filter(Number.isFinite)).sort()
  if (s.length < 8) return [s[0] ?? 0, s[s.length - 1] ?? 1]
  const q = (p: number) => s[Math.floor(p * (s.length - 1))]
  const spread = q(0.75) - q(0.25)
  return [Math.max(s[0], q(0.25) - 3 * spread), Math.min(s[s.length - 1], q(0.75) + 3 * spread)]
}
