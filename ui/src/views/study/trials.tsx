import { useEffect, useState } from 'preact/hooks'
import { get, number, seg } from '../../lib/api'
import { column, count, duration, reason, text } from '../../lib/format'
import { at, useQuery } from '../../lib/router'
import type { Page, StudyDetail, TrialItem } from '../../lib/types'
import { useSettled } from '../../lib/use'
import { Ago, Choice, Empty, Failure, State } from '../../parts/basic'
import { type Column, Jump, Table, useRows } from '../../parts/table'

export function Trials({ study, version }: { study: StudyDetail; version: number }) {
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
  const plain = !state && !rules.length && !sort
  return (
    <>
      <div class="bar">
        <Choice label="State" value={state} set={v => set({ state: v, at: null })} options={[['', 'All'], ['running', 'Running'], ['complete', 'Complete'], ['pruned', 'Pruned'], ['failed', 'Failed']]} />
        <input type="search" placeholder="value<0.5, param:lr>0.01" aria-label="Conditions, divided by commas" title="KEY, one of = != < <= > >= ~, and a value. KEY is number, value, duration, error, worker, param:NAME or attr:NAME" value={where} onInput={e => setWhere(e.currentTarget.value)} />
        {plain ? <Jump label="Go to trial number" from={0} to={study.trials - 1} value={place} set={at => set({ at })} /> : <Jump label="Go to row" from={1} to={rows.total ?? 0} value={place} set={at => set({ at })} />}
        <span class="note" aria-live="polite">{rows.total === null ? '' : `${count(rows.total)} of ${count(study.trials)}`}</span>
      </div>
      {rows.error && <Failure error={rows.error} retry={rows.reload} />}
      <section class="panel tall"><Table label="trials" rows={rows} columns={columnsOf(study)} id={t => String(t.number)} href={t => at.trial(study.id, t.number)} sort={sort || '+number'}
        onSort={s => set({ sort: s === '+number' ? null : s.replace(/^\+/, ''), at: null })} jump={place ? Number(place) - (plain ? 0 : 1) : null} empty={<Empty title={study.trials ? 'No trial matches' : 'No trials yet'} />} /></section>
    </>
  )
}

/** Room for a heading and the arrow of its order, in pixels. */
const widthOf = (title: string) => Math.min(150, Math.ceil(36 + 7.4 * title.length))

function columnsOf(s: StudyDetail): Column<TrialItem>[] {
  return [
    { key: 'number', title: 'Trial', width: 84, right: true, sort: 'number', cell: t => <>{s.best?.number === t.number && <span class="good" title="the best trial" aria-label="the best trial">★ </span>}<a href={at.trial(s.id, t.number)}>{count(t.number)}</a></> },
    { key: 'state', title: 'State', width: 108, cell: t => <State state={t.state} /> },
    ...s.metrics.map((m, i): Column<TrialItem> => ({ key: 'v' + i, title: m, width: Math.max(112, widthOf(m)), right: true, sort: `value:${i}`, down: s.directions[i] === 'maximize', cell: t => i < t.values.length ? <b>{column(number(t.values[i]))}</b> : <span class="muted">–</span> })),
    ...s.space.slice(0, 12).map((p): Column<TrialItem> => ({ key: 'p' + p.name, title: p.name, width: Math.max(p.type === 'float' ? 100 : 76, widthOf(p.name)), right: p.type === 'float' || p.type === 'int', sort: 'param:' + p.name, cell: t => p.name in t.params ? p.type === 'float' ? column(Number(t.params[p.name])) : text(t.params[p.name]) : <span class="muted">–</span> })),
    ...(s.space.length === 0 ? [{ key: 'params', title: 'Parameters', width: 260, grow: true, cell: t => Object.entries(t.params).map(([k, v]) => `${k}=${text(v)}`).join('  ') } as Column<TrialItem>] : []),
    { key: 'reports', title: 'Reports', width: 78, right: true, cell: t => count(t.reports) },
    { key: 'attempt', title: 'Attempt', width: 84, right: true, cell: t => t.attempt > 1 ? <span class="warn" title={`repeats trial ${t.retry_of}`}>{t.attempt}</span> : <span class="muted">1</span> },
    { key: 'took', title: 'Time', width: 92, right: true, sort: 'duration', down: true, cell: t => t.ended_ms && t.started_ms ? duration(t.ended_ms - t.started_ms) : t.state === 'running' ? <Ago ms={t.started_ms} /> : '–' },
    { key: 'error', title: 'Error', width: 130, grow: true, sort: 'error', cell: t => t.error ? <span class="bad" title={t.error}>{reason(t.error)}</span> : '' },
  ]
}
