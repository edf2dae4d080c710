import { useEffect, useState } from 'preact/hooks'
import { ApiError, get, seg, url } from '../lib/api'
import { count, plural, text } from '../lib/format'
import { useLive, useThrottled } from '../lib/live'
import { at, useQuery } from '../lib/router'
import type { DataFailure, ExperimentDetail, ExperimentItem, ItemLine, Page } from '../lib/types'
import { useLoad, useSettled } from '../lib/use'
import { Ago, Check, Choice, Copy, Empty, Failure, Panel, Show, Stat, State, Tabs } from '../parts/basic'
import { type Column, Jump, Table, useRows } from '../parts/table'
import { ExperimentState, ItemSplit, itemStates } from './datagen'


export function Experiment({ id }: { id: string }) {
  const [q, set] = useQuery()
  const detail = useLoad('experiment ' + id, s => get<ExperimentDetail>('datagen/' + seg(id), {}, s))
  const [version, setVersion] = useState(0)
  const again = useThrottled(() => { detail.reload(); setVersion(v => v + 1) }, 1000)
  useLive(detail.data ? id : null, () => url(`datagen/${seg(id)}/live`, { seq: detail.data?.seq }), {
    items: (l: { experiment: ExperimentItem }) => { detail.set(old => ({ ...old, ...l.experiment })); again() }, reset: again, gone: again,
  }, again)
  const e = detail.data
  const tab = q.get('tab') ?? 'overview'
  const waiting = detail.error instanceof ApiError && detail.error.status === 503 && !e
  if (waiting) return <div class="panel"><Empty title="The log is being read for the first time">This page shows it as soon as that is done.</Empty></div>
  if (detail.error && !e) return <><div class="crumbs"><a href={at.datagen}>Datagen</a></div><Failure page error={detail.error} retry={detail.reload} /></>
  return (
    <>
      <div class="head">
        <div><div class="crumbs"><a href={at.datagen}>Datagen</a></div><div class="title"><h1>{e ? `${e.pipeline} / ${e.experiment}` : '\u00a0'}</h1>{e && <><Copy text={e.path} label="Copy the path of the log" /><ExperimentState e={e} /></>}</div></div>
        <div class="facts" style={{ minHeight: 21 }}>{e && <><span><b>{count(e.items)}</b> items, <b>{count(e.roots)}</b> of them roots</span><span><b>{count(e.events)}</b> events</span><span>last event <b><Ago ms={e.updated_ms} /></b></span></>}</div>
      </div>
      <div class="stats">
        {itemStates.map(([k, tone]) => <Stat key={k} n={e ? count(e.states[k]) : '–'} label={k} tone={!e || !e.states[k] ? 'none' : tone === 'live' || tone === 'bad' || tone === 'good' ? tone : undefined} href={`${at.experiment(id)}?tab=items&status=${k}`} />)}
      </div>
      {e && <ItemSplit states={e.states} />}
      {e && e.suspects > 0 && <div class="banner bad" role="alert"><strong>{plural(e.suspects, 'item')} may contradict {e.suspects === 1 ? 'itself' : 'themselves'}.</strong> Events of two writers claim the same place: <a class="link" href={`${at.experiment(id)}?tab=items&suspect=1`}>which ones</a></div>}
      <Tabs label="Parts of the experiment" current={tab} onPick={t => set({ tab: t === 'overview' ? null : t, status: null, step: null, error: null, suspect: null, at: null, sort: null, prefix: null })} tabs={[['overview', 'Overview'], ['items', 'Items', e ? count(e.items) : ''], ['failures', 'Failures', e?.failures.length ? count(e.failures.reduce((n, f) => n + f.events, 0)) : ''], ['writers', 'Writers']]} />
      {tab === 'items' ? <Items id={id} version={version} steps={e?.steps.map(s => s.name) ?? []} /> : tab === 'failures' ? <Failures id={id} version={version} /> : (
        <Show of={detail} height={300}>{d => tab === 'writers' ? <Writers e={d} /> : <div class="cols"><Funnel e={d} /><Roll e={d} /></div>}</Show>
      )}
    </>
  )
}

/** How many items have come through each step, and where those that have not ended stand. */
function Funnel({ e }: { e: ExperimentDetail }) {
  const [, set] = useQuery()
  const most = Math.max(1, ...e.steps.map(s => s.completed))
  return (
    <Panel title="Funnel" note="how often each step was completed">
      {e.steps.length === 0 ? <Empty title="No step has been completed yet" /> : (
        <div class="bars">{e.steps.map(s => <>
          <button class="link name" style={{ border: 0, background: 'none', padding: 0, textAlign: 'left' }} title={`Items that completed ${s.name} last`} onClick={() => set({ tab: 'items', step: s.name })}>{s.name}</button>
          <div class="track" role="img" aria-label={`${s.name}: ${count(s.completed)} completed`}><i style={{ width: `${Math.max(0.5, 100 * s.completed / most)}%` }} /></div>
          <span class="right"><b>{count(s.completed)}</b>{s.items > 0 && <span class="note"> {count(s.items)} stand here</span>}</span>
        </>)}</div>
      )}
    </Panel>
  )
}

function Roll({ e }: { e: ExperimentDetail }) {
  return (
    <Panel title="Failures" note="by step and type">
      {e.failures.length === 0 ? <Empty title="Nothing has failed" /> : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Failures by type"><table class="plain">
          <thead><tr><th>Type</th><th>Step</th><th class="right">Failures</th><th class="right">Items</th><th class="right">Last</th></tr></thead>
          <tbody>{e.failures.map(f => <tr key={f.step + f.type}>
            <td class="bad">{f.type}</td><td>{f.step || <span class="muted">outside of steps</span>}</td><td class="right"><b>{count(f.events)}</b></td>
            <td class="right">{f.items ? <a class="link" href={`${at.experiment(e.id)}?tab=items&error=${encodeURIComponent(f.type)}`}>{count(f.items)}</a> : <span class="muted">0</span>}</td><td class="right"><Ago ms={f.last_ms} /></td>
          </tr>)}</tbody>
        </table></div>
      )}
    </Panel>
  )
}

/** The order in which the server lists items that stand in the natural one of a column. */
const latestFirst = ['updated', 'events']

function Items({ id, version, steps }: { id: string; version: number; steps: string[] }) {
  const [q, set] = useQuery()
  const [typed, type] = useState(q.get('prefix') ?? '')
  const prefix = useSettled(typed)
  useEffect(() => { if (prefix !== (q.get('prefix') ?? '')) set({ prefix, at: null }) }, [prefix])
  const status = q.get('status') ?? '', step = q.get('step') ?? '', error = q.get('error') ?? '', roots = q.get('roots') === '1', suspect = q.get('suspect') === '1'
  const order = (q.get('sort') ?? '-updated').replace(/^[-+ ]/, ''), down = q.has('sort') ? q.get('sort')!.startsWith('-') : true
  const rows = useRows<ItemLine>(JSON.stringify([id, status, step, error, prefix, order, down, roots, suspect]), (offset, limit, s) =>
    get<Page<ItemLine>>(`datagen/${seg(id)}/items`, { status, step, error, prefix, sort: order, reverse: down !== latestFirst.includes(order), roots, suspect, limit, offset }, s))
  useEffect(() => { if (version) rows.reload() }, [version])
  const place = q.get('at') ?? ''
  return (
    <>
      <div class="bar">
        <input type="search" placeholder="Beginning of the name" aria-label="Filter by the beginning of the name" value={typed} onInput={e => type(e.currentTarget.value)} style={{ width: 200 }} />
        <Choice label="Status" value={status} set={v => set({ status: v, at: null })} options={[['', 'All'], ...itemStates.map(([k]) => [k, k[0].toUpperCase() + k.slice(1)] as [string, string])]} />
        {steps.length > 0 && <label>Step<select value={step} onChange={e => set({ step: e.currentTarget.value, at: null })}><option value="">any</option>{steps.map(s => <option key={s}>{s}</option>)}</select></label>}
        <Check on={roots} set={on => set({ roots: on ? '1' : null, at: null })}>Roots only</Check>
        {error && <span class="tag">{error}<button class="copy" aria-label="Any failure" onClick={() => set({ error: null })}>×</button></span>}
        <Jump label="Go to row" from={1} to={rows.total ?? 0} value={place} set={at => set({ at })} width={130} />
        <span class="note" aria-live="polite">{rows.total === null ? '' : plural(rows.total, 'item')}</span>
      </div>
      {rows.error && <Failure error={rows.error} retry={rows.reload} />}
      <section class="panel tall"><Table label="items" rows={rows} columns={itemColumns(id)} id={i => i.item} href={i => at.item(id, i.item)} sort={(down ? '-' : '+') + order} onSort={sort => set({ sort: sort === '-updated' ? null : sort.replace(/^\+/, ''), at: null })}
        jump={place ? Number(place) - 1 : null} empty={<Empty title="No item matches" />} /></section>
    </>
  )
}

const itemColumns = (id: string): Column<ItemLine>[] => [
  { key: 'item', title: 'Item', width: 240, grow: true, sort: 'item', cell: i => <a href={at.item(id, i.item)}>{i.item}</a> },
  { key: 'status', title: 'Status', width: 118, cell: i => <State state={i.status} /> },
  { key: 'step', title: 'Last step', width: 150, cell: i => i.step || <span class="muted">–</span> },
  { key: 'attempt', title: 'Attempt', width: 84, right: true, cell: i => i.attempt > 1 ? <span class="warn">{i.attempt}</span> : <span class="muted">{i.attempt}</span> },
  { key: 'events', title: 'Events', width: 84, right: true, sort: 'events', down: true, cell: i => count(i.events) },
  { key: 'error', title: 'Failure', width: 150, cell: i => i.error_type ? <span class="bad">{i.error_type}</span> : i.failures ? <span class="muted">{plural(i.failures, 'earlier failure')}</span> : '' },
  { key: 'tags', title: 'Tags', width: 140, cell: i => <span class="muted">{Object.entries(i.tags).map(([k, v]) => `${k}=${text(v)}`).join(' ')}</span> },
  { key: 'created', title: 'Created', width: 124, right: true, sort: 'created', down: true, cell: i => <Ago ms={i.created_ms} /> },
  { key: 'updated', title: 'Updated', width: 124, right: true, sort: 'updated', down: true, cell: i => <Ago ms={i.updated_ms} /> },
]

// The last line of a traceback names the exception, in most languages.
function why(f: DataFailure): string {
  const last = f.traceback?.trim().split('\n').pop()?.trim()
  return last && last !== f.type ? `: ${last}` : ''
}

export function FailureList({ id, list, withItem }: { id: string; list: DataFailure[]; withItem: boolean }) {
  return (
    <ul class="list">{list.map(f => (
      <li key={f.from.event}>
        <span class="name">{withItem && <><a href={at.item(id, f.item)}>{f.item}</a>{': '}</>}<span class="bad">{f.type}{why(f)}</span></span><span class="muted">{f.from.step && `in ${f.from.step}, `}attempt {f.from.attempt}, <Ago ms={f.from.at_ms} /></span>
        {(f.traceback || f.dump !== null) && <details class="sub"><summary>Traceback{f.dump !== null && ' and dump'}</summary>{f.traceback && <pre class="code pre">{f.traceback}</pre>}{f.dump !== null && <pre class="code pre">{JSON.stringify(f.dump, null, 2)}</pre>}</details>}
      </li>
    ))}</ul>
  )
}

function Failures({ id, version }: { id: string; version: number }) {
  const load = useLoad(`failures ${id} ${version}`, s => get<Page<DataFailure>>(`datagen/${seg(id)}/failures`, { limit: 100 }, s), true)
  return (
    <Panel title="Failures" note={load.data ? `${plural(load.data.total, 'item')} failed at least once` : undefined}>
      <Show of={load}>{p => p.items.length === 0 ? <Empty title="Nothing has failed" /> : <><FailureList id={id} list={p.items} withItem />{p.next && <p class="more note">Those of the 100 items that changed last; the list of items has the rest.</p>}</>}</Show>
    </Panel>
  )
}

function Writers({ e }: { e: ExperimentDetail }) {
  const m = e.maintenance
  return (
    <div class="cols">
      <Panel title="Writers" note="whose shards are still there">
        {e.writers.length === 0 ? <Empty title="No writer is there">What they wrote has been merged into the table.</Empty> : (
          <div class="scroll" tabIndex={0} role="region" aria-label="Writers"><table class="plain"><thead><tr><th>Process</th><th>Run</th><th>State</th><th class="right">Not merged</th></tr></thead>
            <tbody>{e.writers.map(w => <tr key={w.shard}><td>{w.host || <span class="muted">not known</span>} {w.pid > 0 && <span class="muted">{w.pid}</span>}</td><td>{w.run}</td><td>{w.alive ? <State state="running" /> : w.sealed ? 'sealed' : <State state="silent" />}</td><td class="right">{count(w.rows)} rows</td></tr>)}</tbody></table></div>
        )}
      </Panel>
      <Panel title="Table"><div class="body"><dl class="kv">
        <dt>Path</dt><dd class="mono">{e.path} <Copy text={e.path} /></dd><dt>Version</dt><dd>{count(m.version)}</dd><dt>Rows</dt><dd>{count(m.rows)} in {plural(m.fragments, 'fragment')}</dd>
        <dt>Not merged yet</dt><dd>{count(m.waiting)} rows in {plural(m.unmerged, 'generation')}</dd><dt>Not indexed yet</dt><dd>{plural(m.unindexed, 'fragment')}</dd>
      </dl></div></Panel>
    </div>
  )
}
