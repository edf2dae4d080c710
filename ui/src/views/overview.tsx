import type { ComponentChildren } from 'preact'
import { Spark } from '../chart/spark'
import { get, number, numbers, post, url } from '../lib/api'
import { serverNow } from '../lib/clock'
import { colorOf } from '../lib/color'
import { count, plural, value } from '../lib/format'
import { useLive, useThrottled } from '../lib/live'
import { at } from '../lib/router'
import { telling } from '../lib/runs'
import type { ExperimentItem, NameItem, Overview as Body, Page, RunItem, RunSeries, StudyItem, StudyPage } from '../lib/types'
import { useLoad } from '../lib/use'
import { Ago, Empty, Failure, Panel, RunState, Show, silentAfter, Stat, State } from '../parts/basic'
import { LastFailure } from './study/failures'
import { StateSplit } from './study/states'
import { isAlive, ItemSplit } from './datagen'

const few = 8

export function Overview() {
  const all = useLoad('overview', s => get<Body>('overview', {}, s))
  const studies = useLoad('studies', s => get<StudyPage>('studies', { limit: 200 }, s))
  const failed = useLoad('failed', s => get<Page<RunItem>>('runs', { status: 'failed', limit: few }, s))
  const silent = useLoad('silent', s => get<Page<RunItem>>('runs', { status: 'running', where: `updated<${serverNow() - silentAfter}`, limit: few }, s))
  const data = useLoad('datagen', s => get<Page<ExperimentItem>>('datagen', { limit: 200 }, s))
  const o = all.data
  const quiet = !!o && o.alive.length === 0 && o.runs.total > 0
  const latest = useLoad(quiet ? 'latest' : null, s => get<Page<RunItem>>('runs', { sort: '-updated', limit: 5 }, s))
  const reload = useThrottled(() => { all.reload(); studies.reload(); failed.reload(); silent.reload(); data.reload(); latest.reload() }, 1000)
  useLive('all', () => url('live'), { run: reload, 'run-gone': reload, study: reload, 'study-gone': reload, experiment: reload, 'experiment-gone': reload, reset: reload }, reload)
  if (all.error && !all.data) return <Failure error={all.error} retry={reload} />
  const busy = studies.data?.items.filter(s => s.states.running > 0) ?? []
  const experiments = data.data?.items ?? []
  const making = experiments.filter(e => isAlive(e, serverNow()))
  const nothing = o && o.runs.total === 0 && o.studies === 0 && experiments.length === 0 && (studies.data?.faulty.length ?? 0) === 0
  return (
    <>
      <div class="head"><div><h1>Overview</h1></div>{o && o.waiting > 0 && <span class="note">{plural(o.waiting, 'file')} still being read</span>}</div>
      <div class="stats">
        <Stat n={o ? count(o.alive.length) + (o.alive.length === 100 ? '+' : '') : '–'} label="runs alive" tone={o?.alive.length ? 'live' : 'none'} href={at.runs + '?status=running'} />
        <Stat n={o ? count(o.runs.done) : '–'} label="done" href={at.runs + '?status=done'} />
        <Stat n={o ? count(o.runs.failed) : '–'} label="failed" tone={o?.runs.failed ? 'bad' : 'none'} href={at.runs + '?status=failed'} />
        <Stat n={o ? count(o.runs.total) : '–'} label="runs in all" href={at.runs} />
        <Stat n={o ? count(o.studies) : '–'} label={o ? o.studies === 1 ? 'study' : 'studies' : 'studies'} href={at.studies} />
        <Stat n={studies.data ? count(busy.reduce((n, s) => n + s.states.running, 0)) : '–'} label="trials running" tone={busy.length ? 'live' : 'none'} href={at.studies} />
        <Stat n={data.data ? count(data.data.total) : '–'} label={data.data?.total === 1 ? 'datagen experiment' : 'datagen experiments'} href={at.datagen} />
      </div>
      {experiments.filter(e => e.error).map(e => <div class="banner bad" role="alert" key={e.id}><strong>{e.path} cannot be read.</strong> {e.error}</div>)}
      {studies.data?.faulty.map(f => <div class="banner bad" role="alert" key={f.journal}><strong>{f.journal} cannot be read.</strong> {f.error}</div>)}
      {nothing ? <Nothing /> : (
        <>
          <Panel title="Alive now" note={o && o.alive.length > 0 ? 'said something within ten minutes' : undefined}>
            <Show of={all}>{o => o.alive.length + busy.length + making.length === 0
              ? <Empty title="Nothing is running">What starts under this root appears here by itself.</Empty>
              : <Alive runs={o.alive.slice(0, 12)} studies={busy} making={making} more={o.alive.length - 12} />}</Show>
          </Panel>
          <div class="cols">
            <Panel title="Best so far" note={studies.data ? plural(studies.data.total, 'study', 'studies') : undefined}>
              <Show of={studies}>{s => s.items.length === 0 ? <Empty title="No studies">A search over parameters begins with <code>foldlog study create</code>.</Empty> : <Best studies={s.items} />}</Show>
            </Panel>
            <Panel title="Failed" note={failed.data && failed.data.total > few ? `the newest ${few} of ${count(failed.data.total)}` : undefined}>
              <Show of={failed}>{f => <Failed runs={f} studies={studies.data?.items ?? []} experiments={experiments} />}</Show>
            </Panel>
          </div>
          {silent.data && silent.data.total > 0 && (
            <Panel title="Silent" note="not ended, but nothing heard for ten minutes: interrupted, killed, or very slow">
              <ul class="list">{silent.data.items.map(r => (
                <li key={r.slug}><a class="name" href={at.run(r.slug)}>{r.slug}</a><RunState run={r} /><div class="sub">{r.interrupted ? `stopped by ${r.interrupted}` : 'no word why'} at step {count(r.last_step)}, last event <Ago ms={r.last_ms} /></div></li>
              ))}</ul>
              {silent.data.total > few && <a class="more" href={at.runs + '?status=running'}>All {count(silent.data.total)}</a>}
            </Panel>
          )}
          {quiet && silent.data && (
            <Panel title="Latest runs" note={<a class="link" href={at.runs}>all {count(o.runs.total)}</a>}>
              <Show of={latest} height={180}>{l => <Alive runs={l.items} studies={[]} making={[]} more={0} />}</Show>
            </Panel>
          )}
        </>
      )}
    </>
  )
}

function Nothing() {
  return (
    <Panel title="Nothing here yet">
      <Empty title="There are no logs under this root">
        <div>Runs, studies and datagen logs appear here by themselves. To have something to look at:</div>
        <pre class="code">{`printf 'step=1 loss=0.9\\nstep=2 loss=0.5\\n' | foldlog metrics record --slug my-run --to jsonl:my-run.jsonl`}</pre>
      </Empty>
    </Panel>
  )
}

function Alive({ runs, studies, making, more }: { runs: RunItem[]; studies: StudyItem[]; making: ExperimentItem[]; more: number }) {
  const slugs = runs.map(r => r.slug)
  const names = useLoad(slugs.length ? 'names ' + slugs.join('\0') : null, s => get<Page<NameItem>>('names', { run: slugs, limit: 500 }, s))
  const wanted = names.data ? telling(names.data.items.map(n => n.name), 6) : []
  const stamp = Math.floor(Math.max(0, ...runs.map(r => r.last_ms)) / 2000)
  const series = useLoad(wanted.length ? [stamp, ...slugs, ...wanted].join('\0') : null,
    s => post<{ runs: RunSeries[] }>('series', { runs: slugs, names: wanted, points: 60, newest: true }, s), true)
  return (
    <ul class="list">
      {studies.slice(0, 6).map(s => (
        <li key={s.id} class="live-row">
          <span class="name"><a href={at.study(s.id)}>{s.name}</a><span class="kind">study</span></span><State state="running" /><span class="opt muted">{plural(s.states.running, 'trial')} at work</span>
          <span class="opt"><StateSplit states={s.states} /></span><span class="opt right">{s.best ? <>best <b>{value(number(s.best.values[0]))}</b></> : ''}</span><span class="right muted"><Ago ms={s.last_ms} /></span>
        </li>
      ))}
      {making.slice(0, 6).map(e => (
        <li key={e.id} class="live-row">
          <span class="name"><a href={at.experiment(e.id)}>{e.pipeline} / {e.experiment}</a><span class="kind">datagen</span></span><State state="running" /><span class="opt muted">{plural(e.states.running, 'item')} at work</span>
          <span class="opt"><ItemSplit states={e.states} /></span><span class="opt right">completed <b>{count(e.states.completed)}</b></span><span class="right muted"><Ago ms={e.updated_ms} /></span>
        </li>
      ))}
      {runs.map(r => {
        const curves = series.data?.runs.find(x => x.slug === r.slug)?.curves ?? []
        const c = wanted.map(n => curves.find(x => x.name === n)).find(Boolean)
        const ys = c ? numbers(c.values) : []
        return (
          <li key={r.slug} class="live-row">
            <span class="name"><a href={at.run(r.slug)}>{r.slug}</a><span class="kind">run</span></span><RunState run={r} />
            <span class="opt muted clip">{r.stage ? r.stage + ', ' : ''}step {count(r.last_step)}</span>
            <span class="opt">{ys.length > 1 && <Spark ys={ys} color={colorOf(r.slug)} label={`${c!.name} of ${r.slug}`} />}</span>
            <span class="opt last-value" title={c?.name}>{c ? <><span class="clip">{c.name}</span> <b>{value(ys[ys.length - 1])}</b></> : ''}</span><span class="right muted"><Ago ms={r.last_ms} /></span>
          </li>
        )
      })}
      {more > 0 && <li><a class="link" href={at.runs + '?status=running'}>{more} more</a></li>}
    </ul>
  )
}

function Best({ studies }: { studies: StudyItem[] }) {
  return (
    <>
      <ul class="list">
        {studies.slice(0, few).map(s => (
          <li key={s.id}>
            <a class="name" href={at.study(s.id)}>{s.name}</a>
            {s.best ? <a href={at.trial(s.id, s.best.number)} title={`trial ${s.best.number}`}><b>{value(number(s.best.values[0]))}</b></a> : <span class="muted">{s.directions.length > 1 ? `${s.directions.length} objectives` : 'no result yet'}</span>}
            <div class="sub">{s.best ? `${s.metrics[0]}, ${s.directions[0]}d by trial ${s.best.number} of ${count(s.trials)}` : plural(s.trials, 'trial')}{', '}<Ago ms={s.last_ms} /></div>
          </li>
        ))}
      </ul>
      {studies.length > few && <a class="more" href={at.studies}>All studies</a>}
    </>
  )
}

/** What failed and why, the newest first. */
function Failed({ runs, studies, experiments }: { runs: Page<RunItem>; studies: StudyItem[]; experiments: ExperimentItem[] }) {
  const bad = studies.filter(s => s.states.failed > 0).slice(0, few)
  const broken = experiments.filter(e => e.states.failed > 0).slice(0, few)
  if (runs.total + bad.length + broken.length === 0) return <Empty title="Nothing has failed" />
  const line = (key: string, href: string, name: string, kind: string, ms: number, why: ComponentChildren) => ({ ms, row: <li key={key}><span class="name"><a href={href}>{name}</a><span class="kind">{kind}</span></span><span class="muted"><Ago ms={ms} /></span><div class="sub bad clamp">{why}</div></li> })
  const lines = [
    ...runs.items.map(r => line('r' + r.slug, at.run(r.slug), r.slug, 'run', r.last_ms, r.failure || 'It did not say why.')),
    ...bad.map(s => line('s' + s.id, at.study(s.id) + '?tab=trials&state=failed', s.name, 'study', s.last_ms, <>{plural(s.states.failed, 'trial')} of {count(s.trials)} failed<LastFailure study={s} /></>)),
    ...broken.map(e => line('e' + e.id, at.experiment(e.id) + '?tab=failures', `${e.pipeline} / ${e.experiment}`, 'datagen', e.updated_ms, `${plural(e.states.failed, 'item')} of ${count(e.items)} failed`)),
  ]
  return (
    <>
      <ul class="list">{lines.sort((a, b) => b.ms - a.ms).map(l => l.row)}</ul>
      {runs.total > few && <a class="more" href={at.runs + '?status=failed'}>All {count(runs.total)} failed runs</a>}
    </>
  )
}
