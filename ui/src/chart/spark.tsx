import { useEffect, useRef } from 'preact/hooks'
import { useTheme } from '../lib/theme'

/** A curve the size of a word. */
export function Spark({ ys, color, label, width = 140, height = 26 }: { ys: number[]; color: string; label: string; width?: number; height?: number }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const theme = useTheme()
  useEffect(() => {
    const c = canvas.current!, dpr = devicePixelRatio || 1
    c.width = width * dpr
    c.height = height * dpr
    const ctx = c.getContext('2d')!
    ctx.scale(dpr, dpr)
    const finite = ys.filter(Number.isFinite)
    const lo = Math.min(...finite), hi = Math.max(...finite)
    ctx.strokeStyle = ctx.fillStyle = color
    ctx.lineWidth = 1.5
    ctx.lineJoin = 'round'
    ctx.beginPath()
    let x = 0, y = 0
    ys.forEach((v, i) => {
      if (!Number.isFinite(v)) return
      x = 2 + i / Math.max(1, ys.length - 1) * (width - 6)
      y = hi > lo ? height - 3 - (v - lo) / (hi - lo) * (height - 6) : height / 2
      ctx.lineTo(x, y)
    })
    ctx.stroke()
    ctx.beginPath(); ctx.arc(x, y, 2, 0, 7); ctx.fill()
  }, [ys, color, theme, width, height])
  return <canvas ref={canvas} role="img" aria-label={label} style={{ width, height, display: 'block', maxWidth: '100%' }} />
}
