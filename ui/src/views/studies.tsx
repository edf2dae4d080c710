import { useState } from 'preact/hooks'
import { get, number, url } from '../lib/api'
import { count, plural, value } from '../lib/format'
import { useLive, useThrottled } from '../lib/live'
import { at } from '../lib/router'
import type { StudyItem, StudyPage } from '../lib/types'
import { useLoad, useSettled } from '../lib/use'
import { Ago, Empty, Show, State } from '../parts/basic'
import { type Column, fixedRows, Table } from '../parts/table'
import { StateSplit } from './study/states'

export function Studies() {
  const [typed, type] = useState('')
  const q = useSettled(typed)
  const list = useLoad('studies ' + q, s => get<StudyPage>('studies', { q, limit: 1000 }, s), true)
  const soon = useThrottled(list.reload, 1000)
  useLive('all', () => url('live'), { study: soon, 'study-gone': soon, reset: soon }, soon)
  return (
    <>
      <div class="head"><div><h1>Studies</h1></div></div>
      <div class="bar"><input type="search" placeholder="Name or journal" aria-label="Filter by name or journal" value={typed} onInput={e => type(e.currentTarget.value)} /><span class="note" aria-live="polite">{list.data ? plural(list.data.total, 'study', 'studies') : ''}</span></div>
      {list.data?.faulty.map(f => <div class="banner bad" role="alert" key={f.journal}><strong>{f.journal} cannot be read.</strong> {f.error}</div>)}
      <section class="panel"><Show of={list} height={300}>{page => (
        <Table label="studies" rows={fixedRows(page.items)} columns={columns} id={s => s.id} href={s => at.study(s.id)} height={800}
          empty={q ? <Empty title="No study of that name" /> : <Empty title="There are no studies under this root">A search over parameters begins with <code>foldlog study create search.atj --name first --metric loss</code>.</Empty>} />
      )}</Show></section>
    </>
  )
}

const columns: Column<StudyItem>[] = [
  { key: 'name', title: 'Name', width: 180, grow: true, cell: s => <a href={at.study(s.id)}>{s.name}</a> },
  { key: 'state', title: 'State', width: 98, cell: s => s.states.running ? <State state="running" /> : <span class="muted">at rest</span> },
  { key: 'best', title: 'Best', width: 100, right: true, cell: s => s.best ? <b>{value(number(s.best.values[0]))}</b> : <span class="muted">{s.directions.length > 1 ? 'a front' : '–'}</span> },
  { key: 'metric', title: 'Objective', width: 150, cell: s => s.metrics.map((m, i) => `${s.directions[i] === 'maximize' ? '↑' : '↓'} ${m}`).join(', ') },
  { key: 'trials', title: 'Trials', width: 76, right: true, cell: s => count(s.trials) },
  { key: 'split', title: 'States', width: 116, cell: s => <StateSplit states={s.states} /> },
  { key: 'failed', title: 'Failed', width: 70, right: true, cell: s => s.states.failed ? <span class="bad">{count(s.states.failed)}</span> : <span class="muted">0</span> },
  { key: 'sampler', title: 'Sampler', width: 88, cell: s => s.sampler },
  { key: 'journal', title: 'Journal', width: 130, grow: true, cell: s => <span class="muted">{s.journal}</span> },
  { key: 'last', title: 'Last event', width: 118, right: true, cell: s => <Ago ms={s.last_ms} /> },
]
