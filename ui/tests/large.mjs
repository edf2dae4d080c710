// How soon every view of a large root is there. SCALE=0.1 makes a tenth of it; ROOT
// keeps the root from one time to the next. Numbers are printed, not judged.
import { spawnSync } from 'node:child_process'
import { createWriteStream, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { chance, Stream } from './fixtures.mjs'
import { foldlog, launch, serve, sleep, tempRoot } from './lib.mjs'

const scale = Number(process.env.SCALE || 1)
const n = full => Math.max(2, Math.round(full * scale))
const now = Date.now(), r = chance(3)

function manyRuns(root) {
  for (let i = 0; i < n(30000); i++) {
    if (i % 1000 === 0) mkdirSync(join(root, `many/${i / 1000}`), { recursive: true })
    const s = new Stream(`run-${String(i).padStart(5, '0')}`, now - (i + 20) * 60000, 'one of many', { knobs: { lr: r() / 10, seed: i } })
    for (let step = 0; step < 10; step++) s.metric(step * 10, 'train/loss', 2 / (1 + step) + r() / 5).metric(step * 10, 'val/loss', 2.2 / (1 + step) + r() / 5)
    if (i % 41 === 0) s.note(90, 'failed: out of memory', { error: 'out of memory' }).done()
    else if (i % 7) s.done()
    s.write(root, `many/${Math.floor(i / 1000)}/${s.slug}.jsonl`)
  }
}

async function longRun(root, slug, points) {
  const out = createWriteStream(join(root, slug + '.jsonl'))
  out.write(JSON.stringify({ ts_ms: now - 1e7, kind: 'open', slug, description: '', metadata: {} }) + '\n')
  for (let i = 0, text = ''; i < points; i++) {
    text += `{"ts_ms":${now - 1e7 + i},"step":${i},"kind":"metric","name":"loss","value":${(Math.exp(-i / points * 3) + r() * 0.1).toFixed(6)},"metadata":{}}\n`
    if (i % 10000 === 9999 || i === points - 1) { if (!out.write(text)) await once(out, 'drain'); text = '' }
  }
  out.end(JSON.stringify({ ts_ms: now, kind: 'done', slug }) + '\n')
  await once(out, 'finish')
}

function bigStudy(root) {
  const lines = [{ op_code: 0, worker_id: 'w', study_name: 'big', directions: [1] }]
  const dist = name => JSON.stringify({ name: 'FloatDistribution', attributes: { low: 0, high: 1, log: false, step: null }, param: name })
  for (let i = 0; i < n(50000); i++) {
    const at = s => new Date(now - 1e9 + i * 9000 + s * 1000).toISOString().slice(0, -1)
    lines.push({ op_code: 4, worker_id: 'w', study_id: 0, datetime_start: at(0) })
    const x = ['a', 'b', 'c', 'd', 'e'].map(name => { const v = r(); lines.push({ op_code: 5, worker_id: 'w', trial_id: i, param_name: name, param_value_internal: v, distribution: dist(name) }); return v })
    lines.push({ op_code: 6, worker_id: 'w', trial_id: i, state: i % 50 ? 1 : 3, values: i % 50 ? [(x[0] - 0.3) ** 2 + x[1] / 3 + r() / 10] : null, datetime_complete: at(20 + 30 * r()) })
  }
  writeFileSync(join(root, 'optuna.log'), lines.map(l => JSON.stringify(l)).join('\n') + '\n')
  foldlog(root, ['study', 'import', 'optuna.log', 'big.atj'])
}

async function make(root) {
  mkdirSync(root, { recursive: true })
  const part = async (what, f) => { const t = Date.now(); await f(); console.log(`made ${what} in ${((Date.now() - t) / 1000).toFixed(1)} s`) }
  await part(`${n(30000)} runs`, () => manyRuns(root))
  await part(`a run of ${n(1e6)} points`, () => longRun(root, 'million', n(1e6)))
  await part(`100 runs of ${n(1e5)} points`, async () => { for (let i = 0; i < 100; i++) await longRun(root, `long-${String(i).padStart(2, '0')}`, n(1e5)) })
  await part(`a study of ${n(50000)} trials`, () => bigStudy(root))
  await part(`a datagen log of ${n(1e6)} items`, () => items(root))
}

/** Items as a pipeline leaves them after weeks, by a command that writes their rows at once. */
function items(root) {
  const made = spawnSync('go', ['run', './internal/benchitems', '-root', root, '-items', String(n(1e6))], { cwd: join(import.meta.dirname, '../..'), stdio: 'inherit' })
  if (made.status !== 0) throw new Error('benchitems failed')
}

/** Milliseconds from the navigation until a view has what was asked for. */
async function seen(page, ready) {
  for (let i = 0; i < 2000; i++) {
    if (await page.evaluate(ready).catch(() => false)) return page.evaluate(() => performance.now())
    await sleep(15)
  }
  return NaN
}

const root = process.env.ROOT ?? tempRoot().dir
if (!existsSync(join(root, 'big.atj'))) await make(root)
let t = Date.now()
const server = await serve(root)
await server.settled()
console.log(`the server had read it after ${((Date.now() - t) / 1000).toFixed(1)} s`)
await server.stop()
t = Date.now()
await server.start()
await server.settled()
console.log(`and again after ${((Date.now() - t) / 1000).toFixed(1)} s`)
const browser = await launch()
const study = (await (await fetch(server.base + '/api/v1/studies')).json()).items.find(s => s.name === 'big')?.id
const made = (await (await fetch(server.base + '/api/v1/datagen')).json()).items[0]?.id
const compare = '/compare?' + Array.from({ length: 100 }, (_, i) => `run=long-${String(i).padStart(2, '0')}`).join('&')
// A few strips from top to bottom: whatever is drawn crosses one of them.
const coloured = `[...document.querySelectorAll('main canvas')].some(c => { for (let k = 1; c.width && k < 12; k++) { const d = c.getContext('2d').getImageData(Math.floor(c.width * k / 12), 0, 1, c.height).data; for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 60 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 30) return true } return false })`
const row = `!!document.querySelector('.tr:not(.th) a')`
const views = [
  ['overview', '/', `[...document.querySelectorAll('.stat b')].every(b => b.innerText !== '–') && !document.querySelector('.skeleton')`],
  ['30,000 runs', '/runs', row], ['30,000 runs by a metric', '/runs?sort=metric:val/loss&col=metric:val/loss', row],
  ['1,000,000 points', '/runs/million', coloured], ['1,000,000 points, zoomed', '/runs/million?from=1000&to=9000', coloured],
  ['100 x 100,000 points', compare, coloured],
  ...(study ? [['50,000 trials', '/studies/' + study, coloured], ['50,000 trials, parameters', `/studies/${study}?tab=params`, coloured], ['50,000 trials, timeline', `/studies/${study}?tab=timeline`, coloured], ['50,000 trials, table', `/studies/${study}?tab=trials`, row]] : []),
  ...(made ? [['1,000,000 items', '/datagen/' + made, `[...document.querySelectorAll('.stat b')].some(b => /\\d/.test(b.innerText)) && !!document.querySelector('.bars')`], ['1,000,000 items, table', `/datagen/${made}?tab=items`, row],
    ['1,000,000 items, the middle', `/datagen/${made}?tab=items&at=${n(5e5)}`, `[...document.querySelectorAll('.tr')].some(r => r.ariaRowIndex === '${n(5e5) + 1}' && r.querySelector('a'))`],
    ['1,000,000 items, the failed', `/datagen/${made}?tab=items&status=failed&sort=item`, row], ['one item of 1,000,000', `/datagen/${made}/items/doc-${String(n(4e5)).padStart(7, '0')}`, `!!document.querySelector('main .plain td') && document.querySelectorAll('.skeleton').length === 0`]] : []),
]
const context = await browser.newContext({ viewport: { width: 1360, height: 860 } })
const only = new RegExp(process.env.ONLY ?? '')
const times = Number(process.env.TIMES || 5)

/** Milliseconds of the processor that the server has used. */
const used = () => { const f = readFileSync(`/proc/${server.pid()}/stat`, 'utf8').split(') ')[1].split(' '); return (Number(f[11]) + Number(f[12])) * 10 }
const median = list => list.sort((a, b) => a - b)[list.length >> 1]

console.log(`${'view'.padEnd(30)}  there after   best | CPU of the page  of the server   (medians of ${times}, milliseconds; load ${loadavg()[0].toFixed(1)})`)
for (const [name, path, ready] of views.filter(v => only.test(v[0]))) {
  const walls = [], page_ = [], server_ = []
  for (let i = 0; i < times; i++) {
    const page = await context.newPage()
    const cdp = await context.newCDPSession(page)
    await cdp.send('Performance.enable')
    const before = used()
    await page.goto(server.base + path, { waitUntil: 'commit' })
    walls.push(await seen(page, ready))
    const { metrics } = await cdp.send('Performance.getMetrics')
    page_.push(1000 * metrics.find(m => m.name === 'TaskDuration').value)
    server_.push(used() - before)
    if (i === times - 1 && process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, name.replace(/\W+/g, '-') + '.png') })
    await page.close()
  }
  console.log(name.padEnd(30) + [median(walls), Math.min(...walls)].map(t => String(Math.round(t)).padStart(10)).join('') + ' |' + [median(page_), median(server_)].map(t => String(Math.round(t)).padStart(15)).join(''))
}
await browser.close()
await server.stop()
