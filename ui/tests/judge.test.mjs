// What one judges results by: which is best and by how much, lines that can be told
// apart, what is chosen of them in the address, and all of it on paper.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { transformWithOxc } from 'vite'
import { chance, runs, Stream, studies } from './fixtures.mjs'
import { findChromium, foldlog, launch, serve, tempRoot, until, endWriters, visit } from './lib.mjs'

let root, server, browser, studyOf
const skip = findChromium() ? false : 'there is no Chromium on this machine'

before(async () => {
  if (skip) return
  root = tempRoot()
  runs(root.dir, Date.now())
  studies(root.dir)
  const epochs = new Stream('vision-epochs', Date.now() - 60_000)
  for (let step = 1; step <= 20; step++) {
    epochs.metric(step, 'val/loss', 3 - step)
    if (step > 1 && step % 2 === 0 && step < 20) epochs.metric(step, 'epoch', step / 4)
  }
  epochs.done().write(root.dir)
  const rival = (...args) => foldlog(root.dir, ['study', args[0], 'rival.atj', ...args.slice(1)])
  rival('create', '--name', 'rival', '--metric', 'value', '--space', 'space.yaml')
  for (const v of [0.4, 0.3, 0.5, 0.25]) rival('tell', String(JSON.parse(rival('ask', '--json')).number), String(v))
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

const on = (path, use, options) => visit(browser, server.base, path, use, options)

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
  const apart = (a, b) => { const [p, q] = [oklab(a), oklab(b)]; return Math.hypot(p[0] - q[0], 2.2 * (p[1] - q[1]), 2.2 * (p[2] - q[2])) }
  for (const theme of [1, 2]) for (let i = 0; i < 20; i++) for (let k = 0; k < i; k++) {
    const a = hues[i][theme], b = hues[k][theme]
    assert.ok(apart(a, b) > 0.14, `${a} and ${b} are alike: ${apart(a, b).toFixed(3)}`)
  }
})

const panel = (page, name) => page.locator('section.panel', { has: page.getByRole('heading', { name, exact: true }) })

test('the hypervolume of a study is that of the command line, and grows', { skip }, () => on('/studies/' + studyOf('size-and-loss'), async page => {
  const told = foldlog(root.dir, ['study', 'plot', 'pareto', 'search.atj', '--study', 'size-and-loss'])
  const [, wanted] = /hypervolume ([\d.]+) up to/.exec(told)
  const label = await panel(page, 'Hypervolume').locator('canvas').getAttribute('aria-label')
  const shown = Number(/: ([\d.]+)$/.exec(label)[1])
  assert.ok(Math.abs(shown - Number(wanted)) < 1e-3 * shown, `${shown} is not ${wanted}`)
  const canvas = panel(page, 'Hypervolume').locator('canvas')
  await canvas.focus()
  const at = async key => { await page.keyboard.press(key); return Number(/hypervolume ([\d.]+)/.exec(await until('a value', () => panel(page, 'Hypervolume').locator('.sr').last().innerText()))[1]) }
  const first = await at('Home'), last = await until('the last', async () => { const v = await at('End'); return v !== first && v })
  assert.ok(first < last && Math.abs(last - shown) < 1e-3 * shown, `${first} to ${last}`)
}))

test('hypervolumes of two and three objectives are exact', { skip }, async () => {
  const source = readFileSync(resolve(import.meta.dirname, '../src/lib/volume.ts'), 'utf8')
  const { cornerOf, volumeOf, volumes } = await import('data:text/javascript,' + encodeURIComponent((await transformWithOxc(source, 'volume.ts')).code))
  const r = chance(21)
  for (const n of [2, 3]) {
    const points = Array.from({ length: 30 }, () => Array.from({ length: n }, () => Math.floor(r() * 8)))
    const corner = cornerOf(points).map(Math.ceil)
    let cells = 0 // of the grid, which are dominated
    const count = at => {
      if (at.length < n) { for (let v = 0; v < corner[at.length]; v++) count([...at, v]); return }
      if (points.some(p => p.every((v, k) => v <= at[k]))) cells++
    }
    count([])
    assert.equal(volumeOf(points, corner), cells, `${n} objectives`)
    const values = Array.from({ length: n }, (_, k) => Float64Array.from(points, p => k ? -p[k] : p[k]))
    const columns = { numbers: Float64Array.from(points, (_, i) => i), states: 'c'.repeat(30), values }
    const { xs, ys, left } = volumes(columns, [true, ...Array(n - 1).fill(false)])
    assert.equal(left, 0)
    assert.equal(xs[0], 0)
    assert.ok(ys.every((v, i) => i === 0 || v > ys[i - 1]), 'it grows')
    assert.ok(Math.abs(ys.at(-1) - volumeOf(points, cornerOf(points))) < 1e-9)
  }
  const all = Float64Array.from({ length: 20_000 }, (_, i) => i) // none is better than another
  assert.equal(volumes({ numbers: all, states: 'c'.repeat(20_000), values: [all, all.map(v => -v)] }, [true, true]), null)
})

test('the distribution of a study tells the newer half from the older one', { skip }, () => on('/studies/' + studyOf('vision-search'), async page => {
  const p = panel(page, 'Distribution'), canvas = p.locator('canvas')
  await canvas.focus()
  await page.keyboard.press('End')
  await p.locator('.plot-tip').waitFor()
  assert.match(await p.locator('.plot-tip-title').innerText(), /^value 0\.\d+$/)
  assert.match((await p.locator('.plot-tip-row').allInnerTexts()).join(' '), /of the (older|newer) \d+\s+100\b/)
}))

test('curves are drawn along a metric', { skip }, async () => {
  const points = async page => {
    const c = page.locator('section.chart[aria-label="val/loss"] canvas')
    await c.focus()
    await page.keyboard.press('Home')
    return until('a value', async () => { const t = await page.locator('section.chart[aria-label="val/loss"] .sr').last().innerText(); return t && t })
  }
  await on('/runs/vision-epochs', async page => {
    await page.getByLabel('Metric as axis').selectOption('epoch')
    await until('in the address', () => new URL(page.url()).searchParams.get('x') === 'metric:epoch')
    await until('the axis', () => page.locator('section.chart[aria-label="val/loss"]').getByText('3 where epoch is not known').isVisible())
    assert.match(await points(page), /^epoch 0\.5: value 1\b/)
  })
  await on('/compare?run=vision-epochs&run=vision-base-lr0.02&x=metric:epoch', async page => assert.match(await points(page), /^epoch 0\.5: vision-epochs 1\b/))
  await on('/runs/vision-epochs?x=metric:gone', async page => until('nothing to draw', () => page.locator('section.chart[aria-label="val/loss"]').getByText('20 where gone is not known').isVisible()))
})

test('a comparison tells which run is best, which failed and which is not there', { skip }, () => on('/compare?run=vision-base-lr0.004&run=vision-base-lr0.03&run=vision-large&run=text-killed&run=none', async page => {
  const best = name => page.locator(`section.chart[aria-label="${name}"] .best-run`)
  await until('the best of a loss', async () => /^best last value\s*0\.\d+\s*vision-base-lr0\.03$/.test((await best('val/loss').innerText()).trim()))
  await until('the best of an accuracy', async () => (await best('val/accuracy').locator('a').innerText()) === 'vision-base-lr0.03')
  assert.equal(await best('rate/tokens').count(), 0, 'of a rate nothing tells what is better')
  const legend = page.getByRole('group', { name: 'Runs' })
  await until('what is known', async () => /vision-large\s*failed/.test(await legend.innerText()))
  assert.match(await legend.innerText(), /text-killed\s*silent/)
  assert.match(await legend.innerText(), /none\s*not under this root/)
  assert.doesNotMatch(await legend.innerText(), /done/)
}))

test('a trial says how many are better', { skip }, async () => {
  const id = studyOf('vision-search'), study = await (await fetch(`${server.base}/api/v1/studies/${id}`)).json()
  await on(`/studies/${id}/trials/${study.best.number}`, async page => page.getByText(`the best of ${study.states.complete} complete trials`).waitFor())
  await on(`/studies/${id}/trials/0`, async page => {
    await page.getByText(/^\d+ trials$/).click()
    await until('those that are', () => /state=complete&where=value%3C/.test(page.url()))
  })
})

test('studies are compared: how soon each came to what, and how its trials lie', { skip }, () => on('/studies', async page => {
  for (const name of ['rival', 'vision-search', 'size-and-loss']) await page.getByLabel('choose ' + studyOf(name)).check()
  await page.getByRole('button', { name: 'Compare 3' }).click()
  await until('the view', async () => (await page.locator('h1').innerText()) === 'Compare 3 studies')
  const row = async name => (await page.locator('table.plain tr', { has: page.getByRole('link', { name, exact: true }) }).innerText()).replace(/\s+/g, ' ')
  await until('the table', () => page.locator('table.plain').isVisible())
  assert.match(await row('rival'), /^rival 0\.25 trial 3 4 0 \S+$/)
  assert.match(await row('vision-search'), /^vision-search 0\.18\d+ trial \d+ /)
  assert.match(await row('size-and-loss'), /several objectives: not drawn/)
  const best = panel(page, 'Best so far')
  const last = async () => { await best.locator('canvas').focus(); await page.keyboard.press('End'); return until('the end', async () => { const t = await best.locator('.sr').last().innerText(); return t && t }) }
  assert.match(await last(), /^trial 159: .*vision-search 0\.18/)
  await page.getByRole('radio', { name: 'Elapsed' }).click()
  await until('in the address', () => new URL(page.url()).searchParams.get('x') === 'relative')
  await until('by the time', async () => /^\d+ (h|min|s)/.test(await last()))
  await on(page.url().slice(server.base.length) + '&study=none', async stranger => {
    await until('what is not there', () => stranger.getByText('1 study is not under this root').isVisible())
    assert.equal(await stranger.getByRole('radio', { name: 'Elapsed' }).getAttribute('aria-checked'), 'true')
  })
}))
