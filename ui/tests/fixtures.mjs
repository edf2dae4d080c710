// Logs that look like those of a working group: runs that were resumed, failed, were
// stopped or killed, hostile names, studies of one and of two objectives.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { foldlog } from './lib.mjs'

export const hostile = '<img src=x onerror=alert(1)> "\'&‮ 🦊 '.trim()

/** Numbers by chance, the same each time. */
export function chance(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** The lines of one run, in the format of metrics streams. */
export class Stream {
  constructor(slug, ts, description = '', metadata = {}) {
    this.lines = []
    this.ts = ts
    this.slug = slug
    this.again = () => this.put({ kind: 'open', slug, description, metadata })
    this.again()
  }
  put(e) { this.lines.push(JSON.stringify({ ts_ms: Math.round(this.ts), ...e }, (_, v) => typeof v === 'number' && !Number.isFinite(v) ? String(v) : v)); return this }
  metric(step, name, value, metadata = {}) { return this.put({ step, kind: 'metric', name, value, metadata }) }
  note(step, annotation, metadata = {}) { return this.put({ step, kind: 'annotation', annotation, metadata }) }
  done() { return this.put({ kind: 'done', slug: this.slug }) }
  write(root, file = encodeURIComponent(this.slug).slice(0, 60) + '.jsonl') { writeFileSync(join(root, file), this.lines.join('\n') + '\n') }
}

const minute = 60_000

/** One pass of training from a step to another. */
function train(s, r, from, to, { lr = 0.01, every = 1, seconds = 2 } = {}) {
  for (let step = from; step <= to; step += every) {
    s.ts += seconds * 1000 * every
    const base = 2.4 * Math.exp(-step * lr / 3) + 0.25
    s.metric(step, 'train/loss', base + (r() - 0.5) * 0.18, { split: 'train' })
    s.metric(step, 'rate/tokens', 14000 + 900 * (r() - 0.5))
    if (step % 5 === 0) {
      s.metric(step, 'val/loss', base * 1.08 + (r() - 0.5) * 0.05, { split: 'val' })
      s.metric(step, 'val/accuracy', Math.max(0, 1 - base / 2.9 + (r() - 0.5) * 0.02), { split: 'val' })
    }
    if (step % 50 === 0) s.note(step, `checkpoint ckpt/step-${String(step).padStart(8, '0')}`, { checkpoint: `ckpt/step-${String(step).padStart(8, '0')}`, seconds: 0.6 + r() })
  }
}

const identity = (lr, seed) => ({
  entry: 'train.py', variant: 'base', knobs: { lr, batch: 64, width: 512, dropout: 0.1, seed }, run: { steps: 300, precision: 'bf16' },
  sources: [{ path: 'train.py', sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08' }, { path: 'model/net.py', sha256: '60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752' }],
  device: 'cuda', devices: [0, 1],
})

/** Runs that ended in every way there is. */
export function runs(root, now) {
  const r = chance(7)
  for (const [i, lr] of [0.004, 0.008, 0.012, 0.02, 0.03].entries()) {
    const s = new Stream(`vision-base-lr${lr}`, now - 5 * 60 * minute + i * minute, 'vision base: 300 steps of 64', identity(lr, i))
    train(s, r, 1, 300, { lr })
    s.done().write(root)
  }
  resumed(root, now, r)
  const failed = new Stream('vision-large', now - 40 * minute, 'vision large: 300 steps of 64', identity(0.05, 9))
  train(failed, r, 1, 118, { lr: 0.05 })
  failed.metric(119, 'train/loss', NaN, { split: 'train' }).metric(120, 'train/loss', Infinity, { split: 'train' })
  failed.note(121, 'failed: train/loss is not finite for 2 steps', { error: 'train/loss is not finite for 2 steps' }).done().write(root)
  const oom = new Stream('vision-huge', now - 3 * 60 * minute, 'vision huge', identity(0.01, 3))
  train(oom, r, 1, 12, { lr: 0.01 })
  oom.note(12, 'failed: CUDA out of memory: tried to allocate 3.1 GiB', { error: 'CUDA out of memory: tried to allocate 3.1 GiB' }).done().write(root)
  const stopped = new Stream('text-small', now - 90 * minute, 'text small', identity(0.01, 4))
  train(stopped, r, 1, 150, { lr: 0.01 })
  stopped.note(150, 'interrupted by SIGTERM at step 150', { signal: 'SIGTERM' }).write(root)
  const killed = new Stream('text-killed', now - 26 * 60 * minute, 'text, killed', identity(0.01, 5))
  train(killed, r, 1, 80, { lr: 0.01 })
  killed.write(root)
}

/** A run that was killed at 212 and resumed from 200, with stages. */
function resumed(root, now, r) {
  const s = new Stream('vision-resumed', now - 20 * minute, 'vision base, resumed', identity(0.012, 1))
  s.note(1, 'stage warm -> warm', { from: '', to: 'warmup' })
  train(s, r, 1, 60, { lr: 0.012 })
  s.note(60, 'stage warmup -> easy', { from: 'warmup', to: 'easy' })
  train(s, r, 61, 212, { lr: 0.012 })
  s.ts += 2 * minute
  s.again()
  s.note(200, 'resumed from ckpt/step-00000200\nknob dropout 0.1 -> 0.2', { checkpoint: 'ckpt/step-00000200', changed: ['knob dropout 0.1 -> 0.2'] })
  train(s, r, 200, 240, { lr: 0.013 })
  s.note(240, 'stage easy -> hard', { from: 'easy', to: 'hard' })
  train(s, r, 241, 300, { lr: 0.013 })
  s.done().write(root)
}

export function hostiles(root, now) {
  const s = new Stream(hostile, now - minute, '<script>alert(2)</script>', { '<b>key</b>': '<i>value</i>', __proto__x: { constructor: 'x' } })
  s.metric(1, '<u>loss</u>', 1).metric(2, '<u>loss</u>', 0.5).metric(2, '__proto__', 3).note(2, 'failed: <a href="javascript:alert(3)">why</a>', { error: '<a href="javascript:alert(3)">why</a>' })
  s.done().write(root, 'hostile.jsonl')
}

/** A study of one objective that has run, one of two objectives. */
export function studies(root) {
  const r = chance(11)
  writeFileSync(join(root, 'space.yaml'), 'lr: {type: float, low: 1e-4, high: 0.1, log: true}\nwidth: {type: int, low: 16, high: 256, log: true}\ndropout: {type: float, low: 0, high: 0.5}\noptimizer: {type: categorical, choices: [adam, sgd]}\n')
  const log = []
  const study = (id, name, directions) => log.push({ op_code: 0, worker_id: 'w', study_name: name, directions })
  study(0, 'vision-search', [1])
  study(1, 'size-and-loss', [1, 1])
  let id = 0
  const at = i => new Date(Date.parse('2026-09-01T10:00:00Z') + i * 21000).toISOString().slice(0, -1)
  const dist = { lr: { name: 'FloatDistribution', attributes: { low: 1e-4, high: 0.1, log: true, step: null } }, width: { name: 'IntDistribution', attributes: { low: 16, high: 256, log: true, step: 1 } }, optimizer: { name: 'CategoricalDistribution', attributes: { choices: ['adam', 'sgd'] } } }
  for (const [s, n] of [[0, 160], [1, 120]]) {
    for (let i = 0; i < n; i++) {
      const trial = id++
      const close = 1 - 0.7 * i / n
      const lr = 10 ** (-2.2 + (r() - 0.5) * 2.6 * close), width = Math.round(16 * 16 ** (0.6 + (r() - 0.5) * 0.8 * close)), optimizer = r() < 0.3 * close + 0.1 ? 1 : 0
      log.push({ op_code: 4, worker_id: 'w', study_id: s, datetime_start: at(i) })
      const param = (name, value) => log.push({ op_code: 5, worker_id: 'w', trial_id: trial, param_name: name, param_value_internal: value, distribution: JSON.stringify(dist[name]) })
      param('lr', lr); param('width', width); param('optimizer', optimizer)
      const loss = 0.18 + 0.09 * (Math.log10(lr) + 2.2) ** 2 + 0.05 * (Math.log(width / 110)) ** 2 + optimizer * 0.06 + 0.03 * r()
      const steps = s === 0 ? 12 : 0, cut = s === 0 && loss > 0.34 && r() < 0.8 ? 3 + Math.floor(r() * 4) : steps
      for (let k = 1; k <= cut; k++) log.push({ op_code: 7, worker_id: 'w', trial_id: trial, step: k, intermediate_value: loss + 1.6 * Math.exp(-k / 2.5) + 0.02 * r() })
      const failed = r() < 0.03
      const state = failed ? 3 : cut < steps ? 2 : 1
      const values = state !== 1 ? null : s === 0 ? [loss] : [loss, width * (1 + 0.1 * r())]
      log.push({ op_code: 6, worker_id: 'w', trial_id: trial, state, values, datetime_complete: at(i + 0.4 + r() * 2) })
    }
  }
  writeFileSync(join(root, 'optuna.log'), log.map(l => JSON.stringify(l)).join('\n') + '\n')
  foldlog(root, ['study', 'import', 'optuna.log', 'search.atj'])
}

/** A study that is being worked on, through the real command. */
export function liveStudy(root) {
  foldlog(root, ['study', 'create', 'live.atj', '--name', 'live', '--metric', 'loss', '--space', 'space.yaml'])
  return {
    ask: () => JSON.parse(foldlog(root, ['study', 'ask', 'live.atj', '--json'])),
    tell: (n, v) => foldlog(root, ['study', 'tell', 'live.atj', String(n), String(v)]),
    fail: (n, why) => foldlog(root, ['study', 'tell', 'live.atj', String(n), '--reason', why]),
    report: (n, step, v) => foldlog(root, ['study', 'report', 'live.atj', String(n), String(step), String(v)]),
  }
}

/** An experiment with items in every state, made by events as other languages write them. */
export function datagen(root) {
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
  const lines = []
  const log = item => {
    let seq = 0, batch = 0, attempt = 0
    return {
      retry: () => { attempt++ },
      batch: (...events) => { batch++; for (const e of events) lines.push({ item_id: item, item_seq: seq++, checkpoint_id: `${item}-c${batch}`, attempt, ...e }) },
    }
  }
  const created = { event_type: 'ITEM_CREATED' }
  const step = (name, i) => ({ step_name: name, step_index: i, step_instance_id: name })
  const set = (at, name, kind, value) => ({ event_type: 'FIELD_SET', ...at, field_name: name, field_type: kind, codec_version: 1, value_kind: kind, value })
  const done = at => ({ event_type: 'STEP_COMPLETED', ...at })
  const good = log('doc-0001')
  good.batch({ ...created, query_tags: { lang: 'en' } }, set(step('load', 0), 'text', 'str', 'a first draft'), done(step('load', 0)))
  good.batch(set(step('rewrite', 1), 'text', 'str', 'a better draft'), set(step('rewrite', 1), 'picture', 'blob', pixel), done(step('rewrite', 1)))
  good.batch({ event_type: 'TERMINAL', terminal: 'completed' })
  const bad = log('doc-0002')
  bad.batch(created, set(step('load', 0), 'text', 'str', hostile), done(step('load', 0)))
  bad.batch({ event_type: 'FAILED', ...step('rewrite', 1), error_type: 'TimeoutError', traceback: 'Traceback: <b>rewrite</b> took too long' })
  const out = log('doc-0003')
  out.batch(created, done(step('load', 0)))
  out.batch({ event_type: 'TERMINAL', terminal: 'filtered' })
  foldlog(root, ['datagen', 'init', 'texts/v1', '--root', root])
  foldlog(root, ['datagen', 'append', 'texts/v1', '--root', root], lines.map(l => JSON.stringify(l)).join('\n') + '\n')
}

/** One more item, while pages are open. */
export function datagenItem(root, item) {
  foldlog(root, ['datagen', 'append', 'texts/v1', '--root', root], JSON.stringify({ item_id: item, item_seq: 0, checkpoint_id: item + '-c1', attempt: 0, event_type: 'ITEM_CREATED' }) + '\n')
}

export const longName = 'n'.repeat(128)
export const bigSeed = '9007199254740993', bigStep = '9223372036854775801'

/** Runs of every odd shape: without a finite value, of one point, of a thousand metrics, of long texts and large integers. */
export function oddRuns(root, now) {
  const r = chance(5)
  const odd = new Stream('nothing-finite', now - minute)
  for (let i = 0; i < 20; i++) odd.metric(i, 'nan', NaN).metric(i, 'inf', Infinity).metric(i, 'mixed', i % 5 ? i : NaN).metric(i, 'huge', i % 2 ? 1e308 : -1e308).metric(i, 'negative', -1 - i).metric(i, 'burst', i === 7 ? 1e9 : 1 + r())
  odd.done().write(root)
  new Stream('one-point', now - minute).metric(7, 'loss', 0.123456789).done().write(root)
  const wide = new Stream('thousand-metrics', now - minute)
  for (let m = 0; m < 1000; m++) for (let i = 0; i < 3; i++) wide.metric(i, `layer${m >> 3}/w${m & 7}/norm`, r())
  wide.done().write(root)
  const long = new Stream(longName, now - minute, 'd'.repeat(3000), { ['k'.repeat(500)]: 'v'.repeat(10000), rtl: 'שלום עולם مرحبا', zero: 'a\u200bb\u200dc\u2060', emoji: '👩‍👩‍👧‍👦🦊🏳️‍🌈' })
  for (let i = 0; i < 5; i++) long.metric(i, 'm'.repeat(250), i).metric(i, 'مقياس', i * 2).metric(i, '🦊/loss', 3 - i)
  long.done().write(root)
  const ts = now - minute, lines = [`{"ts_ms":${ts},"kind":"open","slug":"large-integers","description":"","metadata":{"seed":${bigSeed},"list":[${bigSeed}],"lr":0.000123456789}}`]
  for (let i = 0; i < 3; i++) lines.push(`{"ts_ms":${ts + i},"step":${BigInt(bigStep) + BigInt(i)},"kind":"metric","name":"loss","value":${1 / (i + 1)},"metadata":{}}`)
  writeFileSync(join(root, 'large-integers.jsonl'), lines.concat(`{"ts_ms":${ts + 9},"kind":"done","slug":"large-integers"}`).join('\n') + '\n')
}

/** A study of 200 parameters and five objectives. */
export function wideStudy(root, now, trials = 40) {
  const r = chance(13), distribution = JSON.stringify({ name: 'FloatDistribution', attributes: { low: 0, high: 1, log: false, step: null } })
  const log = [{ op_code: 0, worker_id: 'w', study_name: 'wide', directions: [1, 2, 1, 2, 1] }]
  for (let t = 0; t < trials; t++) {
    const at = s => new Date(now - 1e7 + (t * 9 + s) * 1000).toISOString().slice(0, -1)
    log.push({ op_code: 4, worker_id: 'w', study_id: 0, datetime_start: at(0) })
    for (let p = 0; p < 200; p++) log.push({ op_code: 5, worker_id: 'w', trial_id: t, param_name: `parameter_number_${p}`, param_value_internal: r(), distribution })
    log.push({ op_code: 6, worker_id: 'w', trial_id: t, state: 1, values: [r(), r() * 1e6, r() * 1e-6, r(), -r()], datetime_complete: at(5) })
  }
  writeFileSync(join(root, 'wide.log'), log.map(l => JSON.stringify(l)).join('\n') + '\n')
  foldlog(root, ['study', 'import', 'wide.log', 'wide.atj'])
}

export function all(root, now = Date.now()) {
  mkdirSync(root, { recursive: true })
  runs(root, now)
  hostiles(root, now)
  studies(root)
  datagen(root)
}
