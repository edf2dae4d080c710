// What the browser tests share: a root, a real server on it, real writers, a browser.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { chromium } from 'playwright-core'

const here = import.meta.dirname
export const binary = process.env.FOLDLOG ?? resolve(here, '../../foldlog')

export function tempRoot() {
  const dir = mkdtempSync(join(tmpdir(), 'foldlog-ui-'))
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) }
}

/** Runs foldlog to its end and returns what it printed. */
export function foldlog(cwd, args, input) {
  const r = spawnSync(binary, args, { cwd, input, encoding: 'utf8', maxBuffer: 1 << 28 })
  if (r.status !== 0) throw new Error(`foldlog ${args.join(' ')}: ${r.status}\n${r.stderr}`)
  return r.stdout
}

const writers = new Set()

/** Ends writers that a test which failed has left behind. */
export function endWriters() { for (const p of writers) p.kill('SIGKILL') }

/** A writer: foldlog metrics record, fed line by line. */
export function writer(cwd, slug, args = []) {
  const p = spawn(binary, ['metrics', 'record', '-q', '--slug', slug, '--to', `jsonl:${slug}.jsonl`, ...args], { cwd, stdio: ['pipe', 'ignore', 'inherit'] })
  const ended = new Promise(done => p.on('exit', done))
  writers.add(p)
  ended.then(() => writers.delete(p))
  return {
    line: text => p.stdin.write(text + '\n'),
    end: () => { p.stdin.end(); return ended },
    kill: () => { p.kill('SIGKILL'); return ended },
  }
}

/** A free port below those that systems give to who asks for any: a server comes back at it. */
async function freePort() {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000), s = createServer()
    const free = await new Promise(done => s.once('error', () => done(false)).listen(port, '127.0.0.1', () => done(true)))
    if (!free) continue
    await new Promise(done => s.close(done))
    return port
  }
}

/** foldlog serve on a root; start it again at the same address after stop. */
export async function serve(root, args = []) {
  const port = await freePort()
  const base = `http://127.0.0.1:${port}`
  let p, ended
  const start = async () => {
    p = spawn(binary, ['serve', root, '-q', '--addr', `127.0.0.1:${port}`, ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
    ended = new Promise(done => p.on('exit', done))
    for (let i = 0; ; i++) {
      try { if ((await fetch(base + '/healthz')).ok) return } catch { /* not yet */ }
      if (i > 1200 || p.exitCode !== null) throw new Error('the server does not start')
      await new Promise(done => setTimeout(done, 50))
    }
  }
  const stop = (signal = 'SIGTERM') => { p.kill(signal); return ended }
  await start()
  /** waits until everything has been read */
  const settled = async () => {
    for (let i = 0; i < 2400; i++) {
      const o = await (await fetch(base + '/api/v1/overview')).json()
      if (o.waiting === 0 && o.runs.total > 0) return
      await new Promise(done => setTimeout(done, 250))
    }
    throw new Error('the server does not settle')
  }
  return { base, start, stop, settled, pid: () => p.pid }
}

export function findChromium() {
  const found = [process.env.CHROMIUM, '/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(p => p && existsSync(p))
  if (!found && process.env.CI) throw new Error('there is no Chromium: apt install chromium-headless-shell')
  return found
}

export async function launch() {
  return chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox', '--disable-dev-shm-usage', '--enable-precise-memory-info', '--js-flags=--expose-gc'] })
}

/** A page whose faults are collected: errors thrown, and messages of the console. */
export async function open(browser, base, path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options })
  context.setDefaultTimeout(longEnough)
  const page = await context.newPage()
  page.faults = []
  page.on('pageerror', e => page.faults.push(e.message))
  page.on('console', m => m.type() === 'error' && !/Failed to load resource|ERR_/.test(m.text()) && page.faults.push(m.text()))
  await page.goto(base + path)
  return page
}

/** Opens a page, lets it be used, and asks that nothing was wrong on it. */
export async function visit(browser, base, path, use, options) {
  const page = await open(browser, base, path, options)
  try {
    await use(page)
    assert.deepEqual(page.faults, [], 'faults on ' + path)
  } finally { await page.context().close() }
}

/** For how many milliseconds tests wait for what takes a moment unless the machine is busy. */
export const longEnough = 300_000

export const sleep = ms => new Promise(done => setTimeout(done, ms))

/** Asks until a condition holds, and returns what it gave. Machines may be slow. */
export async function until(what, ask) {
  const end = performance.now() + longEnough
  for (;;) {
    const got = await ask()
    if (got) return got
    if (performance.now() > end) throw new Error('never: ' + what)
    await sleep(50)
  }
}
