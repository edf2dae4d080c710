import { useQuery } from './router'

// What is chosen along axes is in the address, in the values of the axis and by its name:
// in.lr=0.001..0.01, either end of which may be missing, and in.optimizer=adam, once for each.

const prefix = 'in.'

/** What the address says of axes, and how to change that of some; null takes one away. */
export function useRanges(): [Map<string, string[]>, (changes: Map<string, string[] | null>) => void] {
  const [q, set] = useQuery()
  const all = new Map<string, string[]>()
  for (const key of new Set(q.keys())) if (key.startsWith(prefix)) all.set(key.slice(prefix.length), q.getAll(key))
  return [all, changes => set(Object.fromEntries([...changes].map(([name, texts]) => [prefix + name, texts])))]
}

/** Both ends of a text such as 0.001..0.01; an end that is missing or no number is open. */
export function endsOf(text: string): [number, number] {
  const cut = text.indexOf('..'), end = (s: string, open: number) => s.trim() === '' || Number.isNaN(Number(s)) ? open : Number(s)
  return cut < 0 ? [-Infinity, Infinity] : [end(text.slice(0, cut), -Infinity), end(text.slice(cut + 2), Infinity)]
}

/** The text of two ends, to the digits that are seen. */
export function textOfEnds(low: number, high: number): string {
  const end = (v: number) => Number.isFinite(v) ? String(Number(v.toPrecision(6))) : ''
  return `${end(low)}..${end(high)}`
}
