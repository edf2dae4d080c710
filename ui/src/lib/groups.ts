import type { Line } from '../chart/curves'

/** The value of a line at a place between its points; NaN outside of them. */
function valueAt(l: Line, x: number, from: number): [number, number] {
  let i = from
  while (i + 1 < l.xs.length && l.xs[i + 1] <= x) i++
  if (i >= l.xs.length || x < l.xs[i] || i + 1 === l.xs.length && x > l.xs[i]) return [NaN, i]
  if (i + 1 === l.xs.length || l.xs[i] === x) return [l.ys[i], i]
  const part = (x - l.xs[i]) / (l.xs[i + 1] - l.xs[i])
  return [l.ys[i] + part * (l.ys[i + 1] - l.ys[i]), i]
}

/** The places at which a mean is taken: where the lines have points, thinned out. */
function placesOf(lines: Line[], most = 400): number[] {
  const all = new Set<number>()
  for (const l of lines) for (let i = 0; i < l.xs.length; i++) all.add(l.xs[i])
  const sorted = [...all].sort((a, b) => a - b), step = Math.max(1, sorted.length / most)
  return Array.from({ length: Math.min(sorted.length, most) }, (_, k) => sorted[Math.min(sorted.length - 1, Math.round(k * step))])
}

/** The mean of lines, at each place of those that have a finite value there, and how far they are from it. */
export function meanOf(lines: Line[]): { xs: number[]; ys: number[]; spread: number[] } {
  const xs = placesOf(lines), mean = new Float64Array(xs.length), squares = new Float64Array(xs.length), n = new Uint32Array(xs.length)
  for (const l of lines) {
    let from = 0
    xs.forEach((x, k) => {
      const [v, i] = valueAt(l, x, from)
      from = i
      if (!Number.isFinite(v)) return
      const off = v - mean[k]
      mean[k] += off / ++n[k]
      squares[k] += off * (v - mean[k])
    })
  }
  const kept = xs.map((_, k) => k).filter(k => n[k] > 0)
  return { xs: kept.map(k => xs[k]), ys: kept.map(k => mean[k]), spread: kept.map(k => Math.sqrt(squares[k] / n[k])) }
}

/** More lines than this hide each other: a band stands for those of a group. */
const mostPale = 40

/** Each group as its mean, with its lines pale behind it, or a band as wide as they spread. */
export function groupedLines(lines: Line[], groupOf: (key: string) => string, colors: Map<string, string>): Line[] {
  const groups = new Map<string, Line[]>()
  for (const l of lines) {
    const g = groupOf(l.key), list = groups.get(g)
    if (list) list.push(l)
    else groups.set(g, [l])
  }
  const bands = lines.length > mostPale
  return [...groups].flatMap(([g, list]): Line[] => {
    const color = colors.get(g) ?? '#888'
    const pale = list.map(l => ({ ...l, color, dash: [], dim: true }))
    const runs = new Set(list.map(l => l.key)).size
    if (runs === 1) return list.map(l => ({ ...l, color, dash: [], bold: true, label: `${g} (${l.label})` }))
    const { spread, ...mean } = meanOf(list)
    return [...(bands ? [] : pale), { key: 'group ' + g, label: `${g}, mean of ${runs}`, color, bold: true, ...mean, spread: bands ? spread : undefined }]
  })
}
