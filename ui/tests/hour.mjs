// Pages that stay open while much is written: MINUTES=60 at RATE=1000 events a second.
// The memory of pages and of the server is printed each minute, and summed up at the
// end. The browser is spoken to directly and seldom: playwright listens to everything a
// page loads, and the browser would keep that for it.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { all } from './fixtures.mjs'
import { findChromium, serve, sleep, tempRoot, until, writer } from './lib.mjs'

const minutes = Number(process.env.MINUTES || 60), rate = Number(process.env.RATE || 1000)
const paths = ['/runs/hour', '/', '/runs']

/** Chromium on a pipe, with messages that end by a zero byte. */
function chromium(profile) {
  const p = spawn(findChromium(), ['--no-sandbox', '--disable-dev-shm-usage', '--headless', '--window-size=1280,860', '--remote-debugging-pipe', '--user-data-dir=' + profile], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })
  const waiting = new Map()
  let last = 0, text = ''
  p.stdio[4].setEncoding('utf8').on('data', more => {
    const parts = (text + more).split('\0')
    text = parts.pop()
    for (const m of parts.map(s => JSON.parse(s))) {
      waiting.get(m.id)?.(m.result ?? {})
      waiting.delete(m.id)
    }
  })
  const send = (method, params = {}, sessionId) => new Promise(done => {
    waiting.set(++last, done)
    p.stdio[3].write(JSON.stringify({ id: last, method, params, ...(sessionId && { sessionId }) }) + '\0')
  })
  const ended = new Promise(done => p.on('exit', done))
  return { send, close: () => { send('Browser.close'); return ended } }
}

const root = tempRoot(), profile = tempRoot()
all(root.dir)
const server = await serve(root.dir)
await server.settled()
const w = writer(root.dir, 'hour')
w.line('step=0 loss=1 val/loss=1 rate=0 sys/memory=0')
await until('the run', async () => (await fetch(server.base + '/api/v1/runs/hour')).ok)
const browser = chromium(join(profile.dir, 'profile'))
const pages = []
for (const path of paths) pages.push({ path, ...await browser.send('Target.createTarget', { url: server.base + path, newWindow: true, forTab: false }) })

/** Asks a page one thing, and lets go of it again. */
async function ask(page, ...calls) {
  const { sessionId } = await browser.send('Target.attachToTarget', { targetId: page.targetId, flatten: true })
  const answers = []
  for (const [method, params] of calls) answers.push(await browser.send(method, params, sessionId))
  await browser.send('Target.detachFromTarget', { sessionId })
  return answers
}

/** Resident memory of a process in megabytes. */
const resident = pid => { try { return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024 } catch { return NaN } }

let step = 0
async function look(after) {
  const heaps = []
  for (const p of pages) {
    const [, heap, dom] = await ask(p, ['HeapProfiler.collectGarbage'], ['Runtime.getHeapUsage'], ['Memory.getDOMCounters'])
    heaps.push({ heap: heap.usedSize / 1e6, nodes: dom.nodes, listeners: dom.jsEventListeners })
  }
  const { processInfo } = await browser.send('SystemInfo.getProcessInfo')
  const renderers = processInfo.filter(p => p.type === 'renderer').reduce((n, p) => n + (resident(p.id) || 0), 0)
  console.log(`${String(after).padStart(3)} min  ${step * 4} events  ` + heaps.map((h, i) => `${paths[i]} ${h.heap.toFixed(1)} MB ${h.nodes} nodes ${h.listeners} listeners`).join('  ') + `  renderers ${renderers.toFixed(0)} MB  server ${resident(server.pid()).toFixed(0)} MB`)
  return { heaps, renderers, server: resident(server.pid()) }
}

const began = Date.now()
const feed = setInterval(() => {
  const due = Math.floor((Date.now() - began) / 1000 * rate / 4)
  for (; step < due; step++) w.line(`step=${step} loss=${(1 / (1 + step / 1e4) + Math.sin(step) / 20).toFixed(5)} val/loss=${(1.1 / (1 + step / 1e4)).toFixed(5)} rate=${step % 977} sys/memory=${step % 4096}`)
}, 50)
const looks = []
for (let i = 1; i <= minutes; i++) {
  await sleep(began + i * 60000 - Date.now())
  looks.push(await look(i))
}
clearInterval(feed)
const [{ result }] = await ask(pages[0], ['Runtime.evaluate', { expression: `document.querySelector('section[aria-label="loss"] footer').innerText + '; ' + document.querySelector('.linked').innerText` }])
console.log(`${step * 4} events were written; the page says: ${result.value}`)
const mean = (list, f) => list.reduce((n, l) => n + f(l), 0) / list.length
const early = looks.slice(Math.min(2, looks.length - 1), 12), late = looks.slice(-10)
for (const [what, f] of [...paths.map((n, i) => [n, l => l.heaps[i].heap]), ['renderers', l => l.renderers], ['server', l => l.server]]) {
  console.log(`${what.padEnd(12)} ${mean(early, f).toFixed(1)} MB in the first minutes, ${mean(late, f).toFixed(1)} MB in the last`)
}
await browser.close()
await w.end()
await server.stop()
root.remove()
profile.remove()
