import { useEffect, useRef } from 'preact/hooks'
import type { Geom, PlotProps } from './plot'
import { valueAt } from './scale'

interface Ref<T> { current: T }

/**
 * Zooms a chart by two fingers: what was under them stays under them. While they move
 * only the picture is stretched; what it shows then is asked for when they are lifted.
 */
export function usePinch(canvas: Ref<HTMLCanvasElement | null>, geom: Ref<Omit<Geom, 'ctx'> | null>, p: Pick<PlotProps, 'x' | 'zoom'>): { on: () => boolean } {
  const props = useRef(p)
  props.current = p
  const on = useRef(false)
  useEffect(() => {
    const el = canvas.current!
    let first: [number, number] | null = null, now: [number, number] | null = null
    const fingers = (e: TouchEvent): [number, number] => {
      const left = el.parentElement!.getBoundingClientRect().left
      return [e.touches[0].clientX - left, e.touches[1].clientX - left].sort((a, b) => a - b) as [number, number]
    }
    const start = (e: TouchEvent) => {
      if (e.touches.length !== 2 || !props.current.zoom) return
      e.preventDefault()
      on.current = true
      first = now = fingers(e)
      el.parentElement!.classList.add('pinched')
    }
    const move = (e: TouchEvent) => {
      if (!first || e.touches.length !== 2) return
      e.preventDefault()
      now = fingers(e)
      const scale = scaleOf(first, now)
      el.style.transformOrigin = '0 0'
      el.style.transform = `translateX(${now[0] - first[0] * scale}px) scaleX(${scale})`
    }
    const end = (e: TouchEvent) => {
      if (first && now && geom.current && e.type === 'touchend') zoomTo(first, now, geom.current, props.current)
      if (first) el.style.transform = ''
      el.parentElement!.classList.remove('pinched')
      first = now = null
      if (e.touches.length === 0) on.current = false
    }
    el.addEventListener('touchstart', start, { passive: false })
    el.addEventListener('touchmove', move, { passive: false })
    el.addEventListener('touchend', end)
    el.addEventListener('touchcancel', end)
    return () => {
      el.removeEventListener('touchstart', start)
      el.removeEventListener('touchmove', move)
      el.removeEventListener('touchend', end)
      el.removeEventListener('touchcancel', end)
    }
  }, [])
  return { on: () => on.current }
}

const scaleOf = (first: [number, number], now: [number, number]) => Math.min(50, Math.max(0.05, (now[1] - now[0]) / Math.max(1, first[1] - first[0])))

function zoomTo(first: [number, number], now: [number, number], g: Omit<Geom, 'ctx'>, p: Pick<PlotProps, 'x' | 'zoom'>) {
  const scale = scaleOf(first, now)
  const at = (x: number) => (first[0] + (x - now[0]) / scale - g.left) / (g.right - g.left)
  const from = valueAt(p.x, at(g.left)), to = valueAt(p.x, at(g.right))
  if (Math.abs(at(g.left)) + Math.abs(1 - at(g.right)) > 0.02 && to > from) p.zoom!(from, to)
}
