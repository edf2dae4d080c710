import { among, count, value } from '../lib/format'

export interface Axis {
  min: number
  max: number
  log?: boolean
  /** number by default; time is milliseconds of the epoch, duration milliseconds, category whole numbers into names */
  kind?: 'number' | 'integer' | 'time' | 'duration' | 'category'
  names?: string[]
  label?: string
}

/** place of a value on an axis, from 0 to 1; values a logarithm lacks are at 0. */
export function placeOf(a: Axis): (v: number) => number {
  if (a.log) {
    const lo = Math.log10(a.min), hi = Math.log10(a.max)
    return v => v > 0 ? (Math.log10(v) - lo) / (hi - lo || 1) : 0
  }
  // The span of ±1e308 is no number: halves are.
  if (!Number.isFinite(a.max - a.min)) return v => (v / 2 - a.min / 2) / (a.max / 2 - a.min / 2)
  const span = a.max - a.min || 1
  return v => (v - a.min) / span
}

export function valueAt(a: Axis, part: number): number {
  if (a.log) return 10 ** (Math.log10(a.min) + part * (Math.log10(a.max) - Math.log10(a.min)))
  if (!Number.isFinite(a.max - a.min)) return (a.min / 2 + part * (a.max / 2 - a.min / 2)) * 2
  return a.min + part * (a.max - a.min)
}

/** An axis that holds finite values with a little air, and is never empty. */
export function around(min: number, max: number, opts: { log?: boolean; air?: number } = {}): Axis {
  if (!(min <= max)) [min, max] = opts.log ? [1, 10] : [0, 1]
  if (opts.log) {
    if (min === max) { min = Math.max(min / 2, 5e-324); max = Math.min(2 * max, 1.79e308) }
    const air = (max / min) ** (opts.air ?? 0.05)
    return { min: Math.max(min / air, 5e-324), max: Math.min(max * air, 1.79e308), log: true }
  }
  if (min === max) {
    const d = Math.abs(min) * 0.1 || 1
    return { min: min - d, max: max + d }
  }
  const d = (max - min) * (opts.air ?? 0.05)
  return Number.isFinite(d) && Number.isFinite(min - d) && Number.isFinite(max + d) ? { min: min - d, max: max + d } : { min, max }
}

export interface Tick { v: number; text: string }

export function ticks(a: Axis, room: number): Tick[] {
  if (a.kind === 'category') return (a.names ?? []).map((text, v) => ({ v, text }))
  if (a.kind === 'time') return timeTicks(a.min, a.max, room)
  if (a.kind === 'duration') return durationTicks(a.min, a.max, room)
  if (a.log && a.max / a.min >= 8) return logTicks(a, room)
  return linearTicks(a, room, a.kind === 'integer')
}

function stepOf(span: number, room: number): number {
  const raw = span / Math.max(1, room), power = 10 ** Math.floor(Math.log10(raw)), f = raw / power
  return (f <= 1 ? 1 : f <= 2 ? 2 : f <= 5 ? 5 : 10) * power
}

function linearTicks(a: Axis, room: number, whole: boolean): Tick[] {
  const span = a.max - a.min
  if (!Number.isFinite(span) || span <= 0) return [a.min, a.max].map(v => ({ v, text: short(v) }))
  let step = stepOf(span, room)
  if (whole) step = Math.max(1, Math.round(step))
  const out: Tick[] = []
  const digits = Math.max(0, Math.min(15, -Math.floor(Math.log10(step) + 1e-9)))
  for (let i = Math.ceil(a.min / step - 1e-9); i * step <= a.max + step * 1e-9 && out.length < 50; i++) {
    const v = i * step
    out.push({ v, text: labelOf(v, step, digits) })
  }
  // Values that differ little: as many digits as tell them apart.
  const alike = out.some((t, i) => i > 0 && t.text === out[i - 1].text)
  return alike ? out.map(({ v }) => ({ v, text: v === 0 ? '0' : among(v, step) })) : out
}

function labelOf(v: number, step: number, digits: number): string {
  const a = Math.abs(v)
  if (v === 0) return '0'
  if (a >= 1e5 || step >= 1e4) return short(v)
  if (step < 1e-5) return v.toExponential(2).replace('-', '−')
  return v.toFixed(digits).replace('-', '−')
}

/** 12 000 000 as 12M, for axes. */
export function short(v: number): string {
  const a = Math.abs(v)
  for (const [size, unit] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']] as const) {
    if (a >= size && a < size * 1e4) return String(Number((v / size).toPrecision(4))).replace('-', '−') + unit
  }
  return a >= 1e15 ? v.toExponential(1).replace('e+', 'e').replace(/^-/, '−') : Number.isInteger(v) ? count(v) : value(v)
}

function logTicks(a: Axis, room: number): Tick[] {
  const lo = Math.ceil(Math.log10(a.min) - 1e-9), hi = Math.floor(Math.log10(a.max) + 1e-9)
  const every = Math.max(1, Math.ceil((hi - lo + 1) / Math.max(2, room)))
  const out: Tick[] = []
  const small = hi - lo < 2
  for (let e = lo - 1; e <= hi; e += every) {
    for (const f of small ? [1, 2, 5] : [1]) {
      const v = f * 10 ** e
      if (v >= a.min && v <= a.max) out.push({ v, text: v >= 1e4 || v < 1e-3 ? `${f === 1 ? '' : f + '·'}10${raised(e)}` : String(Number(v.toPrecision(3))) })
    }
  }
  return out
}

const raised = (n: number) => String(n).replace(/[-\d]/g, c => c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(c)])

const steps = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 31536000].map(s => s * 1000)

function timeTicks(min: number, max: number, room: number): Tick[] {
  const step = steps.find(s => (max - min) / s <= room) ?? steps[steps.length - 1] * Math.ceil((max - min) / steps[steps.length - 1] / room)
  const shift = new Date(min).getTimezoneOffset() * 60000
  const out: Tick[] = []
  for (let t = Math.ceil((min - shift) / step) * step + shift; t <= max && out.length < 50; t += step) {
    const d = new Date(t)
    const hm = `${String(d.getHours()).padStart(2, '0')}:${String(d.getMinutes()).padStart(2, '0')}`
    const day = `${d.toLocaleString('en', { month: 'short' })} ${d.getDate()}`
    const text = step >= 86400000 ? day : step < 60000 ? `${hm}:${String(d.getSeconds()).padStart(2, '0')}` : hm === '00:00' ? day : hm
    out.push({ v: t, text })
  }
  return out
}

function durationTicks(min: number, max: number, room: number): Tick[] {
  if (max - min < 2000) return linearTicks({ min, max }, room, false).map(t => ({ v: t.v, text: t.text + ' ms' }))
  const step = steps.find(s => (max - min) / s <= room) ?? steps[steps.length - 1]
  const [size, unit] = step >= 86400000 ? [86400000, 'd'] : step >= 3600000 ? [3600000, 'h'] : step >= 60000 ? [60000, 'min'] : [1000, 's']
  const out: Tick[] = []
  for (let t = Math.ceil(min / step) * step; t <= max && out.length < 50; t += step) {
    out.push({ v: t, text: `${Number((t / size).toFixed(2))} ${unit}` })
  }
  return out
}
