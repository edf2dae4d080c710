import { get, seg } from '../../lib/api'
import { count, plural, reason } from '../../lib/format'
import { at } from '../../lib/router'
import type { Page, StudyDetail, StudyItem, TrialItem } from '../../lib/types'
import { useLoad } from '../../lib/use'
import { Ago, Panel, Show } from '../../parts/basic'

const newest = 200, mostReasons = 6

const failedOf = (id: string, limit: number, signal: AbortSignal) => get<Page<TrialItem>>(`studies/${seg(id)}/trials`, { state: 'failed', sort: '-number', limit }, signal)

const wordsOf = (t: TrialItem) => t.error ? reason(t.error) : 'It did not say why.'

/** Failures of one kind: errors that differ in their numbers alone are the same. */
function kindsOf(items: TrialItem[]): TrialItem[][] {
  const kinds = new Map<string, TrialItem[]>()
  for (const t of items) {
    const kind = wordsOf(t).replace(/\d+(\.\d+)?/g, '#')
    kinds.set(kind, [...kinds.get(kind) ?? [], t])
  }
  return [...kinds.values()]
}

/** Why trials failed, the newest kind first. */
export function Failures({ study: s }: { study: StudyDetail }) {
  const load = useLoad(`failures ${s.id} ${s.states.failed}`, signal => failedOf(s.id, newest, signal), true)
  return (
    <Panel title="Failed" note={s.states.failed > newest ? `the newest ${newest} of ${plural(s.states.failed, 'trial')}` : plural(s.states.failed, 'trial')}>
      <Show of={load}>{page => {
        const kinds = kindsOf(page.items)
        return (
          <>
            <ul class="list">{kinds.slice(0, mostReasons).map(k => (
              <li key={k[0].number}><span class="name"><a href={at.trial(s.id, k[0].number)}>trial {count(k[0].number)}</a>{k.length > 1 && <span class="kind">and {plural(k.length - 1, 'other')} alike</span>}</span><span class="muted"><Ago ms={k[0].ended_ms} /></span><div class="sub bad clamp" title={wordsOf(k[0])}>{wordsOf(k[0])}</div></li>
            ))}</ul>
            <a class="more" href={`${at.study(s.id)}?tab=trials&state=failed`}>{kinds.length > mostReasons ? `All, ${count(kinds.length)} kinds of failure` : 'In the table of trials'}</a>
          </>
        )
      }}</Show>
    </Panel>
  )
}

/** Why the newest trial that failed did. */
export function LastFailure({ study: s }: { study: StudyItem }) {
  const load = useLoad(`last failure ${s.id} ${s.states.failed}`, signal => failedOf(s.id, 1, signal), true)
  const t = load.data?.items[0]
  return t?.error ? <>, trial {count(t.number)}: {reason(t.error).slice(0, 200)}</> : null
}
