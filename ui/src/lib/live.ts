import { useEffect, useRef, useState } from 'preact/hooks'
import { tellTime } from './clock'
import { parse } from './json'

// One event stream for each page, since browsers allow few connections to a
// server. A hidden page lets go of its stream and comes back where it was.
//
// A stream is trusted as long as it beats. A connection can be dead without a word,
// after a laptop slept or a network changed, and a proxy can hold back what it
// should pass on: then the page reads everything anew, again and again, and says so.

/** Held is a server that answers, but whose events do not come. */
export type Link = 'connecting' | 'live' | 'held' | 'away'
type Handlers = { [kind: string]: (data: any) => void }

/** How long the first beat may take, and the next; the server beats every 15 seconds. */
const firstBeat = 10_000, nextBeat = 35_000
/** How often everything is read anew when no events come. */
const readAnew = 8000
/** A page that did not run for so long was asleep. */
const asleep = 20_000

let link: Link = 'connecting'
const watchers = new Set<(l: Link) => void>()
function say(l: Link) {
  link = l
  watchers.forEach(w => w(l))
}

/** Whether the page hears of changes. */
export function useLink(): Link {
  const [l, set] = useState(link)
  useEffect(() => { watchers.add(set); set(link); return () => { watchers.delete(set) } }, [])
  return l
}

const answers = () => fetch('/healthz', { cache: 'no-store', signal: AbortSignal.timeout(5000) }).then(r => r.ok, () => false)

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
    let timer = 0, wait = 500, lost = false, ended = false, failed = 0
    let due = 0, ticked = Date.now(), read = 0
    const close = () => {
      clearTimeout(timer)
      timer = 0
      source?.close()
      source = null
    }
    const open = () => {
      close()
      if (document.hidden) return
      due = Date.now() + firstBeat
      const own = source = new EventSource(now.current.at())
      source.onerror = () => {
        close()
        lost = true
        if (link !== 'held') say('away')
        if (++failed > 2) void held()
        timer = window.setTimeout(open, wait)
        wait = Math.min(wait * 2, 5000)
      }
      source.addEventListener('beat', e => {
        wait = 500
        failed = 0
        tellTime(parse<{ now_ms: number }>((e as MessageEvent).data).now_ms)
        due = Date.now() + nextBeat
        say('live')
        if (lost) now.current.back()
        lost = false
      })
      for (const kind of Object.keys(handlers)) {
        own.addEventListener(kind, e => now.current.handlers[kind]?.(parse((e as MessageEvent).data)))
      }
    }
    /** Events do not come: whether the server is there at all is asked in another way. */
    const held = async () => {
      const there = await answers()
      if (ended || !lost) return
      say(there ? 'held' : 'away')
      if (!there || Date.now() - read < readAnew) return
      read = Date.now()
      ;(now.current.handlers.reset ?? now.current.back)({})
    }
    const overdue = async () => {
      close()
      lost = true
      await held()
      if (!ended) open()
    }
    const tick = () => {
      const slept = Date.now() - ticked > asleep
      ticked = Date.now()
      if (document.hidden) return
      if (slept) { lost = true; open() } else if (source && ticked > due) void overdue()
    }
    const turned = () => {
      if (document.hidden) { close(); lost = true } else if (!source && !timer) open()
    }
    const online = () => { if (!source) open() }
    const beating = setInterval(tick, 2000)
    open()
    document.addEventListener('visibilitychange', turned)
    addEventListener('online', online)
    return () => {
      ended = true
      clearInterval(beating)
      document.removeEventListener('visibilitychange', turned)
      removeEventListener('online', online)
      close()
    }
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
