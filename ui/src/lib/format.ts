const thin = '\u2009'

/** A measured value: five significant digits, no noise. */
export function value(v: number): string {
  if (Number.isNaN(v)) return 'NaN'
  if (!Number.isFinite(v)) return v > 0 ? '∞' : '−∞'
  if (v === 0) return '0'
  const a = Math.abs(v)
  if (a >= 1e15 || a < 1e-4) return v.toExponential(3).replace('e+', 'e').replace('-', '−')
  if (Number.isInteger(v)) return count(v)
  return (a >= 1e5 ? count(Math.round(v)) : String(Number(v.toPrecision(5)))).replace(/^-/, '−')
}

/** A measured value among others: with as many digits as tell those apart that lie in a span. */
export function among(v: number, span: number): string {
  const digits = span > 0 && Number.isFinite(v) && v !== 0 ? Math.ceil(Math.log10(Math.abs(v) / span)) + 3 : 0
  return digits > 5 ? String(Number(v.toPrecision(Math.min(17, digits)))).replace('-', '−') : value(v)
}

/** A measured value in a column: as value, with its zeros, so that points stand below points. */
export function column(v: number): string {
  const a = Math.abs(v)
  return Number.isInteger(v) || !(a >= 1e-3 && a < 1e4) ? value(v) : v.toPrecision(5).replace('-', '−')
}

/** A whole number with thin spaces between thousands. */
export function count(n: number | string): string {
  const text = String(n)
  if (!/^-?\d+$/.test(text)) return text
  return text.replace(/^-/, '−').replace(/\B(?=(\d{3})+(?!\d))/g, text.replace('-', '').length > 4 ? thin : '')
}

// reason is an error of several lines on one. A command that ended by itself said why
// at the end of its output: most languages name the exception there.
export function reason(error: string): string {
  const lines = error.trim().split('\n'), last = lines[lines.length - 1]!.trim()
  return lines.length > 1 && last && lines[0]!.startsWith('exit status ') ? `${lines[0]}: ${last}` : error
}
export function plural(n: number, one: string, many = one + 's'): string { return `${count(n)} ${n === 1 ? one : many}` }

export function bytes(n: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let i = 0
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++ }
  return `${i === 0 ? n : n.toPrecision(3)} ${units[i]}`
}

export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '–'
  if (ms < 0) ms = 0
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`
  const s = Math.round(ms / 1000)
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`
}

/** How long ago, in the words of people. */
export function ago(ms: number, now: number): string {
  if (!ms) return '–'
  const s = Math.max(0, (now - ms) / 1000)
  if (s < 5) return 'just now'
  if (s < 60) return `${Math.floor(s)} s ago`
  if (s < 3600) return `${Math.floor(s / 60)} min ago`
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`
  if (s < 86400 * 60) return `${Math.floor(s / 86400)} d ago`
  return new Date(ms).toISOString().slice(0, 10)
}

const two = (n: number) => String(n).padStart(2, '0')

/** A moment in local time. */
export function moment(ms: number): string {
  if (!ms) return '–'
  const d = new Date(ms)
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`
}

/** A name in so many letters: its end tells those that count apart. */
export function middle(name: string, most: number): string {
  const end = Math.floor((most - 1) / 2)
  return name.length <= most ? name : name.slice(0, most - 1 - end) + '…' + name.slice(-end)
}

/** Any value of a log as text, numbers with all their digits: what is copied is what was written. */
export function text(v: unknown): string {
  if (v === undefined) return ''
  return typeof v === 'string' ? v : typeof v === 'number' || typeof v === 'bigint' ? String(v) : JSON.stringify(v)
}

/** A value of a log where there is little room: a long number is shortened as measured ones are. */
export const brief = (v: unknown): string => typeof v === 'number' && String(v).length > 9 ? value(v) : text(v)
