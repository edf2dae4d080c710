import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from './api'
import { onTime, serverNow } from './clock'
import { useQuery } from './router'

export interface Loaded<T> { data: T | null; error: Error | null; loading: boolean; reload: () => void; set: (f: (old: T) => T) => void }

/** What ends by itself: no answer, a proxy without one, a server that is busy. */
const passing = [0, 502, 503, 504]

/**
 * Loads what a key stands for, again if what failed may pass. What is there stays while something newer is on
 * its way, so that nothing jumps; a new key begins empty unless keep is set.
 */
export function useLoad<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>, keep = false): Loaded<T> {
  const [state, setState] = useState<{ key: string | null; data: T | null; error: Error | null; loading: boolean }>(
    { key, data: null, error: null, loading: key !== null })
  const [version, setVersion] = useState(0)
  const loader = useRef(load)
  loader.current = load
  useEffect(() => {
    if (key === null) return
    const abort = new AbortController()
    let timer = 0
    setState(s => ({ key, data: s.key === key || keep ? s.data : null, error: s.key === key ? s.error : null, loading: true }))
    loader.current(abort.signal).then(
      data => { if (!abort.signal.aborted) setState({ key, data, error: null, loading: false }) },
      error => {
        if (abort.signal.aborted) return
        setState(s => ({ key, data: s.data, error, loading: false }))
        if (error instanceof ApiError && passing.includes(error.status)) timer = window.setTimeout(() => setVersion(v => v + 1), document.hidden ? 15_000 : 1500)
      })
    return () => { abort.abort(); clearTimeout(timer) }
  }, [key, version])
  const reload = useCallback(() => setVersion(v => v + 1), [])
  const set = useCallback((f: (old: T) => T) => setState(s => s.data === null ? s : { ...s, data: f(s.data) }), [])
  const stale = state.key !== key && !keep
  return { data: stale ? null : state.data, error: stale ? null : state.error, loading: stale || state.loading, reload, set }
}

/** The present time by the server's clock, anew every few seconds. */
export function useNow(every = 5000): number {
  const [now, set] = useState(serverNow())
  useEffect(() => {
    const tick = () => set(serverNow()), t = setInterval(tick, every), off = onTime(tick)
    return () => { clearInterval(t); off() }
  }, [every])
  return now
}

/** A value that follows another one a little later, for filters that are typed. */
export function useSettled<T>(value: T, ms = 200): T {
  const [settled, set] = useState(value)
  useEffect(() => {
    const t = setTimeout(() => set(value), ms)
    return () => clearTimeout(t)
  }, [value, ms])
  return settled
}

/** What is typed into a filter, and the same a little later, which the address has. */
export function useTyped(key: string): [string, (text: string) => void, string] {
  const [query, set] = useQuery()
  const [typed, type] = useState(query.get(key) ?? '')
  const settled = useSettled(typed)
  useEffect(() => { set({ [key]: settled }) }, [settled])
  return [typed, type, settled]
}

/** A setting that this browser keeps. */
export function useStored<T>(key: string, first: T): [T, (v: T) => void] {
  const [v, set] = useState<T>(() => {
    try { return JSON.parse(localStorage.getItem(key) ?? '') } catch { return first }
  })
  return [v, next => {
    set(next)
    try { localStorage.setItem(key, JSON.stringify(next)) } catch { /* private windows may refuse */ }
  }]
}

/** Whether an element has come near the window, once and for all. */
export function useSeen<E extends Element>(): [(el: E | null) => void, boolean] {
  const [seen, set] = useState(false)
  const observer = useRef<IntersectionObserver | null>(null)
  const ref = useCallback((el: E | null) => {
    observer.current?.disconnect()
    if (!el) return
    observer.current = new IntersectionObserver(entries => {
      if (entries.some(e => e.isIntersecting)) { set(true); observer.current?.disconnect() }
    }, { rootMargin: '300px' })
    observer.current.observe(el)
  }, [])
  return [ref, seen]
}
