import { number } from './api'
import { text } from './format'
import { parse } from './json'
import type { Json, StudyDetail, TrialItem } from './types'

// All trials of a study by column, as charts want them: index and number are one. The
// server sends them as arrays of numbers, which are used as they are.

/** A column of numbers, or of places in values, from 1; 0 is none there, NaN here. */
export interface Param { at: Float64Array; values: Json[] | null }

export interface Columns {
  seq: string
  numbers: Float64Array
  /** a letter for each trial */
  states: string
  values: Float64Array[]
  params: Map<string, Param>
  started: Float64Array
  ended: Float64Array
  workers: Param
}

interface PackedHead { seq: string; trials: number; columns: { of: string; name: string; kind: 'u8' | 'u16' | 'u32' | 'f64'; at: number; values?: Json[] }[] }

export const packedType = 'application/vnd.foldlog.columns'

const arrays = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array }

/** Columns as the server packs them: a line of JSON, and numbers that begin where it says. */
export function unpacked(bytes: ArrayBuffer): Columns {
  const end = new Uint8Array(bytes).indexOf(10) + 1
  const head = parse<PackedHead>(new TextDecoder().decode(new Uint8Array(bytes, 0, end)))
  const empty = () => new Float64Array(head.trials)
  const c: Columns = { seq: head.seq, numbers: empty(), states: '', values: [], params: new Map(), started: empty(), ended: empty(), workers: { at: empty(), values: [] } }
  for (const column of head.columns) {
    const raw = new arrays[column.kind](bytes, end + column.at, head.trials)
    const at = raw instanceof Float64Array ? raw : Float64Array.from(raw)
    switch (column.of) {
      case 'number': c.numbers = at; break
      case 'state': c.states = new TextDecoder().decode(raw as Uint8Array<ArrayBuffer>); break
      case 'value': c.values[Number(column.name)] = at; break
      case 'param': c.params.set(column.name, { at, values: column.values ?? null }); break
      case 'started': c.started = at; break
      case 'ended': c.ended = at; break
      case 'worker': c.workers = { at, values: column.values ?? [] }; break
    }
  }
  return c
}

/** The value of a trial in a column, null for none. */
export const valueOf = (p: Param | undefined, i: number): Json => {
  const v = p ? p.at[i] : NaN
  return p?.values ? (v > 0 ? p.values[v - 1] : null) : Number.isNaN(v) || v === undefined ? null : v
}

const letters: { [state: string]: string } = { waiting: 'w', running: 'r', paused: 's', complete: 'c', pruned: 'p', failed: 'f' }

function grown(a: Float64Array, n: number): Float64Array {
  const b = new Float64Array(n).fill(NaN)
  b.set(a.subarray(0, Math.min(n, a.length)))
  return b
}

const spelling = (v: Json) => typeof v === 'string' ? v : text(v)

/** Puts a value into a column that is not shared; one of numbers becomes one of values for what is none. */
function put(p: Param, i: number, v: Json) {
  if (p.values === null && typeof v === 'number') { p.at[i] = v; return }
  if (p.values === null) {
    const values = [...new Set(p.at)].filter(x => !Number.isNaN(x)), places = new Map(values.map((x, k) => [x, k + 1]))
    p.values = values
    p.at = p.at.map(x => places.get(x) ?? 0)
  }
  let k = p.values.findIndex(x => spelling(x) === spelling(v))
  if (k < 0) k = p.values.push(v) - 1
  p.at[i] = k + 1
}

const widened = (p: Param, n: number): Param => ({ at: grown(p.at, n), values: p.values?.slice() ?? null })

/** Takes in trials that have changed; the old columns stay as they are. */
export function merged(c: Columns, items: TrialItem[]): Columns {
  const n = items.reduce((most, t) => Math.max(most, t.number + 1), c.numbers.length)
  const out: Columns = {
    seq: c.seq, numbers: grown(c.numbers, n), states: '', values: c.values.map(v => grown(v, n)),
    params: new Map([...c.params].map(([k, p]) => [k, widened(p, n)])), started: grown(c.started, n), ended: grown(c.ended, n), workers: widened(c.workers, n),
  }
  const states = c.states.padEnd(n, 'w').split('')
  for (const t of items) {
    const i = t.number
    out.numbers[i] = i
    states[i] = letters[t.state] ?? 'w'
    out.values.forEach((v, k) => { v[i] = k < t.values.length ? number(t.values[k]) : NaN })
    for (const [name, v] of Object.entries(t.params)) {
      if (!out.params.has(name)) out.params.set(name, { at: new Float64Array(n).fill(NaN), values: null })
      put(out.params.get(name)!, i, v)
    }
    out.started[i] = t.started_ms
    out.ended[i] = t.ended_ms
    if (t.worker) put(out.workers, i, t.worker)
  }
  out.states = states.join('')
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
  const space = s.space.find(p => p.name === name), column = c.params.get(name)
  const log = !!space?.log
  if (column?.values || space && space.type !== 'float' && space.type !== 'int') {
    const choices = [...new Set([...(space?.choices ?? []), ...(column?.values ?? [])].map(spelling))]
    const index = new Map(choices.map((n, i) => [n, i]))
    const places = column?.values?.map(v => index.get(spelling(v))!) ?? []
    const at = column ? column.at.map(k => column.values ? places[k - 1] ?? NaN : NaN) : new Float64Array(0)
    return { name, log: false, names: choices, at, min: -0.5, max: choices.length - 0.5 }
  }
  const at = column?.at ?? new Float64Array(c.numbers.length).fill(NaN)
  let min = Infinity, max = -Infinity
  for (const v of at) if (Number.isFinite(v)) { if (v < min) min = v; if (v > max) max = v }
  if (space && space.low !== null && space.high !== null) { min = Math.min(min, number(space.low)); max = Math.max(max, number(space.high)) }
  if (!(min <= max)) { min = 0; max = 1 }
  const wide = !space && spansDecades(at)
  return { name, log: (log || wide) && min > 0, names: null, at, min, max }
}

/** An axis for values that nothing is declared of: of numbers, or of the values there are. */
export function axisOf(name: string, list: Json[]): ParamAxis {
  const given = list.filter(v => v !== null)
  if (given.length && given.every(v => typeof v === 'number' && Number.isFinite(v))) {
    const at = Float64Array.from(list, v => v === null ? NaN : v as number), s = finite(at).sort(), min = s[0], max = s[s.length - 1]
    return { name, log: spansDecades(at), names: null, at, min, max: max > min ? max : min + 1 }
  }
  const names = [...new Set(given.map(spelling))].sort((a, b) => a.localeCompare(b, undefined, { numeric: true })), index = new Map(names.map((n, i) => [n, i]))
  return { name, log: false, names, at: Float64Array.from(list, v => v === null ? NaN : index.get(spelling(v))!), min: -0.5, max: names.length - 0.5 }
}

/** Places of values, from 0 (worst) to 1 (best); NaN for what is no number. */
export function rankOf(v: Float64Array, down: boolean): Float64Array {
  const out = new Float64Array(v.length).fill(NaN)
  const order = [...v.keys()].filter(i => Number.isFinite(v[i])).sort((a, b) => down ? v[b] - v[a] : v[a] - v[b])
  order.forEach((i, k) => { out[i] = order.length > 1 ? k / (order.length - 1) : 1 })
  return out
}

/** Whether values of which nothing is declared spread as those of a logarithmic scale do: their median tells. */
function spansDecades(list: ArrayLike<number>): boolean {
  const s = finite(list).sort(), [low, mid, high] = [0.05, 0.5, 0.95].map(q => s[Math.round(q * (s.length - 1))])
  if (s.length < 3 || !(s[0] > 0) || high / low < 10) return false
  const off = (a: number, b: number, c: number) => Math.abs((b - a) / (c - a) - 0.5)
  return off(Math.log(low), Math.log(mid), Math.log(high)) < off(low, mid, high) - 0.1
}

/** Names of the parameters, the declared ones first. */
export const paramNames = (s: StudyDetail, c: Columns) => [...new Set([...s.space.map(p => p.name), ...c.params.keys()])]

/** What is finite of a list, in an array of its own. */
export function finite(list: ArrayLike<number>, also: (i: number) => boolean = () => true): Float64Array {
  const out = new Float64Array(list.length)
  let n = 0
  for (let i = 0; i < list.length; i++) if (Number.isFinite(list[i]) && also(i)) out[n++] = list[i]
  return out.subarray(0, n)
}

/** The values between which most lie, so that one outlier does not flatten all. */
export function withoutOutliers(list: ArrayLike<number>): [number, number] {
  const s = finite(list).sort()
  if (s.length < 8) return [s[0] ?? 0, s[s.length - 1] ?? 1]
  const q = (p: number) => s[Math.floor(p * (s.length - 1))]
  const spread = q(0.75) - q(0.25)
  return [Math.max(s[0], q(0.25) - 3 * spread), Math.min(s[s.length - 1], q(0.75) + 3 * spread)]
}
