// What users of such pages reach for: charts that are pointed at together, charts that
// come first, runs that are chosen where they are compared, and addresses that have it all.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { runs, Stream, studies } from './fixtures.mjs'
import { findChromium, launch, open, serve, tempRoot, until, writer, endWriters, visit } from './lib.mjs'

let root, server, browser
const skip = findChromium() ? false : 'there is no Chromium on this machine'

before(async () => {
  if (skip) return
  root = tempRoot()
  runs(root.dir, Date.now())
  studies(root.dir)
  for (let i = 0; i < 60; i++) {
    const s = new Stream(`sweep-${i}`, Date.now() - 60_000, '', { model: i % 2 ? 'small' : 'large', seed: i >> 1 })
    for (let k = 1; k <= 10; k++) s.metric(k, 'loss', (i % 2 ? 5 : 1) + (i % 4 < 2 ? 0.5 : -0.5))
    s.done().write(root.dir)
  }
  server = await serve(root.dir)
  await server.settled()
  browser = await launch()
})
after(async () => {
  await browser?.close()
  endWriters()
  await server?.stop()
  root?.remove()
})

const on = (path, use, options) => visit(browser, server.base, path, use, options)

const chart = (page, name) => page.locator(`section.chart[aria-label="${name}"]`)
const titles = page => page.locator('section.chart h2').allInnerTexts()

test('where one chart is pointed at, the others show their values too', { skip }, () => on('/runs/vision-base-lr0.02', async page => {
  const loss = chart(page, 'val/loss').locator('canvas')
  await loss.hover({ position: { x: 200, y: 100 } })
  const told = chart(page, 'val/loss').locator('.plot-tip'), other = chart(page, 'val/accuracy').locator('.plot-tip')
  await other.waitFor()
  assert.match(await told.innerText(), /step \d+/)
  assert.doesNotMatch(await other.innerText(), /step/)
  assert.match(await other.innerText(), /0\.\d+/)
  const cross = name => chart(page, name).locator('.plot-cross').evaluate(e => e.getBoundingClientRect().left - e.parentElement.getBoundingClientRect().left)
  assert.ok(Math.abs(await cross('val/loss') - await cross('val/accuracy')) < 12)
  await page.mouse.move(5, 5)
  await until('nothing is pointed at', async () => await page.locator('.plot-tip').count() === 0)
  await loss.focus()
  await page.keyboard.press('ArrowRight')
  await other.waitFor()
}))

test('a value that is read off stays while the curve grows', { skip }, async () => {
  const log = writer(root.dir, 'growing')
  for (let i = 1; i <= 20; i++) log.line(`step=${i} loss=${1 / i}`)
  await until('the run', async () => (await fetch(server.base + '/api/v1/runs/growing')).ok)
  await on('/runs/growing', async page => {
    const canvas = page.locator('main canvas').first()
    await canvas.hover({ position: { x: 300, y: 100 } })
    await page.locator('.plot-tip').waitFor()
    log.line('step=21 loss=0.01')
    await until('the new point', async () => /21 points/.test(await page.locator('section.chart footer').innerText()))
    assert.equal(await page.locator('.plot-tip').count(), 1)
  })
  await log.end()
})

test('charts that are put first stay so, by the address and for the next run', { skip }, () => on('/runs/vision-base-lr0.02', async page => {
  await until('charts', async () => (await titles(page)).length === 4)
  await page.getByRole('button', { name: 'rate/tokens first' }).click()
  await until('it is first', async () => (await titles(page))[0] === 'rate/tokens')
  assert.equal((await titles(page)).filter(t => t === 'rate/tokens').length, 1)
  const address = page.url()
  assert.match(address, /pin=rate%2Ftokens/)
  await on(address.slice(server.base.length), async stranger => until('a stranger sees it', async () => (await titles(stranger))[0] === 'rate/tokens'))
  await page.goto(server.base + '/compare?run=vision-base-lr0.02&run=vision-large')
  await until('first among others', async () => (await titles(page))[0] === 'rate/tokens')
  await page.getByRole('button', { name: 'rate/tokens first' }).click()
  await until('as before', async () => (await titles(page))[0] === 'val/accuracy')
  await page.reload()
  await until('still', async () => (await titles(page))[0] === 'val/accuracy')
}))

test('runs are chosen where they are compared', { skip }, () => on('/runs/vision-large', async page => {
  await page.getByRole('link', { name: 'compare' }).click()
  await until('one', async () => (await page.locator('h1').innerText()) === 'Compare 1 run')
  await page.locator('summary', { hasText: 'Choose runs' }).click()
  await page.getByLabel('Find runs').fill('base-lr0.0[23]$')
  const box = name => page.locator('.menu-body label', { hasText: name }).locator('input')
  await box('vision-base-lr0.03').check()
  await box('vision-base-lr0.02').check()
  await until('three', async () => (await page.locator('h1').innerText()) === 'Compare 3 runs')
  assert.deepEqual(new URL(page.url()).searchParams.getAll('run'), ['vision-large', 'vision-base-lr0.03', 'vision-base-lr0.02'])
  await box('vision-base-lr0.03').uncheck()
  await until('two', async () => (await page.locator('h1').innerText()) === 'Compare 2 runs')
}))

test('groups of many runs are a mean and a band', { skip }, () => on('/compare?group=model&' + Array.from({ length: 60 }, (_, i) => 'run=sweep-' + i).join('&'), async page => {
  const loss = chart(page, 'loss')
  await until('bands', async () => (await loss.innerText()).includes('bands: one standard deviation'))
  await loss.locator('canvas').focus()
  await page.keyboard.press('End')
  await loss.locator('.plot-tip').waitFor()
  const rows = await loss.locator('.plot-tip-row').allInnerTexts()
  assert.deepEqual(rows.map(r => r.replace(/\s+/g, ' ')).sort(), ['model large, mean of 30 1', 'model small, mean of 30 5'])
  // A deviation of 0.5 is a tenth of what is between 0.5 and 5.5, on both sides of each mean.
  const shares = await loss.locator('canvas').evaluate(c => {
    const d = c.getContext('2d').getImageData(Math.round(c.width * 0.7), 0, 1, c.height).data
    let n = 0
    for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 20 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 20) n++
    return n / c.height
  })
  assert.ok(shares > 0.25 && shares < 0.45, `${shares} of the height is painted`)
}))

test('a list of runs shows what says most of them, until its columns are chosen', { skip }, () => on('/runs?q=vision-base', async page => {
  const heads = async () => (await page.getByRole('columnheader').allInnerTexts()).map(t => t.replace(/[↑↓]/, ''))
  await until('its metrics', async () => (await heads()).slice(1, 6).join() === 'Name,Status,val/accuracy,val/loss,Step')
  await page.locator('.tr', { hasText: 'vision-base-lr0.03' }).getByText(/^0\.\d+$/).first().waitFor()
  await page.locator('summary', { hasText: 'Columns' }).click()
  for (const name of ['val/accuracy', 'val/loss']) await page.locator('.menu-body label', { hasText: name }).locator('input').uncheck()
  await until('none', async () => (await heads()).slice(1, 4).join() === 'Name,Status,Step')
  await page.reload()
  await page.locator('.tr a').first().waitFor()
  assert.equal((await heads()).slice(1, 4).join(), 'Name,Status,Step')
}))

test('a table is one stop of the tab key', { skip }, () => on('/runs', async page => {
  await page.locator('.tr a').first().waitFor()
  await page.getByRole('button', { name: 'Last event' }).focus()
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement.closest('[role=grid]')), null)
  await page.getByRole('grid').focus()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await until('the run', () => new URL(page.url()).pathname.startsWith('/runs/'))
}))

test('a list stands as it was left when one comes back to it', { skip }, () => on('/runs?sort=slug', async page => {
  const table = page.getByRole('grid')
  const first = page.locator('.tr', { hasText: 'sweep-0' }).first()
  await first.locator('input').check()
  await table.evaluate(e => { e.scrollTop = 1000 })
  const there = page.locator('.tr a', { hasText: /^sweep-42$/ })
  await there.click()
  await until('the run', async () => (await page.locator('h1').innerText()) === 'sweep-42')
  await page.goBack()
  await until('where it was', async () => await table.evaluate(e => e.scrollTop) === 1000)
  await there.waitFor()
  assert.ok(await page.getByRole('button', { name: 'Compare 1' }).isVisible())
  await page.getByRole('button', { name: 'Choose none' }).click()
  await page.getByRole('button', { name: 'Compare first 10' }).waitFor()
  await page.getByRole('link', { name: 'Overview', exact: true }).click()
  await page.getByRole('link', { name: 'Runs', exact: true }).click()
  await page.locator('.tr a').first().waitFor()
  assert.equal(await table.evaluate(e => e.scrollTop), 0)
}))

test('menus are on the screen of a phone', { skip }, async () => {
  const id = (await (await fetch(server.base + '/api/v1/studies')).json()).items[0].id
  for (const [path, name] of [['/runs', 'Columns'], ['/compare?run=vision-large', 'Choose runs'], [`/studies/${id}?tab=trials`, 'Columns']]) {
    const page = await open(browser, server.base, path, { viewport: { width: 390, height: 780 } })
    await page.locator('.menu summary', { hasText: name }).click()
    await page.locator('.menu-body label').first().waitFor()
    const { left, right } = await page.locator('.menu-body').evaluate(e => { const r = e.getBoundingClientRect(); return { left: r.left, right: r.right } })
    assert.ok(left >= 0 && right <= 390, `${path}: from ${left} to ${right}`)
    const below = await page.evaluate(() => document.querySelector('.menu-body').getBoundingClientRect().top - document.querySelector('.menu summary').getBoundingClientRect().bottom)
    assert.ok(below >= 0 && below < 20, `${path}: ${below} below its button`)
    await page.context().close()
  }
})

test('studies are sorted and found, and the address says how', { skip }, () => on('/studies', async page => {
  const names = async () => (await page.locator('.tr:not(.th) a').allInnerTexts()).join()
  await until('both', async () => (await names()).length > 20)
  await page.getByRole('columnheader', { name: 'Trials' }).getByRole('button').click()
  await until('most trials first', async () => await names() === 'vision-search,size-and-loss')
  await page.getByRole('columnheader', { name: 'Trials' }).getByRole('button').click()
  await until('fewest trials first', async () => await names() === 'size-and-loss,vision-search')
  await page.getByRole('columnheader', { name: 'Best' }).getByRole('button').click()
  await until('what has none last', async () => await names() === 'vision-search,size-and-loss')
  await page.getByLabel('Filter by name').fill('^size|none')
  await until('one', async () => await names() === 'size-and-loss')
  await page.reload()
  await until('the same', async () => await names() === 'size-and-loss')
  assert.equal(new URL(page.url()).searchParams.get('q'), '^size|none')
}))

test('what a study shows is in its address', { skip }, async () => {
  const list = (await (await fetch(server.base + '/api/v1/studies')).json()).items
  const id = list.find(s => s.name === 'vision-search').id
  await on('/studies/' + id, async page => {
    await page.getByLabel('Log y').check()
    await page.getByLabel('Outliers').check()
    await until('in the address', () => /log=1&outliers=1/.test(page.url()))
    await page.goto(server.base + `/studies/${id}?tab=curves&most=30&log=1`)
    await until('thirty', async () => await page.getByRole('radio', { name: '30' }).getAttribute('aria-checked') === 'true')
    assert.ok(await page.getByLabel('Log y').isChecked())
  })
})
