import type { ComponentChildren } from 'preact'
import { useCallback, useMemo, useState } from 'preact/hooks'
import { type Along, alongOf } from '../lib/along'
import { ApiError, get, seg, url } from '../lib/api'
import { colorOf } from '../lib/color'
import { marked, remarks, useCurve, useFeed } from '../lib/feed'
import { finder } from '../lib/find'
import { count, duration, plural } from '../lib/format'
import { useLive, useThrottled } from '../lib/live'
import { usePins } from '../lib/pins'
import { at } from '../lib/router'
import { groupsOf } from '../lib/runs'
import type { Annotation, LivePoints, Page, RunDetail } from '../lib/types'
import { useLoad, useNow } from '../lib/use'
import { Ago, Check, Copy, Empty, Failure, lifeOf, Long, RunState, Tabs } from '../parts/basic'
import { ChartBar, useChartSettings } from '../parts/settings'
import { RunChart } from './run/chart'
import { Annotations, Details } from './run/details'

const mostMarks = 6000, mostRemarks = 1000
const noMarks: Annotation[] = []

/** What charts mark, in order: the newest of what a run depends on, and of what else was said. */
async function marksOf(slug: string, signal: AbortSignal): Promise<Annotation[]> {
  const ask = (list: string[], limit: number) => get<Page<Annotation>>(`runs/${seg(slug)}/annotations`, { class: list, limit, newest: true }, signal)
  const [marks, others] = await Promise.all([ask(marked, mostMarks - mostRemarks), ask(remarks, mostRemarks)])
  return [...marks.items, ...others.items].sort((a, b) => a.ts_ms - b.ts_ms)
}

export function Run({ slug }: { slug: string }) {
  const [s, set, q] = useChartSettings()
  const detail = useLoad('run ' + slug, sig => get<RunDetail>(`runs/${seg(slug)}`, {}, sig))
  const marks = useLoad('marks ' + slug, sig => marksOf(slug, sig))
  const [notes, setNotes] = useState(0)
  const said = useThrottled(() => setNotes(n => n + 1), 1000)
  const soon = useThrottled(detail.reload, 2000)
  const anew = useCallback(() => { detail.reload(); marks.reload() }, [])
  const news = useCallback((p: LivePoints) => {
    if (p.annotations.length) {
      said()
      marks.set(old => [...old, ...p.annotations.filter(a => a.class !== 'stage')].slice(-mostMarks))
    }
    soon()
  }, [])
  const feed = useFeed(detail.data, news, anew)
  const run = detail.data
  useLive(detail.error && !run ? 'all' : null, () => url('live'), { run: r => { if (r.slug === slug) anew() }, reset: anew }, anew)
  const tab = q.get('tab') ?? 'charts'
  if (detail.error && !run) return <><Crumbs /><Failure page error={detail.error instanceof ApiError && detail.error.status === 404 ? new ApiError(404, 'Not found', `There is no run “${slug}” under this root.`) : detail.error} retry={detail.reload} /></>
  return (
    <>
      <Header slug={slug} run={run} />
      {run && <Trouble run={run} marks={marks.data ?? noMarks} />}
      <Tabs label="Parts of the run" current={tab} onPick={t => set({ tab: t === 'charts' ? null : t })}
        tabs={[['charts', 'Charts', run ? count(run.names) : ''], ['details', 'Details'], ['notes', 'Annotations', run ? count(run.annotations) : '']]} />
      {tab === 'details' ? run && <Details run={run} reload={detail.reload} /> : tab === 'notes' ? run && <Annotations run={run} version={notes} /> : (
        <>
          <ChartBar s={s} set={set} q={q} names={run?.curves.map(c => c.name).sort() ?? []}>
            {run && run.segments > 1 && <Check on={s.older} set={on => set({ older: on ? null : '0' })}>Older copies</Check>}
            <Check on={s.marks} set={on => set({ marks: on ? null : '0' })}>Marks</Check>
          </ChartBar>
          {run ? <AlongMetric slug={slug} name={s.along} feed={feed}>{along => <Charts run={run} q={q} set={set} feed={feed} s={s} along={along} marks={marks.data ?? noMarks} />}</AlongMetric> : <div class="charts">{[1, 2, 3, 4].map(i => <div class="panel" key={i} style={{ height: 290 }} />)}</div>}
        </>
      )}
    </>
  )
}

/** Reads the metric that is the axis, if one is. */
function AlongMetric({ slug, name, feed, children }: { slug: string; name: string; feed: ReturnType<typeof useFeed>; children: (along?: Along) => ComponentChildren }) {
  return name ? <ReadMetric slug={slug} name={name} feed={feed}>{children}</ReadMetric> : <>{children()}</>
}

function ReadMetric({ slug, name, feed, children }: { slug: string; name: string; feed: ReturnType<typeof useFeed>; children: (along?: Along) => ComponentChildren }) {
  const { curve, error, retry } = useCurve(slug, name, 'step', null, 10_000, feed)
  const along = useMemo(() => curve ? alongOf(curve.pieces) : undefined, [curve])
  if (error && !curve) return <Failure error={error} retry={retry} />
  return <>{children(along)}</>
}

function Charts({ run, q, set, feed, s, along, marks }: { along?: Along; run: RunDetail; q: URLSearchParams; set: ReturnType<typeof useChartSettings>[1]; feed: ReturnType<typeof useFeed>; s: ReturnType<typeof useChartSettings>[0]; marks: Annotation[] }) {
  const find = q.get('m') ?? '', full = q.get('chart')
  const all = run.curves.map(c => c.name).join('\0')
  const [pins, pin] = usePins(q, set)
  const groups = useMemo(() => {
    const found = (all ? all.split('\0') : []).filter(finder(find)).sort(), first = pins.filter(p => found.includes(p))
    return [...(first.length ? [['first', first] as [string, string[]]] : []), ...groupsOf(found.filter(n => !first.includes(n)))]
  }, [all, find, pins.join('\0')])
  const zoom = useCallback((from: number, to: number) => set({ from: String(from), to: String(to) }), [])
  const reset = useCallback(() => set({ from: null, to: null }), [])
  if (!groups.length) return <div class="panel"><Empty title={find ? 'No metric of that name' : 'No points yet'}>{!find && 'The curves of this run appear here as they are written.'}</Empty></div>
  return (
    <>
      {groups.map(([group, names]) => (
        <section key={group} aria-label={group || 'metrics'} style={{ display: 'grid', gap: 10 }}>
          {groups.length > 1 && <h2 class="group">{group || 'metrics'} <span class="note">{count(names.length)}</span></h2>}
          <div class="charts">
            {names.map(name => <RunChart key={name} slug={run.slug} first={run.first_ms} name={name} feed={feed} settings={s} along={along} annotations={marks} full={full === name} pinned={pins.includes(name)} onPin={() => pin(name)}
              onFull={() => set({ chart: full === name ? null : name })} zoom={zoom} reset={reset} />)}
          </div>
        </section>
      ))}
    </>
  )
}

const Crumbs = () => <div class="crumbs"><a href={at.runs}>Runs</a></div>

function Header({ slug, run }: { slug: string; run: RunDetail | null }) {
  return (
    <div class="head">
      <div>
        <Crumbs />
        <div class="title"><i class="swatch" style={{ background: colorOf(slug) }} /><h1>{slug}</h1><Copy text={slug} label="Copy the name" />{run && <RunState run={run} />}<a class="link small" href={at.compare([slug])}>compare</a>{run?.tags.map(t => <span class="tag" key={t}>{t}</span>)}</div>
        {run?.description && <Long class="lead" text={run.description} />}
        {run?.note && <Long class="lead pre" text={run.note} />}
      </div>
      <div class="facts" style={{ minHeight: 21 }}>
        {run && <>
          {run.stage && <span>stage <b>{run.stage}</b></span>}<span>step <b>{count(run.last_step)}</b></span><span><b>{count(run.points)}</b> {run.points === '1' ? 'point' : 'points'}</span>
          <span>over <b>{duration(run.last_ms - run.first_ms)}</b></span>{run.segments > 1 && <span><b>{run.segments}</b> processes</span>}
          {run.checkpoints > 0 && <span><b>{count(run.checkpoints)}</b> {run.checkpoints === 1 ? 'checkpoint' : 'checkpoints'}</span>}<span>last event <b><Ago ms={run.last_ms} /></b></span>
        </>}
      </div>
    </div>
  )
}

/** What is wrong with a run, said first. */
function Trouble({ run, marks }: { run: RunDetail; marks: Annotation[] }) {
  const now = useNow()
  const life = lifeOf(run, now)
  const last = marks.filter(a => a.class === (life === 'failed' ? 'failed' : 'interrupted')).at(-1)
  if (life === 'failed') return <div class="banner bad" role="alert"><strong>Failed{last ? ` at step ${count(last.step)}` : ''}.</strong> <span class="pre">{last?.error || run.failure || 'It did not say why.'}</span></div>
  if (life === 'stopped') return <div class="banner"><strong>Stopped by {run.interrupted}{last ? ` at step ${count(last.step)}` : ''}.</strong> It can be resumed{run.checkpoints > 0 ? ` from one of its ${plural(run.checkpoints, 'checkpoint')}` : ''}.</div>
  if (life === 'silent') return <div class="banner"><strong>Silent.</strong> The run has not ended, and its last event was <Ago ms={run.last_ms} />. It may have been killed.</div>
  if (life === 'lost') return <div class="banner"><strong>Lost.</strong> The run has not ended, but <span class="pre">{run.lost}</span></div>
  if (run.bad_lines !== '0') return <div class="banner">{count(run.bad_lines)} lines of its files are no events, and were passed over: <code>foldlog verify</code> names them.</div>
  const left = run.left_out
  if (left.points !== '0') return <div class="banner">The run has more metric names than are shown: {count(left.points)} points of others are in its files.</div>
  if (left.metadata !== '0' || left.annotations !== '0' || left.processes !== '0') return <div class="banner">The run has more than is shown: {count(left.metadata)} points are shown without their metadata, and {count(left.annotations)} annotations and {count(left.processes)} processes are only in its files.</div>
  return null
}
