import { count } from '../../lib/format'
import type { States } from '../../lib/types'

const order: [keyof States, string][] = [['complete', 'good'], ['running', 'live'], ['pruned', 'pruned'], ['failed', 'bad'], ['paused', 'warn'], ['waiting', 'faint']]

/** How trials are spread over states: a bar, and the numbers for whoever cannot see it. */
export function StateSplit({ states }: { states: States }) {
  const total = order.reduce((n, [k]) => n + states[k], 0)
  const text = order.filter(([k]) => states[k] > 0).map(([k]) => `${count(states[k])} ${k}`).join(', ') || 'no trials'
  return (
    <div class="split" role="img" aria-label={text} title={text}>
      {total > 0 && order.map(([k, tone]) => states[k] > 0 && <i key={k} style={{ flex: states[k], background: `var(--${tone})` }} />)}
    </div>
  )
}

export const stateTone: { [state: string]: string } = { complete: 'good', running: 'live', pruned: 'pruned', failed: 'bad', paused: 'warn', waiting: 'faint' }
export const stateOf: { [letter: string]: keyof States } = { w: 'waiting', r: 'running', s: 'paused', c: 'complete', p: 'pruned', f: 'failed' }
