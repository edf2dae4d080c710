// The dashboard for every eye, hand and shape of data: contrast, names, fingers, and
// logs that are odd in all ways that have been thought of.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { all, bigSeed, bigStep, longName, oddRuns, wideStudy } from './fixtures.mjs'
import { findChromium, launch, open, serve, sleep, tempRoot, until } from './lib.mjs'

let root, server, browser, views
const skip = findChromium() ? false : 'there is no Chromium on this machine'
const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }
const ask = async path => (await (await fetch(server.base + '/api/v1/' + path)).json()).items

before(async () => {
  if (skip) return
  root = tempRoot()
  all(root.dir)
  oddRuns(root.dir, Date.now())
  wideStudy(root.dir, Date.now())
  server = await serve(root.dir)
  await server.settled()
  browser = await launch()
  const studies = await ask('studies'), id = name => studies.find(s => s.name === name).id, experiment = (await ask('datagen'))[0].id
  const runs = (await ask('runs?limit=100')).map(r => 'run=' + encodeURIComponent(r.slug)).join('&')
  views = [
    '/', '/runs?col=metric:train/loss&col=knobs/lr', '/runs?q=nothing', '/runs/vision-resumed', '/runs/vision-resumed?tab=details', '/runs/vision-large?tab=notes', '/runs/nothing-finite', '/runs/one-point',
    '/runs/' + longName, `/runs/${longName}?tab=details`, '/runs/large-integers?tab=details', '/runs/nothing-of-this-name', '/compare?' + runs, '/compare?tab=table&' + runs, '/compare?tab=diff&' + runs, '/compare?tab=params&' + runs, '/compare?group=knobs%2Flr&' + runs,
    '/studies', '/compare-studies?study=none&' + studies.map(s => 'study=' + s.id).join('&'), '/runs/vision-resumed?x=metric:val/accuracy', `/studies/${id('vision-search')}`, `/studies/${id('vision-search')}?tab=params`, `/studies/${id('vision-search')}?tab=curves`, `/studies/${id('vision-search')}?tab=timeline`, `/studies/${id('vision-search')}?tab=trials`, `/studies/${id('vision-search')}?tab=outbox`,
    `/studies/${id('vision-search')}/trials/17`, `/studies/${id('size-and-loss')}`, `/studies/${id('wide')}`, `/studies/${id('wide')}?tab=params`, `/studies/${id('wide')}?tab=trials`, `/studies/${id('wide')}/trials/3`,
    '/datagen', `/datagen/${experiment}`, `/datagen/${experiment}?tab=items`, `/datagen/${experiment}?tab=failures`, `/datagen/${experiment}?tab=writers`, `/datagen/${experiment}/items/doc-0001`, `/datagen/${experiment}/items/doc-0002`,
  ]
})
after(async () => {
  await browser?.close()
  await server?.stop()
  root?.remove()
})

/** Goes through all views in one page, without loading it anew. */
async function through(options, look) {
  const page = await open(browser, server.base, '/', options)
  try {
    for (const path of views) {
      await page.evaluate(path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')) }, path)
      await sleep(150)
      await until('the view ' + path, () => page.evaluate(() => !document.querySelector('main .skeleton') && document.querySelector('main').innerText.length > 3))
      await look(page, path)
    }
    assert.deepEqual(page.faults, [])
  } finally { await page.context().close() }
}

/** Texts of a page that are hard to read: by their colour and the one behind them. */
function faintTexts() {
  const pen = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true })
  const rgba = css => {
    pen.clearRect(0, 0, 1, 1)
    pen.fillStyle = css
    pen.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data
    return [r, g, b, a / 255]
  }
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3]))
  const light = c => c.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((n, v, i) => n + v * [0.2126, 0.7152, 0.0722][i], 0)
  const behind = el => {
    const layers = []
    for (let e = el; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor))
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255])
  }
  const found = new Set()
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walk.nextNode()) {
    const el = walk.currentNode.parentElement, text = walk.currentNode.nodeValue.trim()
    if (!text || !el.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || el.closest('.sr, :disabled, .skip, option')) continue
    const s = getComputedStyle(el), back = behind(el), front = over(rgba(s.color), back)
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05)
    const size = parseFloat(s.fontSize), large = size >= 24 || size >= 18.66 && Number(s.fontWeight) >= 700
    if (ratio < (large ? 3 : 4.5)) found.add(`“${text.slice(0, 30)}” ${el.className || el.tagName} ${ratio.toFixed(2)}`)
  }
  for (const field of document.querySelectorAll('input[placeholder]')) {
    const back = behind(field), [a, b] = [light(over(rgba(getComputedStyle(field, '::placeholder').color), back)), light(back)].sort((x, y) => y - x)
    if ((a + 0.05) / (b + 0.05) < 4.5) found.add(`placeholder “${field.placeholder}”`)
  }
  return [...found]
}

test('every text of every view can be read, in the dark', { skip }, async () => {
  const all = {}
  await through({ colorScheme: 'dark' }, async (page, path) => {
    const found = await page.evaluate(faintTexts)
    if (found.length) all[path] = found
  })
  assert.deepEqual(all, {})
})

test('colours of lines stand out from the panels they are drawn on', { skip }, () => {
  const source = name => readFileSync(resolve(import.meta.dirname, '../src', name), 'utf8')
  const hues = [...source('lib/color.ts').matchAll(/\['(#\w{6})', '(#\w{6})'\]/g)], panels = [...source('style.css').matchAll(/--panel: (#\w{6})/g)].map(m => m[1])
  const light = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((n, v, i) => n + v * [0.2126, 0.7152, 0.0722][i], 0)
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05) }
  assert.ok(hues.length >= 12 && panels.length >= 2)
  for (const [, onLight, onDark] of hues) {
    assert.ok(ratio(onLight, panels[0]) >= 3, `${onLight} on ${panels[0]}`)
    assert.ok(ratio(onDark, panels[1]) >= 3, `${onDark} on ${panels[1]}`)
  }
})

/** What a screen reader would find no name for, and what the keyboard cannot reach. */
function nameless() {
  const found = []
  const nameOf = el => el.getAttribute('aria-label') || el.getAttribute('aria-labelledby') || el.getAttribute('title') || el.innerText?.trim() || el.closest('label')?.innerText.trim() || ''
  for (const el of document.querySelectorAll('a[href], button, input, select, textarea, summary, canvas[tabindex], [role=grid], [role=img], [role=tablist], [role=radiogroup], dialog')) {
    if (el.checkVisibility() && !nameOf(el)) found.push('no name: ' + el.outerHTML.slice(0, 120))
  }
  for (const el of document.querySelectorAll('canvas:not([aria-hidden])')) if (!el.getAttribute('aria-label')) found.push('no label: ' + el.outerHTML.slice(0, 120))
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id)
  for (const id of ids.filter((id, i) => ids.indexOf(id) !== i)) found.push('twice: #' + id)
  for (const el of document.querySelectorAll('[aria-activedescendant]')) if (!document.getElementById(el.getAttribute('aria-activedescendant'))) found.push('points nowhere: ' + el.getAttribute('aria-activedescendant'))
  if (document.querySelectorAll('h1').length > 1) found.push('more than one heading of the first level')
  return found
}

test('on a phone every text can be read, everything has a name, and nothing is wider than the screen', { skip }, async () => {
  const all = {}
  await through(phone, async (page, path) => {
    const found = [...await page.evaluate(faintTexts), ...await page.evaluate(nameless)]
    const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
    if (wide > screen) found.push(`${wide} wide on a screen of ${screen}`)
    if (found.length) all[path] = found
  })
  assert.deepEqual(all, {})
})

test('axe finds no fault in any view', { skip }, async () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'), all = {}
  await through({}, async (page, path) => {
    await page.evaluate(axe => { if (!window.axe) (0, eval)(axe) }, axe)
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'], rules: { 'color-contrast': { enabled: false } } }))
    if (violations.length) all[path] = violations.map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 140)).join(' | ')}`)
  })
  assert.deepEqual(all, {})
})

test('what has the focus shows it', { skip }, async () => {
  const page = await open(browser, server.base, '/runs/vision-resumed')
  try {
    await until('the chart', () => page.locator('main canvas').first().isVisible())
    for (let i = 0; i < 45; i++) {
      await page.keyboard.press('Tab')
      const seen = await page.evaluate(() => {
        const el = document.activeElement
        if (el === document.body) return null
        const s = getComputedStyle(el)
        return { name: el.outerHTML.slice(0, 100), shown: s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2, opacity: getComputedStyle(el.closest('.save, .copy') ?? el).opacity }
      })
      if (seen === null) break
      assert.ok(seen.shown && seen.opacity === '1', JSON.stringify(seen))
    }
  } finally { await page.context().close() }
})

test('nothing moves for those who asked for that', { skip }, async () => {
  const page = await open(browser, server.base, '/nowhere', { reducedMotion: 'reduce' })
  try {
    await page.route(/api\/v1\/runs/, () => {})
    await page.goto(server.base + '/studies')
    await page.evaluate(() => document.querySelector('main').insertAdjacentHTML('beforeend', '<div class="skeleton" style="height:20px"></div>'))
    assert.deepEqual(await page.evaluate(() => document.getAnimations().map(a => a.animationName ?? a.transitionProperty)), [])
  } finally { await page.context().close() }
})

/** Fingers on a screen. */
async function touch(page) {
  const cdp = await page.context().newCDPSession(page)
  const send = (type, points) => cdp.send('Input.dispatchTouchEvent', { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) })
  return async (...frames) => {
    await send('touchStart', frames[0])
    for (const frame of frames.slice(1)) { await send('touchMove', frame); await sleep(20) }
    await send('touchEnd', [])
    await page.evaluate(() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn))))
    await sleep(80)
  }
}

test('fingers zoom a chart, read its values, and scroll the page past it', { skip }, async () => {
  const page = await open(browser, server.base, '/runs/vision-base-lr0.02?m=train/loss', phone)
  try {
    const chart = page.locator('section[aria-label="train/loss"]'), fingers = await touch(page)
    await until('the chart', async () => /300 points/.test(await chart.innerText().catch(() => '')))
    const box = await chart.locator('canvas').boundingBox(), y = box.y + box.height / 2, x = part => box.x + 40 + (box.width - 50) * part
    await fingers([[x(0.5), y]], [[x(0.55), y]], [[x(0.6), y]])
    await until('a value', async () => /step 1[78]\d/.test(await page.locator('.plot-tip').innerText().catch(() => '')))
    const tip = await page.locator('.plot-tip').boundingBox()
    assert.ok(tip.x >= 0 && tip.x + tip.width <= 390, `the value is at ${tip.x}, ${tip.width} wide`)
    await fingers([[x(0.4), y], [x(0.6), y]], [[x(0.3), y], [x(0.7), y]], [[x(0.2), y], [x(0.8), y]], [[x(0.1), y], [x(0.9), y]])
    const range = () => { const q = new URL(page.url()).searchParams; return q.has('from') && [Number(q.get('from')), Number(q.get('to'))] }
    const [from, to] = await until('a nearer look, at 50 to 110 of 300 steps', () => { const r = range(); return r && r[1] - r[0] > 50 && r[1] - r[0] < 110 && r })
    assert.ok(Math.abs((to + from) / 2 - 150) < 25, 'what was between the fingers is in the middle')
    assert.equal(await chart.locator('canvas').evaluate(c => c.style.transform), '')
    const tap = () => fingers([[x(0.5), y]])
    await until('everything again', async () => { // two taps are two taps where the machine is slow
      await tap()
      await tap()
      return !new URL(page.url()).searchParams.has('from')
    })
    await page.goto(server.base + '/runs/vision-base-lr0.02')
    await until('the charts', async () => (await page.locator('main canvas').count()) >= 3)
    await fingers([[200, 600]], [[200, 500]], [[200, 400]], [[200, 300]], [[200, 200]])
    await until('that the page has moved', () => page.evaluate(() => scrollY > 100))
    assert.deepEqual(page.faults, [])
  } finally { await page.context().close() }
})

test('a finger scrolls a long list and opens a trial by a second tap', { skip }, async () => {
  const study = (await ask('studies')).find(s => s.name === 'vision-search')
  const page = await open(browser, server.base, `/studies/${study.id}?tab=trials`, phone)
  try {
    const fingers = await touch(page), table = page.locator('.table')
    await until('rows', async () => (await page.locator('.tr:not(.th) a').count()) > 5)
    await table.evaluate(t => t.scrollIntoView({ block: 'center' }))
    const box = await table.boundingBox(), x = box.x + 60
    for (let i = 0; i < 3; i++) await fingers([[x, box.y + 250]], [[x, box.y + 190]], [[x, box.y + 130]], [[x, box.y + 60]])
    await until('later rows', () => table.evaluate(t => t.scrollTop > 300))
    await until('what they hold', async () => Number((await page.locator('.tr:not(.th) a').first().innerText())) >= 1)
    assert.equal(new URL(page.url()).pathname, `/studies/${study.id}`, 'scrolling opens nothing')
    await page.goto(server.base + '/studies/' + study.id)
    const canvas = page.locator('canvas[aria-label^="History"]')
    await until('the history', () => canvas.isVisible())
    await canvas.evaluate(c => c.scrollIntoView({ block: 'center' }))
    await sleep(300)
    const at = await canvas.boundingBox()
    const dot = async () => { // a dot that is by itself, found as a finger would: by trying
      for (let dx = 0.15; dx < 0.9; dx += 0.05) for (let dy = 0.3; dy < 0.8; dy += 0.1) {
        await fingers([[at.x + dx * at.width, at.y + dy * at.height]])
        if (await page.locator('.plot-tip').count()) return [at.x + dx * at.width, at.y + dy * at.height]
        await sleep(320)
      }
      throw new Error('no dot is found')
    }
    const place = await dot()
    assert.match(await page.locator('.plot-tip').innerText(), /trial \d+[^]*Tap again to open/)
    assert.equal(new URL(page.url()).pathname, '/studies/' + study.id, 'the first tap only shows')
    await sleep(400)
    await fingers([place])
    await until('the trial', () => /\/trials\/\d+$/.test(page.url()))
  } finally { await page.context().close() }
})

const text = page => page.locator('main').innerText()

test('integers of 64 bits are shown and copied as they were written', { skip }, async () => {
  const page = await open(browser, server.base, '/runs/large-integers?tab=details')
  try {
    await until('the seed', async () => (await text(page)).includes(bigSeed))
    assert.ok((await text(page)).includes(`[${bigSeed}]`) && (await text(page)).includes('0.000123456789'))
    assert.ok((await text(page)).replace(/\D/g, '').includes(String(BigInt(bigStep) + 2n)), 'the last step')
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'Copy all metadata' }).click()
    assert.match(await until('a copy', () => page.evaluate(() => navigator.clipboard.readText())), new RegExp(`"seed": ${bigSeed},`))
    await page.goto(server.base + '/runs?q=large-integers&col=seed')
    await until('the column', async () => (await text(page)).includes(bigSeed))
  } finally { await page.context().close() }
})

test('charts say when there is nothing to draw, and outliers can be left out', { skip }, async () => {
  const page = await open(browser, server.base, '/runs/nothing-finite?m=burst')
  const top = () => page.evaluate(() => document.querySelector('main canvas').toDataURL())
  try {
    await until('the chart', async () => /from 1\..* to 1 000 000 000/.test((await text(page)).replaceAll('\u2009', ' ')))
    const all = await top()
    await page.getByLabel('Clip outliers').check()
    await until('another picture', async () => await top() !== all)
    assert.equal(new URL(page.url()).searchParams.get('clip'), '1')
    await page.goto(server.base + '/runs/thousand-metrics?m=layer1[0-9]/w3')
    await until('ten of a thousand', async () => (await page.locator('section.chart').count()) === 10)
    await page.goto(server.base + '/runs/thousand-metrics?m=layer1[')
    await until('that none is called so', async () => /No metric of that name/.test(await text(page)))
    assert.deepEqual(page.faults, [])
  } finally { await page.context().close() }
})

test('a study of 200 parameters shows those that are asked for', { skip }, async () => {
  const study = (await ask('studies')).find(s => s.name === 'wide')
  const page = await open(browser, server.base, `/studies/${study.id}?tab=params`)
  try {
    await until('the parameters', async () => /200 of 200 parameters/.test(await text(page)))
    await page.getByLabel('Find parameters').fill('_19')
    await until('some of them', async () => /11 of 200 parameters/.test(await text(page)))
    await page.goto(server.base + `/studies/${study.id}?tab=trials`)
    await until('the table', async () => (await page.locator('.tr.th > span').count()) > 15)
    await page.getByText('Columns 12 of 200').click()
    await page.locator('.menu-body').getByLabel('Find parameters').fill('number_150')
    await page.locator('.menu-body').getByText('parameter_number_150').click()
    await until('one more', () => page.locator('.tr.th [title="Sort by parameter_number_150"]').count())
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'CSV' }).click()])
    assert.equal(file.suggestedFilename(), 'wide-trials.csv')
    const lines = readFileSync(await file.path(), 'utf8').trim().split('\r\n')
    assert.equal(lines.length, 41)
    assert.ok(lines[0].startsWith('trial,state,value_0,value_1,') && lines[0].includes(',parameter_number_199,'))
    assert.ok(lines.every(l => l.split(',').length === lines[0].split(',').length))
  } finally { await page.context().close() }
})

test('runs are compared by their parameters, and the link to that is copied', { skip }, async () => {
  const page = await open(browser, server.base, '/compare?tab=params&' + [0.004, 0.008, 0.012, 0.02, 0.03].map(lr => 'run=vision-base-lr' + lr).join('&'))
  try {
    const chart = page.locator('canvas[aria-label^="Parallel coordinates of 5 runs over knobs/lr, knobs/seed"]')
    await until('the chart', () => chart.isVisible())
    assert.equal(await page.getByRole('radio', { name: 'Higher' }).getAttribute('aria-checked'), 'true', 'accuracy is better if higher')
    await page.getByLabel('Metric').selectOption('val/loss')
    await until('loss is better if lower', async () => await page.getByRole('radio', { name: 'Lower' }).getAttribute('aria-checked') === 'true')
    const box = await page.locator('.plot canvas').last().boundingBox()
    for (let y = 60; y < 330 && !await page.locator('.plot-tip').count(); y += 4) await page.mouse.move(box.x + box.width / 4, box.y + y)
    assert.match(await page.locator('.plot-tip').innerText(), /vision-base-lr[^]*val\/loss[^]*knobs\/lr/)
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'Copy the link' }).click()
    const link = await until('the link', () => page.evaluate(() => navigator.clipboard.readText()))
    assert.equal(link, page.url())
    assert.match(link, /metric=val%2Floss/)
    await page.mouse.move(box.x + box.width / 4, box.y + 2)
    assert.deepEqual(page.faults, [])
  } finally { await page.context().close() }
})

test('a finger goes through a list of a million items, row by row and by the thousand', { skip }, async () => {
  const experiment = (await ask('datagen'))[0], total = 1_000_000
  const page = await open(browser, server.base, '/nowhere', phone)
  try {
    await page.route(/\/items\?/, route => {
      const q = new URL(route.request().url()).searchParams, offset = Number(q.get('offset') ?? 0)
      const items = Array.from({ length: Math.min(Number(q.get('limit')), total - offset) }, (_, i) => ({ item: 'item-' + (offset + i), root: '', parent: '', status: 'completed', step: '', attempt: 0, events: 1, failures: 0, error_type: '', tags: {}, created_ms: 1, updated_ms: 1, suspect: false }))
      return route.fulfill({ json: { seq: '1', items, next: '', total } })
    })
    await page.goto(server.base + `/datagen/${experiment.id}?tab=items&sort=item&at=500001`)
    const table = page.locator('.table'), fingers = await touch(page)
    const first = () => table.evaluate(t => {
      const head = t.querySelector('.th').getBoundingClientRect().bottom
      const row = [...t.querySelectorAll('.tr:not(.th)')].find(r => r.getBoundingClientRect().top >= head - 1)
      return Number(row?.querySelector('a')?.innerText.slice(5) ?? NaN)
    })
    await until('the middle', async () => Math.abs(await first() - 500_000) < 5)
    await table.evaluate(t => t.scrollIntoView({ block: 'center' }))
    const box = await table.boundingBox(), x = box.x + 80, before = await first()
    const swipe = (from, to) => fingers(...Array.from({ length: 12 }, (_, i) => [[x, box.y + from + (to - from) * i / 11]]))
    await swipe(300, 130)
    const by = await until('rows that have moved with the finger and rest', async () => {
      const n = await first()
      await sleep(400)
      return n > before && await first() === n && n - before
    })
    assert.ok(by >= 2 && by <= 14, `a swipe of five rows moved by ${by}`)
    await swipe(130, 300)
    await until('the way back', async () => Math.abs(await first() - before) <= 3)
    await table.evaluate(t => { t.scrollTop = t.scrollHeight })
    await until('the end', async () => (await first()) > total - 40)
    await swipe(130, 300)
    await until('near the end', async () => { const n = await first(); return n > total - 80 && n < total - 10 })
    assert.deepEqual(page.faults, [])
  } finally { await page.context().close() }
})

test('a root without logs says how each kind begins', { skip }, async () => {
  const empty = tempRoot(), other = await serve(empty.dir)
  const page = await open(browser, other.base, '/', phone)
  try {
    for (const [path, how] of [['/', 'foldlog metrics record'], ['/runs', 'foldlog metrics record'], ['/studies', 'foldlog study create'], ['/datagen', 'foldlog datagen init']]) {
      await page.goto(other.base + path)
      const code = page.locator('main code, main pre').filter({ hasText: how })
      await until(how + ' on ' + path, () => code.isVisible())
      const [y, clipped] = await code.evaluate(el => [el.getBoundingClientRect().bottom, el.closest('.table')?.getBoundingClientRect().bottom ?? innerHeight])
      assert.ok(y <= clipped, `${path} cuts off how to begin`)
    }
  } finally {
    await page.context().close()
    await other.stop()
    empty.remove()
  }
})

test('a finger along an axis chooses trials, beside the axes it scrolls', { skip }, async () => {
  const study = (await ask('studies')).find(s => s.name === 'vision-search')
  const page = await open(browser, server.base, `/studies/${study.id}?tab=params`, phone)
  try {
    const canvas = page.locator('canvas[aria-label^="Parallel coordinates"]'), fingers = await touch(page)
    await until('the chart', () => canvas.isVisible())
    await canvas.evaluate(c => c.scrollIntoView({ block: 'center' }))
    await sleep(300)
    const box = await canvas.boundingBox(), x = box.x + 56, at = () => page.evaluate(() => scrollY), before = await at()
    await fingers(...[300, 250, 200, 150].map(y => [[x, box.y + y]]))
    await until('what was chosen', async () => /\d+ trials? chosen/.test(await text(page)))
    assert.equal(await at(), before, 'the page stays where it is')
    const between = box.x + 56 + (box.width - 112) / 6
    await fingers(...[300, 250, 200, 150, 100].map(y => [[between, box.y + y]]))
    await until('that the page has moved', async () => await at() > before + 50)
    assert.equal(new URL(page.url()).pathname, '/studies/' + study.id)
    assert.deepEqual(page.faults, [])
  } finally { await page.context().close() }
})

test('the page is light', { skip }, async () => {
  const page = await open(browser, server.base, '/')
  try {
    await page.waitForLoadState('load')
    const kB = await page.evaluate(() => performance.getEntriesByType('resource').filter(e => !e.name.includes('/api/')).concat(performance.getEntriesByType('navigation')).reduce((n, e) => n + e.transferSize, 0) / 1000)
    assert.ok(kB > 20 && kB < 300, `${kB} kB are sent`)
  } finally { await page.context().close() }
})
