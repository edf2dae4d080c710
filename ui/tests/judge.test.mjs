// What one judges results by: which is best and by how much, lines that can be told
// apart, what is chosen of them in the address, and all of it on paper.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { runs, studies } from './fixtures.mjs'
import { findChromium, launch, open, serve, tempRoot, until, endWriters } from './lib.mjs'

let root, server, browser, studyOf
const skip = findChromium() ? false : 'there is no Chromium on this machine'

before(async () => {
  if (skip) return
  root = tempRoot()
  runs(root.dir, Date.now())
  studies(root.dir)
  server = await serve(root.dir)
  await server.settled()
  const list = (await (await fetch(server.base + '/api/v1/studies')).json()).items
  studyOf = name => list.find(s => s.name === name).id
  browser = await launch()
})
after(async () => {
  await browser?.close()
  endWriters()
  await server?.stop()
  root?.remove()
})

async function on(path, use, options) {
  const page = await open(browser, server.base, path, options)
  try {
    await use(page)
    assert.deepEqual(page.faults, [], 'faults on ' + path)
  } finally { await page.context().close() }
}

test('what is chosen in parallel coordinates is in the address', { skip }, () => on(`/studies/${studyOf('vision-search')}?tab=params`, async page => {
  const lines = page.locator('section', { has: page.getByRole('heading', { name: 'Parallel coordinates' }) })
  const box = await until('the lines', async () => { const b = await lines.locator('canvas').nth(1).boundingBox(); return b?.width > 300 && b })
  const chosen = () => lines.getByText(/^\d+ trials? chosen$/).last().innerText()
  await page.mouse.move(box.x + 56, box.y + 80)
  await page.mouse.down()
  await page.mouse.move(box.x + 56, box.y + 150)
  await page.mouse.move(box.x + 56, box.y + 250)
  await page.mouse.up()
  const range = await until('a range', () => new URL(page.url()).searchParams.get('in.lr'))
  const [low, high] = range.split('..').map(Number)
  assert.ok(low > 1e-4 && low < high && high < 0.1, range)
  await lines.locator('summary', { hasText: 'Ranges' }).click()
  await lines.locator('.ranges select').selectOption('sgd')
  await until('a choice', () => new URL(page.url()).searchParams.get('in.optimizer') === 'sgd')
  const there = await chosen(), address = page.url().slice(server.base.length)
  assert.match(there, /^[1-9]/)
  await on(address, async stranger => {
    const same = stranger.locator('section', { has: stranger.getByRole('heading', { name: 'Parallel coordinates' }) })
    await until('a stranger sees the same', async () => await same.getByText(/chosen$/).last().innerText() === there)
    await same.getByRole('button', { name: 'Clear' }).click()
    await until('nothing', () => !/in\./.test(stranger.url()))
  })
  await page.mouse.click(box.x + 56, box.y + 200)
  await until('one range less', () => !new URL(page.url()).searchParams.has('in.lr') && new URL(page.url()).searchParams.has('in.optimizer'))
}))

test('a range of the address that means nothing chooses all', { skip }, () => on(`/studies/${studyOf('vision-search')}?tab=params&in.lr=x..y&in.optimizer=none&in.gone=1..2`, async page => {
  await page.getByRole('heading', { name: 'Parallel coordinates' }).waitFor()
  await until('lines', () => page.locator('canvas').first().isVisible())
  assert.equal(await page.getByText(/chosen$/).count(), 0)
}))

test('paper is light, whatever the page is', { skip }, async () => {
  const path = '/studies/' + studyOf('vision-search')
  const history = page => page.locator('section', { has: page.getByRole('heading', { name: 'History' }) }).locator('canvas').first()
  const look = async page => ({ chart: await history(page).evaluate(c => c.toDataURL()), back: await page.evaluate(() => getComputedStyle(document.querySelector('.panel')).backgroundColor) })
  let light, dark
  await on(path, async page => { await history(page).waitFor(); light = await look(page) }, { colorScheme: 'light' })
  await on(path, async page => {
    await history(page).waitFor()
    dark = await look(page)
    assert.notEqual(dark.back, light.back)
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')))
    const printed = await look(page)
    assert.equal(printed.back, light.back)
    assert.ok(printed.chart === light.chart, 'charts are drawn as on a light page')
    await page.evaluate(() => dispatchEvent(new Event('afterprint')))
    assert.deepEqual((await look(page)).back, dark.back)
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), undefined, 'what was chosen is as before')
  }, { colorScheme: 'dark' })
})

test('colours of runs are far from each other', { skip }, () => {
  const source = readFileSync(resolve(import.meta.dirname, '../src/lib/color.ts'), 'utf8')
  const hues = [...source.matchAll(/\['(#\w{6})', '(#\w{6})'\]/g)]
  assert.equal(hues.length, 20)
  const oklab = hex => {
    const [r, g, b] = [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    const [l, m, s] = [[0.41222, 0.53633, 0.05145], [0.2119, 0.6807, 0.10739], [0.0883, 0.28172, 0.62998]].map(([x, y, z]) => Math.cbrt(x * r + y * g + z * b))
    return [0.21045 * l + 0.79362 * m - 0.00407 * s, 1.978 * l - 2.42859 * m + 0.45059 * s, 0.0259 * l + 0.78277 * m - 0.80868 * s]
  }
  const apart = (a, b) => { const [p, q] = [oklab(a), oklab(b)]; return Math.hypot(p[0] - q[0], 1.6 * (p[1] - q[1]), 1.6 * (p[2] - q[2])) }
  for (const theme of [1, 2]) for (let i = 0; i < 20; i++) for (let k = 0; k < i; k++) {
    const a = hues[i][theme], b = hues[k][theme]
    assert.ok(apart(a, b) > 0.12, `${a} and ${b} are alike: ${apart(a, b).toFixed(3)}`)
  }
})
