import { useEffect, useState } from 'preact/hooks'
import { get, number, seg } from '../../lib/api'
import { finder } from '../../lib/find'
import { brief, column, count, duration, reason } from '../../lib/format'
import { at, useQuery } from '../../lib/router'
import { type Cell, cellOf } from '../../lib/save'
import type { Json, Page, StudyDetail, TrialItem } from '../../lib/types'
import { useSettled } from '../../lib/use'
import { Ago, Check, Choice, Empty, Failure, Menu, State } from '../../parts/basic'
import { Export } from '../../parts/export'
import { type Column, Jump, Table, useRows } from '../../parts/table'

export function Trials({ study, version, params, numeric }: { study: StudyDetail; version: number; params: string[]; numeric: Set<string> }) {
  const [q, set] = useQuery()
  const [where, setWhere] = useState(q.get('where') ?? '')
  const rule = useSettled(where, 400)
  const state = q.get('state') ?? '', sort = q.get('sort') ?? ''
  useEffect(() => { if (rule !== (q.get('where') ?? '')) set({ where: rule, at: null }) }, [rule])
  const place = q.get('at') ?? ''
  const rules = rule.split(',').map(s => s.trim()).filter(Boolean)
  const rows = useRows<TrialItem>(JSON.stringify([study.id, state, rule, sort]), (offset, limit, signal) =>
    get<Page<TrialItem>>(`studies/${seg(study.id)}/trials`, { state, where: rules, sort, offset, limit }, signal))
  useEffect(() => { if (version) rows.reload() }, [version])
  const chosen = q.getAll('col').filter(c => params.includes(c))
  const shown = chosen.length ? chosen : params.slice(0, mostColumns)
  const plain = !state && !rules.length && !sort
  return (
    <>
      <div class="bar">
        <Choice label="State" value={state} set={v => set({ state: v, at: null })} options={[['', 'All'], ['running', 'Running'], ['complete', 'Complete'], ['pruned', 'Pruned'], ['failed', 'Failed']]} />
        <input type="search" placeholder="value<0.5, param:lr>0.01" aria-label="Conditions, divided by commas" title="KEY, one of = != < <= > >= ~, and a value. KEY is number, value, duration, error, worker, param:NAME or attr:NAME" value={where} onInput={e => setWhere(e.currentTarget.value)} />
        {plain ? <Jump label="Go to trial number" from={0} to={study.trials - 1} value={place} set={at => set({ at })} /> : <Jump label="Go to row" from={1} to={rows.total ?? 0} value={place} set={at => set({ at })} />}
        <span class="note" aria-live="polite">{rows.total === null ? '' : `${count(rows.total)} of ${count(study.trials)}`}</span>
        <span class="push" />
        {params.length > 1 && <ParamColumns params={params} shown={shown} set={col => set({ col })} />}
        <Export name={`${study.name} trials`} total={rows.total} page={(offset, limit, signal) => get<Page<TrialItem>>(`studies/${seg(study.id)}/trials`, { state, where: rules, sort, offset, limit }, signal)} table={items => tableOf(study, params, items)} />
      </div>
      {rows.error && <Failure error={rows.error} retry={rows.reload} />}
      <section class="panel tall"><Table label="trials" rows={rows} columns={columnsOf(study, shown, numeric)} id={t => String(t.number)} href={t => at.trial(study.id, t.number)} sort={sort || '+number'}
        onSort={s => set({ sort: s === '+number' ? null : s.replace(/^\+/, ''), at: null })} jump={place ? Number(place) - (plain ? 0 : 1) : null} empty={<Empty title={study.trials ? 'No trial matches' : 'No trials yet'} />} /></section>
    </>
  )
}

/** Room for a heading and the arrow of its order, in pixels. */
const widthOf = (title: string) => Math.min(150, Math.ceil(36 + 7.4 * title.length))

/** Parameters that are columns unless others are chosen. */
const mostColumns = 12

const paramCell = (v: Json, type?: string) => typeof v === 'number' && (type === 'float' || !Number.isInteger(v)) ? column(v) : brief(v)

/** Which parameters are columns. */
function ParamColumns({ params, shown, set }: { params: string[]; shown: string[]; set: (cols: string[]) => void }) {
  const [typed, type] = useState('')
  const found = params.filter(finder(typed))
  return (
    <Menu label={shown.length < params.length ? `Columns ${shown.length} of ${count(params.length)}` : 'Columns'}>
      <input type="search" placeholder="Find parameters" aria-label="Find parameters" value={typed} onInput={e => type(e.currentTarget.value)} />
      {found.slice(0, 100).map(p => <Check key={p} on={shown.includes(p)} set={on => set(on ? [...shown, p] : shown.filter(s => s !== p))}><span>{p}</span></Check>)}
      {found.length > 100 && <span class="note">There are more: type to find them.</span>}
      {found.length === 0 && <span class="note">Nothing of that name.</span>}
    </Menu>
  )
}

/** Trials as rows of a table, with all their parameters. */
function tableOf(s: StudyDetail, params: string[], items: TrialItem[]): Cell[][] {
  return [['trial', 'state', ...s.metrics, ...params, 'attempt', 'started', 'seconds', 'worker', 'error'], ...items.map(t => [
    t.number, t.state, ...s.metrics.map((_, i) => i < t.values.length ? number(t.values[i]) : ''), ...params.map(p => p in t.params ? cellOf(t.params[p]) : ''), t.attempt,
    t.started_ms ? new Date(t.started_ms).toISOString() : '', t.ended_ms && t.started_ms ? (t.ended_ms - t.started_ms) / 1000 : '', t.worker ?? '', t.error,
  ])]
}

function columnsOf(s: StudyDetail, params: string[], numeric: Set<string>): Column<TrialItem>[] {
  return [
    { key: 'number', title: 'Trial', width: 84, right: true, sort: 'number', cell: t => <>{s.best?.number === t.number && <span class="good" title="the best trial" aria-label="the best trial">★ </span>}<a href={at.trial(s.id, t.number)}>{count(t.number)}</a></> },
    { key: 'state', title: 'State', width: 108, cell: t => <State state={t.state} /> },
    ...s.metrics.map((m, i): Column<TrialItem> => ({ key: 'v' + i, title: m, width: Math.max(112, widthOf(m)), right: true, sort: `value:${i}`, down: s.directions[i] === 'maximize', cell: t => i < t.values.length ? <b>{column(number(t.values[i]))}</b> : <span class="muted">–</span> })),
    ...params.map((name): Column<TrialItem> => {
      const type = s.space.find(p => p.name === name)?.type, right = numeric.has(name)
      return { key: 'p' + name, title: name, width: Math.max(right && type !== 'int' ? 100 : 76, widthOf(name)), right, sort: 'param:' + name, cell: t => name in t.params ? paramCell(t.params[name], type) : <span class="muted">–</span> }
    }),
    { key: 'reports', title: 'Reports', width: 78, right: true, cell: t => count(t.reports) },
    { key: 'attempt', title: 'Attempt', width: 84, right: true, cell: t => t.attempt > 1 ? <span class="warn" title={`repeats trial ${t.retry_of}`}>{t.attempt}</span> : <span class="muted">1</span> },
    { key: 'took', title: 'Time', width: 92, right: true, sort: 'duration', down: true, cell: t => t.ended_ms && t.started_ms ? duration(t.ended_ms - t.started_ms) : t.state === 'running' ? <Ago ms={t.started_ms} /> : '–' },
    { key: 'error', title: 'Error', width: 130, grow: true, sort: 'error', cell: t => t.error ? <span class="bad" title={t.error}>{reason(t.error)}</span> : '' },
  ]
}
