// Open pages over connections that are not what they seem: held back by a proxy, dead
// without a word, asleep with the machine; and on computers whose clocks are wrong.
import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import { after, before, test } from 'node:test'
import { Stream } from './fixtures.mjs'
import { endWriters, findChromium, launch, longEnough, open, serve, tempRoot, until, writer } from './lib.mjs'

let root, server, browser, proxy, log, step = 0
const skip = findChromium() ? false : 'there is no Chromium on this machine'

/** What stands between a browser and a server: it passes everything on, until it is told not to. */
async function between(base) {
  const open = new Set(), p = { hold: false, refuse: false, opened: 0, cut: () => { for (const one of open) one.end(); open.clear() } }
  const s = createServer((req, res) => {
    const live = req.url.includes('/live')
    if (live) p.opened++
    if (live && p.refuse) { res.writeHead(503).end(); return }
    const up = request(base + req.url, { method: req.method, headers: { ...req.headers, host: new URL(base).host, ...(req.headers.origin && { origin: base }) } }, answer => {
      res.writeHead(answer.statusCode, answer.headers)
      if (!live) { answer.pipe(res); return }
      const one = { dead: p.hold, end: () => res.destroy() }
      open.add(one)
      res.flushHeaders()
      answer.on('data', d => { if (!one.dead) res.write(d) }).on('end', () => res.end()).on('error', () => res.destroy())
    })
    up.on('error', () => res.destroy())
    res.on('close', () => up.destroy())
    req.pipe(up)
  })
  await new Promise(done => s.listen(0, '127.0.0.1', done))
  /** nothing more comes by the event streams that are open; they are not closed */
  p.kill = () => { for (const one of open) one.dead = true; open.clear() }
  p.base = `http://127.0.0.1:${s.address().port}`
  p.close = () => { s.closeAllConnections(); s.close() }
  return p
}

before(async () => {
  if (skip) return
  root = tempRoot()
  new Stream('early', Date.now() - 5000).metric(1, 'loss', 1).done().write(root.dir)
  server = await serve(root.dir)
  proxy = await between(server.base)
  browser = await launch()
  log = writer(root.dir, 'now')
  write()
  await until('the run', async () => (await fetch(server.base + '/api/v1/runs/now')).ok)
})
after(async () => {
  await browser?.close()
  endWriters()
  proxy?.close()
  await server?.stop()
  root?.remove()
})

const write = () => log.line(`step=${++step} loss=${1 / step}`)
const sees = (page, what) => until(`${what} on the page`, async () => (await page.locator('body').innerText()).includes(what))
const stepIs = (page, n) => until(`step ${n}`, async () => new RegExp(`step\\s+${n}\\b`).test(await page.locator('.facts').innerText()))

/** A page that is live behind the proxy, with a clock that the test moves. */
async function liveAt(path, use, time = Date.now()) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } })
  context.setDefaultTimeout(longEnough)
  const page = await context.newPage()
  await page.clock.install({ time })
  await page.goto(proxy.base + path)
  try { await use(page) } finally { await context.close() }
}

test('a connection that died without a word is given up, and nothing is missed', { skip }, () => liveAt('/runs/now', async page => {
  await sees(page, 'Live')
  proxy.kill()
  write()
  await page.clock.runFor(60_000)
  await sees(page, 'Live')
  await stepIs(page, step)
}))

test('a page that slept with its machine goes on at once', { skip }, () => liveAt('/runs/now', async page => {
  await sees(page, 'Live')
  const before = proxy.opened
  proxy.kill()
  write()
  await page.clock.fastForward(25_000)
  await until('a new connection', () => proxy.opened > before)
  await stepIs(page, step)
}))

test('behind a proxy that holds events back the page says so, and reads again', { skip }, () => liveAt('/runs/now', async page => {
  await sees(page, 'Live')
  proxy.hold = true
  proxy.kill()
  await page.clock.runFor(60_000)
  await sees(page, 'Changes come late')
  await sees(page, 'Delayed')
  write()
  await page.clock.runFor(12_000)
  await stepIs(page, step)
  proxy.hold = false
  await page.clock.runFor(12_000)
  await sees(page, 'Live')
  assert.equal(await page.locator('.gone').innerText(), '')
}))

test('where no more event streams are to be had the page says so, and reads again', { skip }, () => liveAt('/runs/now', async page => {
  await sees(page, 'Live')
  proxy.refuse = true
  proxy.cut()
  for (let i = 0; i < 6; i++) await page.clock.runFor(2000)
  await sees(page, 'Delayed')
  write()
  await until('the step', async () => {
    await page.clock.runFor(2000)
    return new RegExp(`step\\s+${step}\\b`).test(await page.locator('.facts').innerText())
  })
  proxy.refuse = false
  await page.clock.runFor(6000)
  await sees(page, 'Live')
}))

test('ages are by the clock of the server, whatever that of the browser says', { skip }, async () => {
  write()
  // Half a minute more, which the page may take to begin.
  for (const off of [-3_630_000, 3_630_000]) await liveAt('/runs/now', async page => {
    await sees(page, 'Live')
    await until('running', async () => (await page.locator('.title').innerText()).includes('running'))
    await until('a time by the server', async () => /just now|\d+ s ago|\d min ago/.test(await page.locator('.facts').innerText()))
    assert.match(await page.locator('.linked').getAttribute('title'), off > 0 ? /1 h 0 min ahead of the server's/ : /1 h 0 min behind the server's/)
  }, Date.now() + off)
})

test('a view that found no server comes by itself when there is one', { skip }, async () => {
  const page = await open(browser, server.base, '/runs')
  await sees(page, 'early')
  await server.stop()
  await page.locator('a', { hasText: 'early' }).first().click()
  await sees(page, 'The server does not answer')
  await server.start()
  await sees(page, 'over')
  await until('its chart', () => page.locator('main canvas').count())
  await page.context().close()
})

test('a run that is not there yet is shown when it is', { skip }, async () => {
  const page = await open(browser, server.base, '/runs/to-come')
  await sees(page, 'There is no run')
  new Stream('to-come', Date.now()).metric(1, 'loss', 1).write(root.dir)
  await until('its chart', () => page.locator('main canvas').count())
  await page.context().close()
})
