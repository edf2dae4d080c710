// A run has its colour everywhere: it follows from its name and nothing else. Names
// that count, as those of a sweep do, get colours that follow each other. Where two of a
// group have the same colour, or nearly, their lines are dashed differently. The colours
// are as far from each other as twenty can be, on light and on dark.

const hues = [
  ['#3b5fd8', '#86a7fd'], ['#195e00', '#88cd6e'], ['#4497af', '#1495b0'], ['#bb1561', '#d15c77'], ['#ca5ed6', '#efa4fe'],
  ['#dc7000', '#f6a13f'], ['#255846', '#b8edcc'], ['#9673ff', '#8d74cf'], ['#c07c74', '#ff989c'], ['#404293', '#c8d5ff'],
  ['#768e02', '#7b9301'], ['#c572a5', '#9b7b92'], ['#005478', '#2dcdff'], ['#6e5232', '#ffd6a3'], ['#2b8bdc', '#3e88de'],
  ['#683c5f', '#d473ba'], ['#aa3103', '#b77351'], ['#09a07f', '#01d4b2'], ['#a18b4f', '#f4e05e'], ['#8e4497', '#ffcbf3'],
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
  return [0, 1].some(theme => {
    const a = parts(hues[i][theme]), b = parts(hues[k][theme])
    return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]) < 60
  })
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
