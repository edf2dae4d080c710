import { useEffect, useRef, useState } from 'preact/hooks'
import { parse } from './json'

// One event stream for each page, since browsers allow few connections to a
// server. A hidden page lets go of its stream and comes back where it was.

export type Link = 'connecting' | 'live' | 'away'
type Handlers = { [kind: string]: (data: any) => void }

let link: Link = 'connecting'
const watchers = new Set<(l: Link) => void>()
function say(l: Link) {
  link = l
  watchers.forEach(w => w(l))
}

/** Whether the page hears of changes. */
export function useLink(): Link {
  const [l, set] = useState(link)
  useEffect(() => { watchers.add(set); return () => { watchers.delete(set) } }, [])
  return l
}

/**
 * Follows an event stream while the component is there. `at` is asked for its
 * address with each connection; back is called after a connection was lost.
 */
export function useLive(key: string | null, at: () => string, handlers: Handlers, back: () => void) {
  const now = useRef({ handlers, at, back })
  now.current = { handlers, at, back }
  useEffect(() => {
    if (key === null) return
    let source: EventSource | null = null
    let timer = 0
    let wait = 500
    let lost = false
    const kinds = Object.keys(handlers)
    const open = () => {
      timer = 0
      source = new EventSource(now.current.at())
      source.onopen = () => {
        wait = 500
        say('live')
        if (lost) now.current.back()
        lost = false
      }
      source.onerror = () => {
        source?.close()
        source = null
        lost = true
        say('away')
        timer = window.setTimeout(open, wait)
        wait = Math.min(wait * 2, 5000)
      }
      for (const kind of kinds) {
        source.addEventListener(kind, e => now.current.handlers[kind]?.(parse((e as MessageEvent).data)))
      }
    }
    const close = () => {
      clearTimeout(timer)
      source?.close()
      source = null
    }
    const turned = () => {
      if (document.hidden) { close(); lost = true } else if (!source && !timer) open()
    }
    open()
    document.addEventListener('visibilitychange', turned)
    return () => { document.removeEventListener('visibilitychange', turned); close() }
  }, [key])
}

/** Calls f at most once in so many milliseconds, the last call included. */
export function useThrottled(f: () => void, ms: number): () => void {
  const state = useRef({ f, ms, timer: 0, last: 0 })
  Object.assign(state.current, { f, ms })
  useEffect(() => () => clearTimeout(state.current.timer), [])
  return useRef(() => {
    const s = state.current
    if (s.timer) return
    s.timer = window.setTimeout(() => { s.timer = 0; s.last = Date.now(); s.f() }, Math.max(0, s.last + s.ms - Date.now()))
  }).current
}
