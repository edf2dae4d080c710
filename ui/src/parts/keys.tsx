import { useEffect, useRef } from 'preact/hooks'
import { at, go } from '../lib/router'

const places: { [key: string]: string } = { o: at.overview, r: at.runs, s: at.studies, d: at.datagen }

const help: [string[], string][] = [
  [['?'], 'this help'], [['/'], 'to the first field that finds or filters'],
  [['g', 'o'], 'to the overview; g r to runs, g s to studies, g d to datagen'],
  [['←', '→'], 'in a chart: the next point; in tabs and choices: the next one'],
  [['+', '−'], 'in a chart: closer, farther'], [['Esc'], 'in a chart: everything; elsewhere: close'],
  [['↑', '↓'], 'in a table: from row to row; Page Up, Page Down, Home, End too'],
  [['Space'], 'in a table: choose'], [['Enter'], 'in a table or chart: open'],
]

const typing = (e: KeyboardEvent) => (e.target as Element).closest('input, textarea, select, [contenteditable]') !== null

/** Keys that work everywhere, and the button that tells of them. */
export function Keys() {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    let leader = 0
    const key = (e: KeyboardEvent) => {
      if (typing(e) || e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return
      if (dialog.current!.open) return
      const led = Date.now() - leader < 1500
      leader = 0
      if (led && places[e.key]) { e.preventDefault(); go(places[e.key]) }
      else if (e.key === 'g') leader = Date.now()
      else if (e.key === '?') { e.preventDefault(); dialog.current!.showModal() }
      else if (e.key === '/') {
        const field = document.querySelector<HTMLInputElement>('main input[type=search]')
        if (field) { e.preventDefault(); field.focus(); field.select() }
      }
    }
    document.addEventListener('keydown', key)
    return () => document.removeEventListener('keydown', key)
  }, [])
  return (
    <>
      <button class="icon help" onClick={() => dialog.current!.showModal()} aria-label="Keys" title="Keys (?)"><svg width="17" height="17" viewBox="0 0 16 16" aria-hidden="true"><rect x="1.5" y="4" width="13" height="8.5" rx="1.5" /><path d="M4 6.8h.01M6.7 6.8h.01M9.3 6.8h.01M12 6.8h.01M5 9.8h6" /></svg></button>
      <dialog class="keys" ref={dialog} aria-label="Keys" onClick={e => { if (e.target === dialog.current) dialog.current!.close() }}>
        <header><h2>Keys</h2><button class="icon" onClick={() => dialog.current!.close()} aria-label="Close"><svg width="15" height="15" viewBox="0 0 16 16" aria-hidden="true"><path d="M3.5 3.5l9 9M12.5 3.5l-9 9" /></svg></button></header>
        <dl class="kv">{help.map(([keys, what]) => <><dt key={what}>{keys.map((k, i) => <>{i > 0 && ' '}<kbd>{k}</kbd></>)}</dt><dd>{what}</dd></>)}</dl>
      </dialog>
    </>
  )
}
