import { useEffect, useMemo } from 'preact/hooks'
import { Parallel } from '../../chart/parallel'
import { get, number } from '../../lib/api'
import { brief, plural, text, value } from '../../lib/format'
import { at, go, useQuery } from '../../lib/router'
import { betterOf, telling } from '../../lib/runs'
import { axisOf, type ParamAxis, rankOf, withoutOutliers } from '../../lib/study'
import type { Diff, NameItem, Page, RunItem } from '../../lib/types'
import { useLoad } from '../../lib/use'
import { Choice, Empty, Panel, Show } from '../../parts/basic'

/** In what runs differ, and what came of it: a line for each run across its metadata to the last value of a metric. */
export function RunParams({ slugs, version }: { slugs: string[]; version: number }) {
  const [q, set] = useQuery()
  const key = slugs.join('\0')
  const names = useLoad('names ' + key, s => get<Page<NameItem>>('names', { run: slugs, limit: 1000 }, s))
  const diff = useLoad('diff false' + slugs.slice(0, 20).join('\0'), s => get<Diff>('diff', { run: slugs.slice(0, 20), all: false }, s))
  const metrics = useMemo(() => names.data ? telling(names.data.items.map(n => n.name), 1000) : [], [names.data])
  const metric = metrics.includes(q.get('metric') ?? '') ? q.get('metric')! : metrics[0] ?? ''
  const meta = (diff.data?.rows ?? []).filter(r => !r.same && r.values.every(v => v.length < 80)).map(r => r.path).slice(0, 14)
  const better = q.get('better') === 'lower' || q.get('better') === 'higher' ? q.get('better') as 'lower' | 'higher' : betterOf(metric) ?? 'higher'
  const list = useLoad(metric && diff.data ? JSON.stringify([slugs, metric, meta]) : null, s => get<Page<RunItem>>('runs', { slug: slugs, metric: [metric], meta, limit: 1000 }, s), true)
  useEffect(() => { if (version > 0) list.reload() }, [version])
  if (names.data && !metrics.length) return <div class="panel"><Empty title="These runs have no points yet" /></div>
  if (diff.data && !meta.length) return <div class="panel"><Empty title="These runs do not differ in their metadata" /></div>
  return (
    <Panel title="Parallel coordinates" note="each line is a run, the best are on top; drag along an axis to choose a range"
      actions={<><label class="check">Metric<select value={metric} onChange={e => set({ metric: e.currentTarget.value })} style={{ maxWidth: 220 }}>{metrics.map(m => <option key={m}>{m}</option>)}</select></label>
        <Choice label="What is better" options={[['lower', 'Lower'], ['higher', 'Higher']]} value={better} set={better => set({ better })} /></>}>
      <Show of={list} height={340}>{page => <Lines runs={page.items} metric={metric} keys={meta} down={better === 'lower'} />}</Show>
    </Panel>
  )
}

function Lines({ runs, metric, keys, down }: { runs: RunItem[]; metric: string; keys: string[]; down: boolean }) {
  const [axes, objective, rank] = useMemo(() => {
    const last = Float64Array.from(runs, r => number(r.metrics.find(m => m.name === metric)?.last)), [min, max] = withoutOutliers(last)
    const axes: ParamAxis[] = keys.map(k => axisOf(k, runs.map(r => k in r.metadata ? r.metadata[k] : null)))
    return [axes, { name: metric, at: last, min, max: max > min ? max : min + 1 }, rankOf(last, down)]
  }, [runs, metric, keys.join('\0'), down])
  const without = rank.reduce((n, r) => n + Number(Number.isNaN(r)), 0)
  return (
    <>
      <Parallel axes={axes} objective={objective} rank={rank} what={['run', 'runs']} open={i => go(at.run(runs[i].slug))}
        tip={i => ({ title: runs[i].slug, rows: [{ label: metric, value: value(objective.at[i]), strong: true }, ...keys.slice(0, 10).map(k => ({ label: k, value: k in runs[i].metadata ? brief(runs[i].metadata[k]) : '–' }))] })} />
      {without > 0 && <p class="note" style={{ padding: '0 16px 12px' }}>{plural(without, 'run')} without a finite value of {text(metric)}.</p>}
    </>
  )
}
