import { type Cell, csv, download, fileName } from '../lib/save'

/** Takes a chart along: as a picture, or what is drawn as a table. */
export function Save({ name, canvas, table }: { name: string; canvas: () => HTMLCanvasElement; table: () => Cell[][] }) {
  const close = (e: Event) => { (e.currentTarget as Element).closest('details')!.open = false }
  return (
    <details class="save" onKeyDown={e => { if (e.key === 'Escape') { e.currentTarget.open = false; (e.currentTarget.firstElementChild as HTMLElement).focus(); e.stopPropagation() } }}
      onFocusOut={e => { const menu = e.currentTarget, to = e.relatedTarget as Node | null; if (!to || !menu.contains(to)) setTimeout(() => { menu.open = false }) }}>
      <summary aria-label={`Download: ${name}`} title="Download"><svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true"><path d="M8 2v8M4.5 7L8 10.5 11.5 7M2.5 13.5h11" /></svg></summary>
      <div>
        <button onClick={e => { picture(canvas(), name); close(e) }}>Picture (PNG)</button>
        <button onClick={e => { download(new Blob([csv(table())], { type: 'text/csv' }), fileName(name) + '.csv'); close(e) }}>Values (CSV)</button>
      </div>
    </details>
  )
}

/** The chart on the colour of its panel, with its name above it. */
function picture(chart: HTMLCanvasElement, name: string) {
  const style = getComputedStyle(chart), scale = chart.width / chart.clientWidth, head = 34 * scale, edge = 12 * scale
  const c = document.createElement('canvas')
  c.width = chart.width + 2 * edge
  c.height = chart.height + head + edge
  const ctx = c.getContext('2d')!
  ctx.fillStyle = style.getPropertyValue('--panel')
  ctx.fillRect(0, 0, c.width, c.height)
  ctx.fillStyle = style.getPropertyValue('--text')
  ctx.font = `600 ${13 * scale}px ${getComputedStyle(document.body).fontFamily}`
  ctx.fillText(name, edge, 22 * scale, c.width - 2 * edge)
  ctx.drawImage(chart, edge, head)
  c.toBlob(b => { if (b) download(b, fileName(name) + '.png') })
}
