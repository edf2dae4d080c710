import { useMemo, useRef, useState } from 'preact/hooks'
import { ApiError, bytesOf, get, number, seg, url } from '../lib/api'
import { count, duration, plural, text, value } from '../lib/format'
import { useLive, useThrottled } from '../lib/live'
import { at, useQuery } from '../lib/router'
import { type Columns, merged, packedType, paramNames, unpacked, valueOf } from '../lib/study'
import type { BestTrial, LiveTrials, StudyDetail, TrialDetail, TrialItem } from '../lib/types'
import { useLoad } from '../lib/use'
import { Ago, Choice, Copy, Empty, Failure, Panel, Show, Stat, State, Tabs } from '../parts/basic'
import { CurvesTab, FrontTab, History, ImportanceBars, OutboxTab, Parameters, TimelineTab } from './study/tabs'
import { Failures } from './study/failures'
import { Distribution, Volume } from './study/spread'
import { Trials } from './study/trials'
import { StateSplit } from './study/states'

export function Study({ id }: { id: string }) {
  const [q, set] = useQuery()
  const detail = useLoad('study ' + id, s => get<StudyDetail>('studies/' + seg(id), {}, s))
  const columns = useLoad<Columns>('columns ' + id, s => bytesOf(`studies/${seg(id)}/columns`, packedType, s).then(unpacked))
  const [version, setVersion] = useState(0)
  const size = columns.data?.numbers.length ?? 0
  const waiting = useRef<Map<number, TrialItem>>(new Map())
  const take = useThrottled(() => {
    const items = [...waiting.current.values()]
    waiting.current.clear()
    columns.set(old => merged(old, items))
    setVersion(v => v + 1)
  }, Math.max(500, size / 25))
  const again = useThrottled(() => { detail.reload(); columns.reload(); setVersion(v => v + 1) }, Math.max(2000, size / 10))
  useLive(detail.data ? id : null, () => url(`studies/${seg(id)}/live`, { seq: detail.data?.seq }), {
    trials: (t: LiveTrials) => {
      detail.set(old => ({ ...old, ...t.study }))
      if (t.more) { again(); return }
      for (const item of t.items) waiting.current.set(item.number, item)
      take()
    },
    reset: again,
    gone: again,
  }, again)
  const s = detail.data
  const objective = Math.min(Number(q.get('objective')) || 0, Math.max(0, (s?.metrics.length ?? 1) - 1))
  const many = (s?.directions.length ?? 1) > 1
  const tab = q.get('tab') ?? 'overview'
  if (detail.error && !s) return <><div class="crumbs"><a href={at.studies}>Studies</a></div><Failure page error={detail.error instanceof ApiError && detail.error.status === 404 ? new ApiError(404, 'Not found', 'There is no such study under this root.') : detail.error} retry={detail.reload} /></>
  const tabs: [string, string, string?][] = [['overview', 'Overview'], ['params', 'Parameters'], ['curves', 'Curves'], ['timeline', 'Timeline'], ['trials', 'Trials', s ? count(s.trials) : ''], ['outbox', 'Outbox']]
  return (
    <>
      <Header s={s} />
      <Tabs label="Parts of the study" current={tab} onPick={t => set({ tab: t === 'overview' ? null : t, state: null, where: null, sort: null, at: null })} tabs={tabs} />
      {many && s && tab !== 'trials' && tab !== 'outbox' && tab !== 'timeline' && <div class="bar"><span class="muted">Objective</span><Choice label="Objective" options={s.metrics.map((m, i) => [String(i), m])} value={String(objective)} set={o => set({ objective: o === '0' ? null : o })} /></div>}
      {s && tab === 'trials' ? <Trials study={s} version={version} params={columns.data ? paramNames(s, columns.data) : s.space.map(p => p.name)} numeric={numericOf(s, columns.data)} /> : (
        <Show of={columns} height={420}>{c => {
          if (!s) return null
          const p = { study: s, columns: c, objective }
          if (tab === 'params') return <Parameters {...p} />
          if (tab === 'curves') return <CurvesTab {...p} />
          if (tab === 'timeline') return <TimelineTab {...p} />
          if (tab === 'outbox') return <OutboxTab {...p} />
          if (c.numbers.length === 0) return <div class="panel"><Empty title="No trials yet">They appear here as workers ask for them: <code>foldlog study run {s.journal} -- COMMAND</code></Empty></div>
          return (
            <>
              {many && <FrontTab {...p} />}
              <div class="cols wide"><div class="stack">{many && s.directions.length < 4 && <Volume {...p} />}<History {...p} /><Distribution {...p} /><About s={s} c={c} /></div><div class="stack">{!many && s.best && <Best s={{ ...s, best: s.best }} c={c} />}{s.states.failed > 0 && <Failures study={s} />}<ImportanceBars {...p} /></div></div>
            </>
          )
        }}</Show>
      )}
    </>
  )
}

/** The parameters that are numbers. */
const numericOf = (s: StudyDetail, c: Columns | null) => new Set([...s.space.filter(p => p.type === 'float' || p.type === 'int').map(p => p.name), ...[...c?.params ?? []].filter(([, p]) => p.values === null).map(([n]) => n)])

function Header({ s }: { s: StudyDetail | null }) {
  return (
    <>
      <div class="head">
        <div>
          <div class="crumbs"><a href={at.studies}>Studies</a></div>
          <div class="title"><h1>{s?.name ?? '\u00a0'}</h1>{s && <><Copy text={s.name} label="Copy the name" />{s.states.running > 0 ? <State state="running" /> : <span class="muted">at rest</span>}</>}</div>
        </div>
        <div class="facts" style={{ minHeight: 21 }}>{s && <><span>{s.metrics.map((m, i) => `${s.directions[i]} ${m}`).join(', ')}</span><span>sampler <b>{s.sampler}</b></span>{s.pruner && <span>pruner <b>{s.pruner}</b></span>}<span>last event <b><Ago ms={s.last_ms} /></b></span></>}</div>
      </div>
      <div class="stats">
        {s?.directions.length === 1 && <Stat main n={s.best ? value(number(s.best.values[0])) : '–'} label={s.best ? `best ${s.metrics[0]}, trial ${s.best.number}` : `best ${s.metrics[0]}`} tone={s.best ? 'good' : 'none'} href={s.best && at.trial(s.id, s.best.number)} />}
        {(['running', 'complete', 'pruned', 'failed', 'waiting'] as const).map(k => <Stat key={k} n={s ? count(s.states[k]) : '–'} label={k} tone={!s || s.states[k] === 0 ? 'none' : k === 'running' ? 'live' : k === 'failed' ? 'bad' : undefined} href={s ? `${at.study(s.id)}?tab=trials&state=${k}` : undefined} />)}
      </div>
      {s && <StateSplit states={s.states} />}
    </>
  )
}

function Best({ s, c }: { s: StudyDetail & { best: BestTrial }; c: Columns }) {
  const i = s.best.number
  const exact = useLoad(`trial ${s.id} ${i}`, sig => get<TrialDetail>(`studies/${seg(s.id)}/trials/${i}`, {}, sig))
  const params = paramNames(s, c).map(p => [p, exact.data ? exact.data.params[p] ?? null : valueOf(c.params.get(p), i)] as const).filter(([, v]) => v !== null)
  return (
    <Panel title="Best trial" note={<a class="link" href={at.trial(s.id, i)}>trial {i}</a>} actions={<Copy text={JSON.stringify(Object.fromEntries(params))} label="Copy the parameters as JSON" />}>
      <div class="body"><dl class="kv"><dt>{s.metrics[0]}</dt><dd><b>{value(number(s.best.values[0]))}</b></dd>{params.map(([k, v]) => <><dt key={k}>{k}</dt><dd class="mono">{text(v)} <Copy text={text(v)} label={`Copy ${k}`} /></dd></>)}</dl></div>
    </Panel>
  )
}

function About({ s, c }: { s: StudyDetail; c: Columns }) {
  const took = useMemo(() => {
    let sum = 0, n = 0
    for (let i = 0; i < c.ended.length; i++) if (c.ended[i] && c.started[i]) { sum += c.ended[i] - c.started[i]; n++ }
    return n ? sum / n : NaN
  }, [c])
  const attrs = Object.entries(s.attrs)
  return (
    <Panel title="About" note={plural(paramNames(s, c).length, 'parameter')}>
      <div class="body"><dl class="kv">
        <dt>Journal</dt><dd class="mono">{s.journal} <Copy text={s.journal} /></dd>
        <dt>A trial takes</dt><dd>{Number.isFinite(took) ? duration(took) : '–'} on average</dd>
        {s.seed && <><dt>Seed</dt><dd class="mono">{s.seed}</dd></>}
        {s.space.map(p => <><dt key={p.name}>{p.name}</dt><dd>{p.type}{p.low !== null && ` from ${value(number(p.low))} to ${value(number(p.high))}`}{p.log && ', logarithmic'}{p.choices.length > 0 && `: ${p.choices.map(text).join(', ')}`}</dd></>)}
        {attrs.map(([k, v]) => <><dt key={'a' + k}>{k}</dt><dd class="mono pre">{text(v)}</dd></>)}
      </dl></div>
    </Panel>
  )
}
