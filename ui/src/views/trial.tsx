import { useMemo } from 'preact/hooks'
import { Curves } from '../chart/curves'
import { get, number, numbers, seg, url } from '../lib/api'
import { colorAt } from '../lib/color'
import { count, duration, moment, plural, text, value } from '../lib/format'
import { useLive, useThrottled } from '../lib/live'
import { at } from '../lib/router'
import type { LiveTrials, Page, StudyDetail, TrialDetail, TrialItem } from '../lib/types'
import { useLoad } from '../lib/use'
import { Ago, Copy, Empty, Failure, Panel, State } from '../parts/basic'
import { KeyValues } from './run/details'

export function Trial({ id, number: n }: { id: string; number: string }) {
  const study = useLoad('study ' + id, s => get<StudyDetail>('studies/' + seg(id), {}, s))
  const trial = useLoad(`trial ${id} ${n}`, s => get<TrialDetail>(`studies/${seg(id)}/trials/${seg(n)}`, {}, s))
  const soon = useThrottled(trial.reload, 1000)
  const there = study.data !== null
  useLive(there ? id : null, () => url(`studies/${seg(id)}/live`), { trials: (t: LiveTrials) => { if (t.more || t.items.some(i => i.number === Number(n))) soon() }, reset: soon }, soon)
  const t = trial.data, s = study.data
  const lines = useMemo(() => !t || !s ? [] : t.curve.values.map((v, i) => ({ key: String(i), label: s.metrics[i], color: colorAt(i), xs: numbers(t.curve.steps), ys: numbers(v) })), [t, s])
  const crumbs = <div class="crumbs"><a href={at.studies}>Studies</a> / <a href={at.study(id)}>{s?.name ?? '…'}</a></div>
  if (trial.error && !t) return <>{crumbs}<Failure page error={trial.error} retry={trial.reload} /></>
  const last = s ? s.trials - 1 : 0, k = Number(n)
  return (
    <>
      <div class="head">
        <div>{crumbs}<div class="title"><h1>Trial {count(n)}</h1>{t && <State state={t.state} />}{t && t.attempt > 1 && <span class="tag">attempt {t.attempt}</span>}</div></div>
        <div class="bar">
          {k > 0 && <a class="button" href={at.trial(id, k - 1)}>Previous</a>}{k < last && <a class="button" href={at.trial(id, k + 1)}>Next</a>}
          {t?.run && <a class="button primary" href={at.run(t.run)}>Its metrics</a>}
        </div>
      </div>
      {t?.full_error && <div class="banner bad" role="alert"><strong>Failed.</strong> <span class="pre">{t.full_error}</span></div>}
      {!t || !s ? <div class="panel" style={{ height: 300 }} /> : (
        <div class="cols wide">
          <Panel title="Reported values" note={t.reports ? `${plural(t.reports, 'report')}, last at ${(s.unit || 'step').replace(/s$/i, '').toLowerCase()} ${count(t.last_step ?? '')}` : undefined}>
            {t.curve.steps.length ? <Curves lines={lines} label={`Reports of trial ${n}`} height={300} xLabel={s.unit || 'step'} /> : <Empty title="It has reported nothing" />}
          </Panel>
          <div style={{ display: 'grid', gap: 20 }}>
            <Panel title="Result">
              <div class="body"><dl class="kv">
                {s.metrics.map((m, i) => <><dt key={m}>{m}</dt><dd><b>{i < t.values.length ? value(number(t.values[i])) : '–'}</b></dd></>)}
                <Rank s={s} t={t} />
                <dt>Started</dt><dd>{moment(t.started_ms)}</dd><dt>Took</dt><dd>{t.ended_ms ? duration(t.ended_ms - t.started_ms) : t.state === 'running' ? <>running, last heard of <Ago ms={t.heartbeat_ms || t.started_ms} /></> : '–'}</dd>
                {t.worker && <><dt>Worker</dt><dd class="mono">{t.worker} <Copy text={t.worker} /></dd><dt>Epoch</dt><dd>{t.epoch}</dd></>}
                <dt>Attempt</dt><dd>{t.attempt}{t.max_attempts > 0 && ` of ${t.max_attempts}`}{t.lineage.length > 0 && <>, repeats {t.lineage.map((l, i) => <>{i > 0 && ', '}<a class="link" key={l} href={at.trial(id, l)}>trial {l}</a></>)}</>}</dd>
              </dl></div>
            </Panel>
            <Panel title="Parameters" actions={<Copy text={JSON.stringify(t.params)} label="Copy the parameters as JSON" />}>
              <div class="body"><KeyValues rows={Object.entries(t.params).map(([k, v]) => [k, text(v)])} />{Object.keys(t.params).length === 0 && <span class="muted">none</span>}</div>
            </Panel>
            {Object.keys(t.user_attrs).length > 0 && <Panel title="Attributes"><div class="body"><KeyValues rows={Object.entries(t.user_attrs).map(([k, v]) => [k, text(v)])} /></div></Panel>}
          </div>
        </div>
      )}
    </>
  )
}

/** How many are better: a value says little by itself. */
function Rank({ s, t }: { s: StudyDetail; t: TrialDetail }) {
  const own = t.state === 'complete' && s.directions.length === 1 && t.values.length ? number(t.values[0]) : NaN
  const better = s.directions[0] === 'maximize' ? '>' : '<'
  const load = useLoad(Number.isFinite(own) ? `rank ${s.id} ${own} ${s.states.complete}` : null, sig => get<Page<TrialItem>>(`studies/${seg(s.id)}/trials`, { state: 'complete', where: `value${better}${own}`, limit: 1 }, sig), true)
  if (!Number.isFinite(own)) return null
  const n = load.data?.total
  return <><dt>Rank</dt><dd>{n === undefined ? '…' : n === 0 ? <span class="good">the best of {plural(s.states.complete, 'complete trial')}</span> : <><a class="link" href={`${at.study(s.id)}?tab=trials&state=complete&where=${encodeURIComponent(`value${better}${own}`)}`}>{plural(n, 'trial')}</a> of {count(s.states.complete)} {n === 1 ? 'is' : 'are'} better</>}</dd></>
}
