// What the server answers: docs/http-api.md and /api/v1/openapi.json.

export type Num = number | string // "NaN", "Infinity" and integers beyond 2^53 are strings
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json }
export type Obj = { [key: string]: Json }

export interface RunStat {
  name: string; count: string; non_finite: string; last: Num; last_step: Num; min: Num | null; max: Num | null
}
export interface RunItem {
  slug: string; description: string; status: 'running' | 'done' | 'failed'; lost: string; interrupted: string; failure: string; stage: string
  first_ms: number; opened_ms: number; last_ms: number; last_step: Num; segments: number; checkpoints: number; annotations: number
  streams: number; names: number; events: string; points: string; bad_lines: string; bytes: string
  tags: string[]; noted: boolean; metadata: Obj; metrics: RunStat[]
}
export interface RunProcess {
  stream: string; first_ms: number; last_ms: number; first_step: Num; last_step: Num; points: string; resumed: string
  interrupted: string; done: boolean; failed: boolean; changes: { path: string; from: string; to: string }[]
}
export interface RunDetail extends RunItem {
  note: string; note_ms: number; note_by: string; open: Obj; processes: RunProcess[]
  stream_files: { id: string; path: string; bytes: string; bad_lines: string }[]; curves: RunStat[]
  left_out: { points: string; metadata: string; annotations: string; processes: string }
}
export interface Annotation {
  ts_ms: number; step: Num; segment: number; class: string; text: string; metadata: Obj; from: string; to: string
  checkpoint: string; seconds: Num; changed: string[]; signal: string; error: string
}
export interface Curve {
  name: string; series: Obj[]; steps: Num[]; times: Num[]; values: Num[]
  spans: { at: number; segment: number; series: number; older: boolean }[]; total: string; sampled: boolean
}
export interface RunSeries {
  slug: string; cursor: string; segments: number; curves: Curve[]
  stages: { stage: string; step: Num; ts_ms: number; segment: number }[]
}
export interface SeriesQuery {
  runs: string[]; names: string[]; axis?: 'step' | 'time'; from?: number; to?: number; points?: number; newest?: boolean
}
export interface LivePoints { cursor: string; curves: Curve[]; annotations: Annotation[]; opened: number; done: boolean }
export interface Page<T> { items: T[]; next: string; total: number }
export interface NameItem { name: string; runs: number }
export interface Diff { runs: string[]; missing: string[]; rows: { path: string; same: boolean; has: boolean[]; values: string[] }[] }
export interface Overview {
  version: string; runs: { total: number; running: number; lost: number; done: number; failed: number }
  studies: number; journals: number; waiting: number; alive: RunItem[]
}

export interface States { waiting: number; running: number; paused: number; complete: number; pruned: number; failed: number }
export interface BestTrial { number: number; values: Num[] }
export interface StudyItem {
  id: string; journal: string; study_id: string; name: string; directions: string[]; metrics: string[]; unit: string
  seed: string | null; created_ms: number; last_ms: number; seq: string; trials: number; states: States; best?: BestTrial
  sampler: string; pruner: string
}
export interface ParamSpace {
  name: string; type: string; low: Num | null; high: Num | null; log: boolean; step: Num | null; choices: Json[]
  when: { param: string; values: Json[]; low: Json; high: Json }[]
}
export interface StudyDetail extends StudyItem { space: ParamSpace[]; attrs: Obj }
export interface StudyPage extends Page<StudyItem> { faulty: { journal: string; error: string }[] }
export interface TrialItem {
  number: number; id: string; state: string; values: Num[]; params: Obj; fixed: Obj; managed: boolean; worker: string | null
  epoch: string; lease_ms: number; attempt: number; max_attempts: number; retry_of: number | null; created_ms: number
  started_ms: number; ended_ms: number; heartbeat_ms: number; error: string; reports: number; last_step: string | null
  attrs: number; run: string
}
export interface TrialDetail extends TrialItem {
  full_error: string; user_attrs: Obj; curve: { steps: Num[]; values: Num[][] }; lineage: number[]
}
export interface TrialCurves { seq: string; items: { number: number; state: string; steps: Num[]; values: Num[]; total: number; sampled: boolean }[] }
export interface Front { seq: string; pending: boolean; items: BestTrial[]; total: number }
export interface Importance {
  seq: string; pending: boolean; method: string; sample: number; of: number; explained: Num | null; items: { name: string; share: Num; trials: number }[]
}
export interface LiveTrials { seq: string; study: StudyItem; items: TrialItem[]; more: boolean }
export interface Outbox { items: { number: number; epoch: string; phase: string; effects: { name: string; done: boolean }[] }[]; total: number }

export interface ItemStates { pending: number; running: number; completed: number; filtered: number; failed: number }
export interface ExperimentItem {
  id: string; path: string; pipeline: string; experiment: string; ready: boolean; seq: string; events: number; items: number; roots: number
  suspects: number; states: ItemStates; updated_ms: number; error: string
}
export interface ExperimentDetail extends ExperimentItem {
  steps: { name: string; index: number; completed: number; items: number }[]
  failures: { step: string; type: string; events: number; items: number; first_ms: number; last_ms: number }[]
  writers: { shard: string; run: string; host: string; pid: number; alive: boolean; sealed: boolean; unmerged: number; rows: number }[]
  maintenance: { version: number; fragments: number; rows: number; unindexed: number; unmerged: number; waiting: number }
}
export interface ItemLine {
  item: string; root: string; parent: string; status: string; step: string; attempt: number; events: number; failures: number
  error_type: string; tags: Obj; created_ms: number; updated_ms: number; suspect: boolean
}
export interface Origin { event: string; checkpoint: string; seq: Num; step: string; instance: string; attempt: number; run: string; epoch: string; at_ms: number }
export interface DataFailure { item: string; type: string; dump: Json; traceback: string; from: Origin }
export interface DataItem {
  item: string; root: string; parent: string; status: string; attempt: number; run: string; epochs: string[]; last_seq: Num; creations: number
  tags: Obj; created_ms: number; updated_ms: number
  fields: { name: string; appended: boolean; values: { value: Json; kind: string; type: string; from: Origin }[] }[]
  steps: { name: string; index: number; instance: string; iteration: number | null; from: Origin }[]
  failures: DataFailure[]; faults: { seq: Num; events: string[]; epochs: string[]; what: string }[]
}
export interface Trajectory {
  item: string
  checkpoints: { checkpoint: string; events: number; from: Origin; created: boolean; failure: string; end: string; faults: string[]
    changes: { name: string; append: boolean; old: Json; new: Json; kind: string }[] }[]
}
export interface ItemTree { root: string; nodes: { item: string; parent: string; depth: number; status: string; step: string; orphan: boolean }[]; more: boolean }
