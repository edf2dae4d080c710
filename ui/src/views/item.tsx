import { useState } from 'preact/hooks'
import { get, seg, url } from '../lib/api'
import { bytes, count, moment, plural, text } from '../lib/format'
import { useLive, useThrottled } from '../lib/live'
import { at } from '../lib/router'
import type { DataItem, ExperimentDetail, ItemLine, ItemTree, Json, Trajectory } from '../lib/types'
import { useLoad } from '../lib/use'
import { Ago, Copy, Empty, Failure, Panel, Show, State } from '../parts/basic'
import { FailureList } from './experiment'

export function Item({ id, item }: { id: string; item: string }) {
  const path = `datagen/${seg(id)}/items/${seg(item)}`
  const fold = useLoad(path, s => get<DataItem>(path, {}, s))
  const way = useLoad(path + '/trajectory', s => get<Trajectory>(path + '/trajectory', {}, s))
  const tree = useLoad(path + '/tree', s => get<ItemTree>(path + '/tree', {}, s))
  const experiment = useLoad('experiment ' + id, s => get<ExperimentDetail>('datagen/' + seg(id), {}, s))
  const soon = useThrottled(() => { fold.reload(); way.reload(); tree.reload() }, 1000)
  useLive(fold.data ? id : null, () => url(`datagen/${seg(id)}/live`), {
    items: (l: { items: ItemLine[]; more: boolean }) => { if (l.more || l.items.some(i => i.root === fold.data?.root)) soon() }, reset: soon, gone: soon,
  }, soon)
  const it = fold.data
  const crumbs = <div class="crumbs"><a href={at.datagen}>Datagen</a> / <a href={at.experiment(id)}>{experiment.data ? `${experiment.data.pipeline} / ${experiment.data.experiment}` : 'experiment'}</a> / <a href={at.experiment(id) + '?tab=items'}>items</a></div>
  if (fold.error && !it) return <>{crumbs}<Failure page error={fold.error} retry={fold.reload} /></>
  return (
    <>
      <div class="head">
        <div>{crumbs}<div class="title"><h1>{item}</h1><Copy text={item} label="Copy the name" />{it && <State state={it.status} />}{it && it.attempt > 1 && <span class="tag">attempt {it.attempt}</span>}{it && Object.entries(it.tags).map(([k, v]) => <span class="tag" key={k}>{k}={text(v)}</span>)}</div></div>
        <div class="facts" style={{ minHeight: 21 }}>{it && <><span>created <b>{moment(it.created_ms)}</b></span><span>updated <b><Ago ms={it.updated_ms} /></b></span><span>run <b>{it.run}</b></span></>}</div>
      </div>
      {it?.faults.map((f, i) => <div class="banner bad" role="alert" key={i}><strong>Contradiction at {count(f.seq)}.</strong> {f.what} <span class="mono">{f.events.join(', ')}</span></div>)}
      <div class="cols wide">
        <div style={{ display: 'grid', gap: 20 }}>
          <Panel title="Fields" note={it ? plural(it.fields.length, 'field') : undefined}><Show of={fold}>{f => f.fields.length === 0 ? <Empty title="No fields yet" /> : <div class="scroll" tabIndex={0} role="region" aria-label="Parts" style={{ maxHeight: 640 }}><table class="plain"><tbody>{f.fields.map(field => (
            <tr key={field.name}><td class="muted" style={{ width: 150 }}>{field.name}</td><td>{field.values.map((v, i) => <div key={i}><Value id={id} value={v.value} kind={v.kind} name={field.name} /><div class="note">{v.from.step ? `by ${v.from.step}` : 'with its creation'}, attempt {v.from.attempt}</div></div>)}</td></tr>
          ))}</tbody></table></div>}</Show></Panel>
          {it && it.failures.length > 0 && <Panel title="Failures" note={plural(it.failures.length, 'failure')}><FailureList id={id} list={it.failures} withItem={false} /></Panel>}
          <Way id={id} load={way} />
        </div>
        <Tree id={id} item={item} load={tree} />
      </div>
    </>
  )
}

/** How an item came about, checkpoint by checkpoint, with what each changed. */
function Way({ id, load }: { id: string; load: ReturnType<typeof useLoad<Trajectory>> }) {
  return (
    <Panel title="Trajectory" note={load.data ? plural(load.data.checkpoints.length, 'checkpoint') : undefined}>
      <Show of={load}>{t => <ul class="list">{t.checkpoints.map((c, i) => (
        <li key={c.checkpoint + i}>
          <span class="name">{c.created ? 'created' : c.from.step || (c.end ? 'end' : 'outside of steps')}{c.failure && <span class="bad"> failed: {c.failure}</span>}{c.end && <span class="note"> {c.end}</span>}</span>
          <span class="muted">attempt {c.from.attempt} · <span title={`Its last event, of ${moment(c.from.at_ms)}`}>seq {count(c.from.seq)}</span></span>
          {c.faults.map(f => <div class="sub bad" key={f}>{f}</div>)}
          {c.changes.length > 0 && <div class="sub"><dl class="kv">{c.changes.map((d, k) => <><dt key={k}>{d.append ? '+ ' : ''}{d.name}</dt><dd>
            {d.old !== null && !d.append && <><s class="muted"><Value id={id} value={d.old} kind="" name={d.name} /></s> → </>}<Value id={id} value={d.new} kind={d.kind} name={d.name} /></dd></>)}</dl></div>}
        </li>
      ))}</ul>}</Show>
    </Panel>
  )
}

/** The kind of a checksum and its first eight digits. */
const shortSum = (sum: string) => sum.replace(/^([^:]*:)?(.{8}).+$/, '$1$2…')

interface BlobRef { blob: string; size: number; checksum: string }
const isBlob = (v: Json): v is Json & object => !!v && typeof v === 'object' && !Array.isArray(v) && 'blob' in v && 'size' in v && 'checksum' in v

function Value({ id, value, kind, name }: { id: string; value: Json; kind: string; name: string }) {
  const [open, setOpen] = useState(false)
  if (isBlob(value) && (kind === 'blob' || kind === '')) return <Blob id={id} blob={value as unknown as BlobRef} name={name} />
  const long = typeof value === 'string' ? value : typeof value === 'object' ? JSON.stringify(value, null, 1) : text(value)
  if (long.length <= 400) return <span class="pre" style={{ display: 'inline' }}>{long}</span>
  return <span class="pre">{open ? long : long.slice(0, 400) + '…'} <button class="more-text" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? 'less' : `all ${count(long.length)} characters`}</button></span>
}

/** A blob is fetched when it is asked for; small ones that are images show themselves. */
function Blob({ id, blob, name }: { id: string; blob: BlobRef; name: string }) {
  const [shown, show] = useState(blob.size <= 200_000)
  const [plain, setPlain] = useState(false)
  const at = url(`datagen/${seg(id)}/blobs/${seg(blob.blob)}`, { size: blob.size, checksum: blob.checksum })
  return (
    <span class="blob">
      {shown && !plain && <img src={at} alt={`${name}, an image`} loading="lazy" onError={() => setPlain(true)} />}
      {!shown && <button onClick={() => show(true)}>Show</button>} <a class="link" href={at} download={name} title="Download it" aria-label={`Download ${name}, ${bytes(blob.size)}`}>{bytes(blob.size)}</a> <span class="note mono" title={blob.checksum}>{shortSum(blob.checksum)}</span>
    </span>
  )
}

function Tree({ id, item, load }: { id: string; item: string; load: ReturnType<typeof useLoad<ItemTree>> }) {
  return (
    <Panel title="Tree" note={load.data ? plural(load.data.nodes.length, 'item') : undefined}>
      <Show of={load}>{t => (
        <div class="scroll" tabIndex={0} role="region" aria-label="Tree" style={{ maxHeight: 700 }}><ul class="tree">{t.nodes.slice(0, 1000).map(n => (
          <li key={n.item} style={{ paddingLeft: 16 + n.depth * 18 }} aria-current={n.item === item ? 'true' : undefined}>
            <a href={at.item(id, n.item)} title={n.item}>{n.parent && n.item.startsWith(n.parent) ? n.item.slice(n.parent.length).replace(/^\//, '') : n.item}</a><State state={n.status} />{n.orphan && <span class="warn">its parent is missing</span>}
          </li>
        ))}</ul>{(t.more || t.nodes.length > 1000) && <p class="more note">There are more: the list of items has them.</p>}</div>
      )}</Show>
    </Panel>
  )
}
