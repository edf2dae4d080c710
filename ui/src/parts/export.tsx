import { useEffect, useRef, useState } from 'preact/hooks'
import { count } from '../lib/format'
import { type Cell, csv, download, fileName } from '../lib/save'

const pageSize = 1000
const mostRows = 100_000

interface Props<T> { name: string; total: number | null; page: (offset: number, limit: number, signal: AbortSignal) => Promise<{ items: T[]; total: number }>; table: (items: T[]) => Cell[][] }

/** Takes a list along as a CSV table: all rows that the filter lets through, in their order. */
export function Export<T>({ name, total, page, table }: Props<T>) {
  const [state, setState] = useState<{ done: number } | { error: string } | null>(null)
  const abort = useRef<AbortController | null>(null)
  useEffect(() => () => abort.current?.abort(), [])
  const busy = state !== null && 'done' in state
  const take = async () => {
    const { signal } = abort.current = new AbortController()
    const all: T[] = []
    try {
      for (let want = 1; all.length < Math.min(want, mostRows);) {
        setState({ done: all.length })
        const answer = await page(all.length, pageSize, signal)
        if (!answer.items.length) break
        all.push(...answer.items)
        want = answer.total
      }
      download(new Blob([csv(table(all))], { type: 'text/csv' }), fileName(name) + '.csv')
      setState(null)
    } catch (e) {
      setState(signal.aborted ? null : { error: (e as Error).message })
    }
  }
  return (
    <>
      <button disabled={!total && !busy} title={busy ? 'Stop' : `Download ${(total ?? 0) > mostRows ? `the first ${count(mostRows)} rows` : 'these rows'} as a CSV table`} onClick={() => { if (busy) abort.current?.abort(); else void take() }}>{busy ? `Stop at ${count(state.done)}` : 'CSV'}</button>
      {state !== null && 'error' in state && <span class="bad" role="alert">{state.error}</span>}
    </>
  )
}
