import { get, url } from '../lib/api'
import { count, plural } from '../lib/format'
import { useLive, useThrottled } from '../lib/live'
import { at, useQuery } from '../lib/router'
import type { ExperimentItem, ItemStates, Page } from '../lib/types'
import { useLoad, useNow, useTyped } from '../lib/use'
import { Ago, Empty, Show, State } from '../parts/basic'
import { type Column, fixedRows, newest, sorted, Table } from '../parts/table'

export const itemStates: [keyof ItemStates, string][] = [['completed', 'good'], ['running', 'live'], ['filtered', 'pruned'], ['failed', 'bad'], ['pending', 'faint']]

export function ItemSplit({ states }: { states: ItemStates }) {
  const total = itemStates.reduce((n, [k]) => n + states[k], 0)
  const text = itemStates.filter(([k]) => states[k] > 0).map(([k]) => `${count(states[k])} ${k}`).join(', ') || 'no items'
  return (
    <div class="split" role="img" aria-label={text} title={text}>
      {total > 0 && itemStates.map(([k, tone]) => states[k] > 0 && <i key={k} style={{ flex: states[k], background: `var(--${tone})` }} />)}
    </div>
  )
}

/** Alive is an experiment of which something was heard within a minute, with items at work. */
export const isAlive = (e: ExperimentItem, now: number) => e.states.running > 0 && now - e.updated_ms < 60000

export function ExperimentState({ e }: { e: ExperimentItem }) {
  const now = useNow()
  if (e.error) return <State state="failed" title={e.error} />
  return isAlive(e, now) ? <State state="running" /> : e.states.running > 0 ? <State state="silent" title="Items are at work, but nothing was heard for a minute" /> : <span class="muted">at rest</span>
}

export function Datagen() {
  const [typed, type, q] = useTyped('q')
  const [query, set] = useQuery(), sort = query.get('sort') ?? '-last'
  const list = useLoad('datagen ' + q, s => get<Page<ExperimentItem>>('datagen', { q, limit: 1000 }, s), true)
  const soon = useThrottled(list.reload, 1000)
  useLive('all', () => url('live'), { experiment: soon, 'experiment-gone': soon, reset: soon }, soon)
  return (
    <>
      <div class="head"><div><h1>Data generation</h1></div></div>
      <div class="bar"><input type="search" placeholder="Pipeline or experiment" aria-label="Filter by pipeline or experiment" value={typed} onInput={e => type(e.currentTarget.value)} /><span class="note" aria-live="polite">{list.data ? plural(list.data.total, 'experiment') + newest(list.data) : ''}</span></div>
      {list.data?.items.filter(e => e.error).map(e => <div class="banner bad" role="alert" key={e.id}><strong>{e.path} cannot be read.</strong> {e.error}</div>)}
      <section class="panel"><Show of={list} height={300}>{page => (
        <Table label="experiments" rows={fixedRows(sorted(page.items, columns, sort))} columns={columns} sort={sort} onSort={sort => set({ sort })} id={e => e.id} href={e => at.experiment(e.id)} height={800}
          empty={q ? <Empty title="No experiment of that name" /> : <Empty title="There are no datagen logs under this root">A checkpoint log begins with <code>foldlog datagen init</code>, or with the first event of a pipeline.</Empty>} />
      )}</Show></section>
    </>
  )
}

const columns: Column<ExperimentItem>[] = [
  { key: 'name', title: 'Experiment', width: 220, grow: true, sort: 'name', by: e => `${e.pipeline} / ${e.experiment}`, cell: e => <a href={at.experiment(e.id)}>{e.pipeline} / {e.experiment}</a> },
  { key: 'state', title: 'State', width: 110, cell: e => <ExperimentState e={e} /> },
  { key: 'items', title: 'Items', width: 110, right: true, sort: 'items', down: true, by: e => e.items, cell: e => e.ready ? count(e.items) : '…' },
  { key: 'split', title: 'Status', width: 200, cell: e => <ItemSplit states={e.states} /> },
  { key: 'completed', title: 'Completed', width: 114, right: true, sort: 'completed', down: true, by: e => e.states.completed, cell: e => count(e.states.completed) },
  { key: 'failed', title: 'Failed', width: 90, right: true, sort: 'failed', down: true, by: e => e.states.failed, cell: e => e.states.failed ? <span class="bad">{count(e.states.failed)}</span> : <span class="muted">0</span> },
  { key: 'events', title: 'Events', width: 120, right: true, sort: 'events', down: true, by: e => e.events, cell: e => count(e.events) },
  { key: 'last', title: 'Last event', width: 128, right: true, sort: 'last', down: true, by: e => e.updated_ms, cell: e => <Ago ms={e.updated_ms} /> },
]
