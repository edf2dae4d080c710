import { useEffect, useState } from 'preact/hooks'

// The place is the address and nothing else, so that every view can be shared.

export interface Place { path: string[]; query: URLSearchParams }

const listeners = new Set<() => void>()
const here = (): Place => ({
  path: location.pathname.split('/').filter(Boolean).map(part => { try { return decodeURIComponent(part) } catch { return part } }),
  query: new URLSearchParams(location.search),
})
let place = here()

function moved() {
  place = here()
  listeners.forEach(f => f())
}
let back = false
addEventListener('popstate', () => { back = true; moved() })

/** Whether the place was come to by the history of the browser, where things should stand as they did. */
export const cameBack = () => back

export function go(to: string, replace = false) {
  if (to === location.pathname + location.search) return
  back = false
  history[replace ? 'replaceState' : 'pushState'](null, '', to)
  moved()
  if (!replace) scrollTo(0, 0)
}

export function usePlace(): Place {
  const [, set] = useState(0)
  useEffect(() => {
    const f = () => set(n => n + 1)
    listeners.add(f)
    return () => { listeners.delete(f) }
  }, [])
  return place
}

/** Parameters of the address, and how to change some; an empty value removes one. */
export function useQuery(): [URLSearchParams, (changes: { [key: string]: string | string[] | null }) => void] {
  const { query } = usePlace()
  return [query, changes => {
    const q = new URLSearchParams(location.search)
    for (const [key, v] of Object.entries(changes)) {
      q.delete(key)
      if (Array.isArray(v)) v.forEach(one => q.append(key, one))
      else if (v) q.set(key, v)
    }
    const text = q.toString()
    go(location.pathname + (text ? '?' + text : ''), true)
  }]
}

/** Lets the browser do what it does for a click that opens elsewhere. */
export function follow(e: MouseEvent) {
  const a = (e.target as Element | null)?.closest?.('a[href]') as HTMLAnchorElement | null
  if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || a.target || a.download) return
  const to = new URL(a.href)
  if (to.origin !== location.origin || to.pathname.startsWith('/api/')) return
  e.preventDefault()
  go(to.pathname + to.search)
}

export const at = {
  overview: '/',
  runs: '/runs',
  run: (slug: string) => '/runs/' + encodeURIComponent(slug),
  compare: (slugs: string[]) => '/compare?' + slugs.map(s => 'run=' + encodeURIComponent(s)).join('&'),
  studies: '/studies',
  compareStudies: (ids: string[]) => '/compare-studies?' + ids.map(id => 'study=' + encodeURIComponent(id)).join('&'),
  study: (id: string) => '/studies/' + encodeURIComponent(id),
  trial: (id: string, n: number) => `/studies/${encodeURIComponent(id)}/trials/${n}`,
  datagen: '/datagen',
  experiment: (id: string) => '/datagen/' + encodeURIComponent(id),
  item: (id: string, item: string) => `/datagen/${encodeURIComponent(id)}/items/${encodeURIComponent(item)}`,
}
