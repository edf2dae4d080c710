import { number } from './api'
import type { Curve, RunItem } from './types'

const wishes = [/^(val|eval|valid|test).*acc/i, /acc/i, /^(val|eval|valid|test).*loss/i, /loss/i, /reward|return|score|bleu|f1|auc/i]

/** What is better of a metric, as far as its name tells. */
export function betterOf(name: string): 'lower' | 'higher' | null {
  if (/loss|error|(^|[/_.-])(err|wer|cer|mse|mae|rmse|nll|perplexity|ppl)($|[/_.-])/i.test(name)) return 'lower'
  return /acc|reward|score|bleu|auc|recall|precision|(^|[/_.-])(f1|map|iou|dice)($|[/_.-])/i.test(name) ? 'higher' : null
}

/** What a column shows of a metric: its last value, or with :min or :max behind the name its least or greatest. */
export function measureOf(column: string): { name: string; of: 'last' | 'min' | 'max' } {
  const parts = /^metric:(.*):(min|max)$/s.exec(column)
  return parts ? { name: parts[1], of: parts[2] as 'min' | 'max' } : { name: column.slice(7), of: 'last' }
}

/** Columns as the server is asked for them. */
export const partsOf = (columns: string[]) => ({ metric: [...new Set(columns.filter(c => c.startsWith('metric:')).map(c => measureOf(c).name))], meta: columns.filter(c => !c.startsWith('metric:')) })

/** What a run has in a column of a metric; nothing if it has none. */
export function measured(r: RunItem, column: string): number | null {
  const { name, of } = measureOf(column), v = r.metrics.find(m => m.name === name)?.[of]
  return v === undefined || v === null ? null : number(v)
}

/** The names that say most about a run, the most telling first. */
export function telling(names: string[], most: number): string[] {
  const rank = (n: string) => { const i = wishes.findIndex(w => w.test(n)); return i < 0 ? wishes.length : i }
  return [...names].sort((a, b) => rank(a) - rank(b) || a.length - b.length || (a < b ? -1 : 1)).slice(0, most)
}

/** Metric names by what stands before the first slash. */
export function groupsOf(names: string[]): [string, string[]][] {
  const groups = new Map<string, string[]>()
  for (const name of names) {
    const cut = name.indexOf('/')
    const group = cut > 0 ? name.slice(0, cut) : ''
    const list = groups.get(group)
    if (list) list.push(name)
    else groups.set(group, [name])
  }
  const rank = (g: string) => { const i = ['', 'val', 'eval', 'train'].indexOf(g); return g === 'sys' || g === 'system' ? 9 : i < 0 ? 5 : i }
  return [...groups].sort((a, b) => rank(a[0]) - rank(b[0]) || (a[0] < b[0] ? -1 : 1))
}

/** A stretch of a curve that one process wrote, as typed columns. */
export interface Piece { segment: number; series: string; older: boolean; steps: number[]; times: number[]; values: number[] }

/** Takes a curve apart where its process, its metadata or its age changes. */
export function piecesOf(c: Curve): Piece[] {
  const out = new Map<string, Piece>()
  c.spans.forEach((span, k) => {
    const end = c.spans[k + 1]?.at ?? c.steps.length
    const series = JSON.stringify(c.series[span.series] ?? {})
    const key = `${span.segment} ${span.older} ${series}`
    let p = out.get(key)
    if (!p) out.set(key, p = { segment: span.segment, series: series === '{}' ? '' : series, older: span.older, steps: [], times: [], values: [] })
    for (let i = span.at; i < end; i++) {
      p.steps.push(number(c.steps[i])); p.times.push(number(c.times[i])); p.values.push(number(c.values[i]))
    }
  })
  return [...out.values()]
}

/** Metadata of a series for people: {"split":"val"} as split=val. */
export function seriesText(series: string): string {
  if (!series) return ''
  try {
    return Object.entries(JSON.parse(series)).map(([k, v]) => `${k}=${typeof v === 'string' ? v : JSON.stringify(v)}`).join(' ')
  } catch { return series }
}
