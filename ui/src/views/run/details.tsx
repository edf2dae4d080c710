import { useMemo, useState } from 'preact/hooks'
import { get, post, put, seg } from '../../lib/api'
import { finder } from '../../lib/find'
import { bytes, count, duration, moment, plural, text } from '../../lib/format'
import { at, useQuery } from '../../lib/router'
import type { Annotation, Obj, Page, RunDetail } from '../../lib/types'
import { useLoad } from '../../lib/use'
import { Ago, Check, Copy, Empty, Long, Panel, Show } from '../../parts/basic'

/** Values of nested metadata by their paths. */
export function flat(o: Obj, prefix = ''): [string, string][] {
  return Object.entries(o).flatMap(([k, v]): [string, string][] =>
    v && typeof v === 'object' && !Array.isArray(v) && Object.keys(v).length > 0 ? flat(v, prefix + k + '/') : [[prefix + k, text(v)]])
}

const shorten = (k: string) => k.length > 80 ? k.slice(0, 79) + '…' : k

export function KeyValues({ rows }: { rows: [string, string][] }) {
  return <dl class="kv">{rows.map(([k, v]) => <><dt key={k} title={k.length > 80 ? k : undefined}>{shorten(k)}</dt><dd>{v.length > 440 ? <Long class="mono pre" text={v} /> : <span class="mono pre">{v}</span>} <Copy text={v} label={`Copy ${k}`} /></dd></>)}</dl>
}

export function Details({ run, reload }: { run: RunDetail; reload: () => void }) {
  const { sources, ...rest } = run.open
  const rows = flat(rest)
  return (
    <div class="cols">
      <Panel title="Metadata" note={plural(rows.length, 'value')} actions={<Copy text={JSON.stringify(run.open, null, 2)} label="Copy all metadata as JSON" />}>
        {rows.length ? <div class="body"><KeyValues rows={rows} /></div> : <Empty title="The run was opened without metadata" />}
      </Panel>
      <div style={{ display: 'grid', gap: 20 }}>
        <Labels run={run} reload={reload} />
        <Panel title="Processes" note="one for each time the run was opened">
          <div class="scroll" tabIndex={0} role="region" aria-label="Processes"><table class="plain">
            <thead><tr><th>#</th><th>Began</th><th class="right">Steps</th><th class="right">Points</th><th>Ended</th></tr></thead>
            <tbody>{run.processes.map((p, i) => (
              <tr key={i}>
                <td class="short">{i + 1}</td><td>{moment(p.first_ms)}<div class="note">{duration(p.last_ms - p.first_ms)}{p.resumed && `, from ${p.resumed}`}</div>{p.changes.map(c => <div class="note" key={c.path}>{c.path}: {c.from} → {c.to}</div>)}</td>
                <td class="right">{count(p.first_step)} – {count(p.last_step)}</td><td class="right">{count(p.points)}</td>
                <td class="short">{p.done ? 'done' : p.failed ? <span class="bad">failed</span> : p.interrupted ? <span class="warn">{p.interrupted}</span> : <span class="muted">open</span>}</td>
              </tr>
            ))}</tbody>
          </table></div>
        </Panel>
        {sources !== undefined && <Sources sources={sources} />}
        <Panel title="Files">
          <div class="body"><dl class="kv">{run.stream_files.map(f => <><dt key={f.id}>{bytes(Number(f.bytes))}{f.bad_lines !== '0' && <span class="bad">, {count(f.bad_lines)} bad lines</span>}</dt><dd class="mono">{f.path} <Copy text={f.path} /></dd></>)}</dl></div>
        </Panel>
      </div>
    </div>
  )
}

function Sources({ sources }: { sources: unknown }) {
  const list = Array.isArray(sources) ? sources : []
  return (
    <Panel title="Sources" note={plural(list.length, 'file')}>
      <div class="scroll" tabIndex={0} role="region" aria-label="Sources"><table class="plain">
        <thead><tr><th>Path</th><th>SHA-256</th></tr></thead>
        <tbody>{list.map((s, i) => <tr key={i}><td class="mono">{text(s?.path ?? s)}</td><td class="mono">{text(s?.sha256 ?? '').slice(0, 12)} {s?.sha256 && <Copy text={text(s.sha256)} label="Copy the hash" />}</td></tr>)}</tbody>
      </table></div>
    </Panel>
  )
}

function Labels({ run, reload }: { run: RunDetail; reload: () => void }) {
  const [tag, setTag] = useState('')
  const [note, setNote] = useState<string | null>(null)
  const [error, setError] = useState('')
  const send = (p: Promise<unknown>) => p.then(() => { setError(''); setTag(''); setNote(null); reload() }, e => setError(e.message))
  return (
    <Panel title="Tags and note">
      <div class="body note-box" style={{ display: 'grid', gap: 10 }}>
        <form class="bar" onSubmit={e => { e.preventDefault(); if (tag.trim()) send(post(`runs/${seg(run.slug)}/tags`, { add: [tag.trim()] })) }}>
          {run.tags.map(t => <span class="tag" key={t}>{t}<button type="button" class="copy" aria-label={`Remove tag ${t}`} onClick={() => send(post(`runs/${seg(run.slug)}/tags`, { remove: [t] }))}>×</button></span>)}
          <input type="text" placeholder="Add a tag" aria-label="Add a tag" value={tag} onInput={e => setTag(e.currentTarget.value)} style={{ width: 130 }} />
        </form>
        <textarea aria-label="Note" placeholder="A note, for whoever looks at this run next" value={note ?? run.note} onInput={e => setNote(e.currentTarget.value)} />
        <div class="bar">
          <button disabled={note === null || note === run.note} onClick={() => send(put(`runs/${seg(run.slug)}/note`, { note: note ?? '' }))}>Save note</button>
          {run.note_ms > 0 && <span class="note">written <Ago ms={run.note_ms} />{run.note_by && ` by ${run.note_by}`}</span>}
          {error && <span class="bad" role="alert">{error}</span>}
        </div>
      </div>
    </Panel>
  )
}

const fewest = 500, most = 10_000

/** What the runtime and its users said, the newest first. */
export function Annotations({ run, version }: { run: RunDetail; version: number }) {
  const [q, set] = useQuery()
  const only = q.get('only') === '1', find = q.get('m') ?? ''
  const [limit, setLimit] = useState(fewest)
  const list = useLoad(`annotations ${run.slug} ${limit} ${version}`, s => get<Page<Annotation>>(`runs/${seg(run.slug)}/annotations`, { limit, newest: true }, s), true)
  const found = useMemo(() => list.data?.items.filter(a => (!only || a.class !== 'other') && finder(find)(a.text)) ?? [], [list.data, only, find])
  const total = list.data?.total ?? 0, shown = list.data?.items.length ?? 0
  return (
    <Panel title="Annotations" note={list.data ? find || only ? `${count(found.length)} of ${plural(shown, 'annotation')}` : plural(total, 'annotation') : undefined}
      actions={<><input type="search" placeholder="Find a text" aria-label="Find a text" value={find} onInput={e => set({ m: e.currentTarget.value })} /><Check on={only} set={on => set({ only: on ? '1' : null })}>Marks only</Check></>}>
      <Show of={list}>{() => found.length === 0 ? <Empty title={total ? 'No annotation matches' : 'The run has said nothing yet'} /> : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Annotations"><table class="plain">
          <thead><tr><th>Time</th><th class="right">Step</th><th>Kind</th><th>Text</th></tr></thead>
          <tbody>{found.map((a, i) => <Row key={i} a={a} run={run} />)}</tbody>
        </table></div>
      )}</Show>
      {shown < total && <div class="more bar">{limit < most ? <button disabled={list.loading} onClick={() => setLimit(Math.min(most, limit * 4))}>Show older ones</button> : null}<span class="note" aria-live="polite">the newest {count(shown)} of {count(total)}</span></div>}
    </Panel>
  )
}

function Row({ a, run }: { a: Annotation; run: RunDetail }) {
  const step = Number(a.step), around = Math.max(5, Math.round((Number(run.last_step) || 0) / 50))
  return (
    <tr>
      <td class="short fit">{moment(a.ts_ms)}</td>
      <td class="right fit">{Number.isSafeInteger(step) ? <a class="link" href={`${at.run(run.slug)}?from=${Math.max(0, step - around)}&to=${step + around}`} title="Show the curves around it">{count(a.step)}</a> : count(a.step)}</td>
      <td class={a.class === 'failed' ? 'short fit bad' : a.class === 'interrupted' ? 'short fit warn' : 'short fit muted'}>{a.class === 'other' ? '' : a.class}</td>
      <td class="pre">{a.text}{Object.keys(a.metadata).length > 0 && <div class="note mono">{flat(a.metadata).map(([k, v]) => `${k}=${v}`).join('  ')}</div>}</td>
    </tr>
  )
}
