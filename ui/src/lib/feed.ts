import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { post, seg, url } from './api'
import { useLive, useThrottled } from './live'
import { type Piece, piecesOf } from './runs'
import type { Curve, LivePoints, RunDetail, RunSeries, SeriesQuery } from './types'

// A run that is being written: its event stream, and curves that grow by it. What
// is kept is bounded: a curve that has grown too long is read anew, downsampled.

type Positions = Map<string, number>

function positions(cursor: string): Positions {
  return new Map(cursor.split(',').filter(Boolean).map(p => { const i = p.lastIndexOf(':'); return [p.slice(0, i), Number(p.slice(i + 1))] }))
}
const cursorOf = (at: Positions) => [...at].map(([id, n]) => `${id}:${n}`).join(',')

interface News { from: Positions; to: Positions; points: LivePoints }

export interface Feed {
  version: number
  subscribe: (f: (n: News | null) => void) => () => void
  recent: News[]
}

const mostRecent = 60
const mostTail = 1500

/** Follows a run from what detail has. onNews hears of everything but points. */
export function useFeed(run: RunDetail | null, onNews: (n: LivePoints) => void, onReset: () => void): Feed {
  const s = useRef({ at: new Map() as Positions, recent: [] as News[], hear: new Set<(n: News | null) => void>(), begun: false })
  const [version, setVersion] = useState(0)
  if (run && !s.current.begun) {
    s.current.begun = true
    s.current.at = new Map(run.stream_files.map(f => [f.id, Number(f.bytes)]))
  }
  const anew = useCallback(() => {
    s.current.recent = []
    setVersion(v => v + 1)
    onReset()
  }, [onReset])
  useLive(run ? run.slug : null, () => url(`runs/${seg(run!.slug)}/live`, { cursor: cursorOf(s.current.at) }), {
    points: (points: LivePoints) => {
      const st = s.current, news = { from: st.at, to: positions(points.cursor), points }
      st.at = news.to
      st.recent.push(news)
      let held = 0
      for (let i = st.recent.length - 1; i >= 0; i--) {
        held += st.recent[i].points.curves.reduce((n, c) => n + c.steps.length, 1)
        if (held > 20000 || st.recent.length - i > mostRecent) { st.recent.splice(0, i + 1); break }
      }
      st.hear.forEach(f => f(news))
      if (points.opened > 0) anew()
      onNews(points)
    },
    reset: anew,
    gone: anew,
  }, () => {})
  const subscribe = useCallback((f: (n: News | null) => void) => {
    s.current.hear.add(f)
    return () => { s.current.hear.delete(f) }
  }, [])
  return { version, subscribe, recent: s.current.recent }
}

/** Whether what came is in a reading already: all of it, none, or a part. */
function overlap(n: News, at: Positions): 'old' | 'next' | 'part' | 'gap' {
  let old = true, next = true, gap = false
  for (const [id, to] of n.to) {
    const have = at.get(id) ?? 0, from = n.from.get(id) ?? 0
    if (to > have) old = false
    if (from !== have && to !== from) next = false
    if (from > have) gap = true
  }
  return old ? 'old' : gap ? 'gap' : next ? 'next' : 'part'
}

export interface GrowingCurve { pieces: Piece[]; total: number; sampled: boolean; stages: RunSeries['stages']; there: boolean }

interface Held { curve: GrowingCurve; at: Positions; tail: number }

export function useCurve(slug: string, name: string, axis: 'step' | 'time', range: [number, number] | null, points: number, feed: Feed) {
  const [state, setState] = useState<{ curve: GrowingCurve | null; error: Error | null; loading: boolean }>({ curve: null, error: null, loading: true })
  const held = useRef<Held | null>(null)
  const [again, setAgain] = useState(0)
  const reread = useThrottled(() => setAgain(n => n + 1), 1000)
  const key = `${slug}\0${name}\0${axis}\0${range}\0${points}`

  useEffect(() => {
    const abort = new AbortController()
    setState(s => ({ ...s, loading: true }))
    const q: SeriesQuery = { runs: [slug], names: [name], axis, points }
    if (range) { q.from = Math.floor(range[0]); q.to = Math.ceil(range[1]) }
    post<{ runs: RunSeries[] }>('series', q, abort.signal).then(answer => {
      const r = answer.runs[0], c = r?.curves[0]
      const curve: GrowingCurve = { pieces: c ? piecesOf(c) : [], total: c ? Number(c.total) : 0, sampled: !!c?.sampled, stages: r?.stages ?? [], there: !!c }
      held.current = { curve, at: positions(r?.cursor ?? ''), tail: 0 }
      for (const n of feed.recent) take(n)
      setState({ curve: held.current.curve, error: null, loading: false })
    }, error => { if (!abort.signal.aborted) setState(s => ({ curve: s.curve, error, loading: false })) })
    return () => abort.abort()
  }, [key, feed.version, again])

  const take = (n: News): boolean => {
    const h = held.current
    if (!h) return false
    const how = overlap(n, h.at)
    if (how === 'old') return false
    if (how === 'gap') { reread(); return false }
    const c = n.points.curves.find(c => c.name === name)
    h.at = n.to
    if (!c || range) return false
    if (!append(h, c, how === 'part')) return false
    if (h.tail > mostTail) reread()
    return true
  }
  const pending = useThrottled(() => { if (held.current) setState(s => ({ ...s, curve: held.current!.curve })) }, 250)
  useEffect(() => feed.subscribe(n => { if (n && take(n)) pending() }), [key, feed.subscribe])
  return { ...state, retry: reread }
}

/** Puts new points behind the pieces of a curve; in part overlapping ones are told by their time. */
function append(h: Held, c: Curve, part: boolean): boolean {
  const pieces = h.curve.pieces.slice()
  let added = 0
  for (const more of piecesOf(c)) {
    if (more.values.length === 0) continue
    let i = pieces.findIndex(p => p.segment === more.segment && p.series === more.series && !p.older)
    const old = i < 0 ? { ...more, steps: [], times: [], values: [] } : pieces[i]
    const last = old.times.length - 1
    const fresh = more.times.map((t, k) => !part || last < 0 || t > old.times[last] || t === old.times[last] && more.steps[k] > old.steps[last])
    const only = (list: number[]) => list.filter((_, k) => fresh[k])
    const grown = { ...old, steps: old.steps.concat(only(more.steps)), times: old.times.concat(only(more.times)), values: old.values.concat(only(more.values)) }
    added += grown.steps.length - old.steps.length
    if (i < 0) pieces.push(grown)
    else pieces[i] = grown
  }
  h.tail += added
  h.curve = { ...h.curve, pieces, total: h.curve.total + added, there: true }
  return added > 0
}

/** What a run depends on, and what else is said of it: the classes of annotations that charts mark. Stages are bands. */
export const marked = ['checkpoint', 'resumed', 'interrupted', 'failed']
export const remarks = ['other', 'lowering', 'memory plan', 'memory retry', 'memory peak', 'stacking']
