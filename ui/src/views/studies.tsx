import { useState } from 'preact/hooks'
import { get, number, url } from '../lib/api'
import { count, plural, value } from '../lib/format'
import { useLive, useThrottled } from '../lib/live'
import { at, go, useQuery } from '../lib/router'
import type { StudyItem, StudyPage } from '../lib/types'
import { useLoad, useTyped } from '../lib/use'
import { Ago, Empty, Show, State } from '../parts/basic'
import { type Column, fixedRows, newest, sorted, Table } from '../parts/table'
import { StateSplit } from './study/states'

export function Studies() {
  const [typed, type, q] = useTyped('q')
  const [query, set] = useQuery(), sort = query.get('sort') ?? '-last'
  const list = useLoad('studies ' + q, s => get<StudyPage>('studies', { q, limit: 1000 }, s), true)
  const [chosen, choose] = useState(new Set<string>())
  const select = (id: string, on: boolean) => {
    const next = new Set(chosen)
    if (on) next.add(id)
    else next.delete(id)
    choose(next)
  }
  const soon = useThrottled(list.reload, 1000)
  useLive('all', () => url('live'), { study: soon, 'study-gone': soon, reset: soon }, soon)
  return (
    <>
      <div class="head"><div><h1>Studies</h1></div></div>
      <div class="bar"><input type="search" placeholder="Name or journal" aria-label="Filter by name or journal" value={typed} onInput={e => type(e.currentTarget.value)} /><span class="note" aria-live="polite">{list.data ? plural(list.data.total, 'study', 'studies') + newest(list.data) : ''}</span>
        <span class="push" /><button class="primary" disabled={chosen.size < 2} title="Choose two or more studies to compare them" onClick={() => go(at.compareStudies([...chosen]))}>Compare{chosen.size ? ` ${chosen.size}` : ''}</button></div>
      {list.data?.faulty.map(f => <div class="banner bad" role="alert" key={f.journal}><strong>{f.journal} cannot be read.</strong> {f.error}</div>)}
      <section class="panel"><Show of={list} height={300}>{page => (
        <Table label="studies" rows={fixedRows(sorted(page.items, columns, sort))} columns={columns} sort={sort} onSort={sort => set({ sort })} id={s => s.id} selected={chosen} onSelect={select} href={s => at.study(s.id)} height={800}
          empty={q ? <Empty title="No study of that name" /> : <Empty title="There are no studies under this root">A search over parameters begins with <code>foldlog study create search.atj --name first --metric loss</code>.</Empty>} />
      )}</Show></section>
    </>
  )
}

const columns: Column<StudyItem>[] = [
  { key: 'name', title: 'Name', width: 180, grow: true, sort: 'name', by: s => s.name, cell: s => <a href={at.study(s.id)}>{s.name}</a> },
  { key: 'state', title: 'State', width: 98, cell: s => s.states.running ? <State state="running" /> : <span class="muted">at rest</span> },
  { key: 'best', title: 'Best', width: 100, right: true, sort: 'best', by: s => s.best ? number(s.best.values[0]) : NaN, cell: s => s.best ? <b>{value(number(s.best.values[0]))}</b> : <span class="muted">{s.directions.length > 1 ? 'a front' : '–'}</span> },
  { key: 'metric', title: 'Objective', width: 150, cell: s => s.metrics.map((m, i) => `${s.directions[i] === 'maximize' ? '↑' : '↓'} ${m}`).join(', ') },
  { key: 'trials', title: 'Trials', width: 80, right: true, sort: 'trials', down: true, by: s => s.trials, cell: s => count(s.trials) },
  { key: 'split', title: 'States', width: 116, cell: s => <StateSplit states={s.states} /> },
  { key: 'failed', title: 'Failed', width: 80, right: true, sort: 'failed', down: true, by: s => s.states.failed, cell: s => s.states.failed ? <span class="bad">{count(s.states.failed)}</span> : <span class="muted">0</span> },
  { key: 'sampler', title: 'Sampler', width: 94, sort: 'sampler', by: s => s.sampler, cell: s => s.sampler },
  { key: 'journal', title: 'Journal', width: 130, grow: true, sort: 'journal', by: s => s.journal, cell: s => <span class="muted">{s.journal}</span> },
  { key: 'last', title: 'Last event', width: 118, right: true, sort: 'last', down: true, by: s => s.last_ms, cell: s => <Ago ms={s.last_ms} /> },
]
