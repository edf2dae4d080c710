// A run has its colour everywhere: it follows from its name. In a group, names
// that would share one are moved on to the next that is free.

const hues = [
  ['#3a5fd9', '#86a3ff'], ['#d4622a', '#ff9d66'], ['#12855a', '#4fd1a0'], ['#b23a9a', '#f08bdb'], ['#8a6d00', '#e2c14d'],
  ['#0a86a6', '#5fcbe6'], ['#c2334d', '#ff8596'], ['#6b4fc9', '#b5a0ff'], ['#5b6673', '#b4bfca'], ['#805a48', '#d6ab95'],
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

/** Colours of a group of names. */
export function colorsOf(names: string[]): Map<string, string> {
  const dark = isDark()
  const taken = new Set<number>()
  const out = new Map<string, string>()
  const size = Math.max(hues.length, names.length)
  for (const name of [...names].sort()) {
    let i = hash(name) % hues.length
    for (let tries = 0; taken.has(i) && tries < size; tries++) i = (i + 1) % size
    taken.add(i)
    out.set(name, shade(i, dark))
  }
  return out
}

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
