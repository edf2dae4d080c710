import { useEffect } from 'preact/hooks'
import type { useQuery } from './router'
import { useStored } from './use'

/**
 * The metrics that come first. The address has them, so that whoever is given it sees
 * the same; this browser keeps them for the next run.
 */
export function usePins(q: URLSearchParams, set: ReturnType<typeof useQuery>[1]): [string[], (name: string) => void] {
  const [kept, keep] = useStored<string[]>('pins', [])
  const told = q.has('pin'), pins = told ? q.getAll('pin').filter(Boolean) : kept
  useEffect(() => { if (!told && kept.length) set({ pin: kept }) }, [told])
  return [pins, name => {
    const next = pins.includes(name) ? pins.filter(p => p !== name) : [...pins, name]
    keep(next)
    set({ pin: next.length ? next : [''] })
  }]
}
