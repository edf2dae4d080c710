import { useEffect, useState } from 'preact/hooks'
import { isDark } from './color'

export type Theme = 'light' | 'dark' | 'auto'

const listeners = new Set<() => void>()
const tell = () => listeners.forEach(f => f())
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', tell)

/** What was chosen, while a page is printed: paper is light. */
let kept: Theme | null = null

function printing(on: boolean) {
  if (on === (kept !== null)) return
  const before = kept ?? chosenTheme()
  kept = on ? before : null
  show(on ? 'light' : before)
  tell()
}
addEventListener('beforeprint', () => printing(true))
addEventListener('afterprint', () => printing(false))
matchMedia('print').addEventListener('change', e => printing(e.matches))

function show(t: Theme) {
  if (t === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = t
}

export function chosenTheme(): Theme {
  return kept ?? (document.documentElement.dataset.theme as Theme | undefined) ?? 'auto'
}

export function chooseTheme(t: Theme) {
  show(t)
  try { t === 'auto' ? localStorage.removeItem('theme') : localStorage.setItem('theme', t) } catch { /* kept for this page only */ }
  tell()
}

/** 'dark' or 'light', as it is shown; charts are drawn anew when it changes. */
export function useTheme(): string {
  const [, set] = useState(0)
  useEffect(() => {
    const f = () => set(n => n + 1)
    listeners.add(f)
    return () => { listeners.delete(f) }
  }, [])
  return isDark() ? 'dark' : 'light'
}
