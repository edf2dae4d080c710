// A run has its colour everywhere: it follows from its name and nothing else. Names
// that count, as those of a sweep do, get colours that follow each other. Where two of a
// group have the same colour, or nearly, their lines are dashed differently.

const hues = [
  ['#3a5fd9', '#86a3ff'], ['#d4622a', '#ff9d66'], ['#12855a', '#4fd1a0'], ['#b23a9a', '#f08bdb'], ['#8a6d00', '#e2c14d'],
  ['#0a86a6', '#5fcbe6'], ['#c2334d', '#ff8596'], ['#6b4fc9', '#b5a0ff'], ['#5b6673', '#b4bfca'], ['#805a48', '#d6ab95'],
  ['#5f8f1f', '#a9d86b'], ['#1f3a93', '#a9bcff'], ['#e0457b', '#ffa0c0'], ['#0f6b66', '#6fd6cf'], ['#a8521a', '#ffb887'],
  ['#8e3fbf', '#d9a2ff'], ['#3b7a3b', '#8fd18f'], ['#b8860b', '#ffd97a'], ['#4a6fa5', '#9fc0ea'], ['#9b2f2f', '#ff9c8f'],
]

function hash(s: string): number {
  let h = 2166136261
  for (let i = 0; i < s.length; i++) h = Math.imul(h ^ s.charCodeAt(i), 16777619)
  return (h ^ (h >>> 15)) >>> 0
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
}

function shade(i: number, dark: boolean): string {
  if (i < hues.length) return hues[i][dark ? 1 : 0]
  return `hsl(${(i * 137.508) % 360} ${dark ? '65% 70%' : '60% 42%'})`
}

export const colorAt = (i: number) => shade(i, isDark())

/** The place of a name among the colours: names that differ in their last number are next to each other. */
function placeOf(name: string): number {
  const digits = /(\d{1,9})\D*$/.exec(name)
  if (!digits) return hash(name) % hues.length
  const rest = name.slice(0, digits.index) + name.slice(digits.index + digits[1].length)
  return (hash(rest) + Number(digits[1])) % hues.length
}

export const colorOf = (name: string) => shade(placeOf(name), isDark())

const parts = (hex: string) => [1, 3, 5].map(k => parseInt(hex.slice(k, k + 2), 16))

/** Whether two colours are hard to tell apart. */
function alike(i: number, k: number): boolean {
  const a = parts(hues[i][0]), b = parts(hues[k][0])
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]) < 60
}

const dashes = [[], [7, 3], [2, 3], [10, 3, 2, 3]]

/** Colours of a group of names, and the dashes of those whose colour another one has. */
export function colorsOf(names: string[]): Map<string, Ink> {
  const dark = isDark(), taken = new Uint32Array(hues.length), out = new Map<string, Ink>()
  for (const name of [...new Set(names)].sort()) {
    const i = placeOf(name)
    const before = taken.reduce((n, of, k) => n + (of && alike(i, k) ? of : 0), 0)
    taken[i]++
    out.set(name, { color: shade(i, dark), dash: dashes[before % dashes.length] })
  }
  return out
}

export interface Ink { color: string; dash: number[] }

/** A colour between cold and warm for a part from 0 (worst) to 1 (best). */
export function scaleColor(part: number, dark = isDark()): string {
  const p = Number.isFinite(part) ? Math.min(1, Math.max(0, part)) : 0
  const stops = dark
    ? [[58, 66, 92], [70, 118, 190], [72, 190, 170], [240, 225, 110]]
    : [[205, 211, 228], [120, 160, 215], [30, 130, 140], [40, 50, 110]]
  const x = p * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(x)), t = x - i
  return `rgb(${stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * t)).join(' ')})`
}

const palettes = new Map<boolean, string[]>()

/** scaleColor for many: from 64 colours that are spelled once. */
export function scaleColors(): (part: number) => string {
  const dark = isDark()
  let list = palettes.get(dark)
  if (!list) palettes.set(dark, list = Array.from({ length: 64 }, (_, i) => scaleColor(i / 63, dark)))
  return part => list[part >= 0 ? Math.min(63, Math.round(part * 63)) : 0]
}
