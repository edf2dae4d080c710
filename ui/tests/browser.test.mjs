// The dashboard in a real browser, on a real server, on logs that real writers write.
import assert from 'node:assert/strict'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { all, datagenItem, hostile, liveStudy } from './fixtures.mjs'
import { endWriters, findChromium, launch, open, serve, sleep, tempRoot, until, writer, visit } from './lib.mjs'

let root, server, browser, study
const skip = findChromium() ? false : 'there is no Chromium on this machine'

before(async () => {
  if (skip) return
  root = tempRoot()
  all(root.dir)
  study = liveStudy(root.dir)
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

const studies = async () => (await (await fetch(server.base + '/api/v1/studies')).json()).items
const idOf = async name => (await studies()).find(s => s.name === name).id
const text = page => page.locator('main').innerText()
const sees = (page, what) => until(`${what} on the page`, async () => (await text(page)).includes(what))

/** How many pixels of a canvas are painted, so that an empty chart does not count. */
const painted = (page, selector = 'main canvas') => until('something drawn', () => page.evaluate(s => {
  let n = 0
  for (const c of document.querySelectorAll(s)) {
    if (!c.width || !c.height) continue
    const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data
    const colours = new Set()
    for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 40) { n++; colours.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]) }
  }
  return n
}, selector))

test('the overview tells what is best, what failed and why, and what is silent', { skip }, () => on('/', async page => {
  await sees(page, 'CUDA out of memory: tried to allocate 3.1 GiB')
  await sees(page, 'stopped by SIGTERM at step 150')
  await sees(page, 'vision-search')
  const best = page.locator('section', { hasText: 'Best so far' }).first()
  const want = (await studies()).find(s => s.name === 'vision-search').best
  assert.match(await best.innerText(), new RegExp(`by trial ${want.number} of 160`))
}))

test('a run shows its curves, stages, marks and what is not finite', { skip }, async () => {
  await on('/runs/vision-resumed', async page => {
    await sees(page, 'older copies are pale')
    await sees(page, '2 processes')
    await painted(page)
  })
  await on('/runs/vision-large', async page => {
    await sees(page, 'train/loss is not finite for 2 steps')
    await sees(page, '2 not finite')
  })
  await on('/runs/vision-resumed?tab=notes', page => sees(page, 'resumed from ckpt/step-00000200'))
  await on('/runs/vision-resumed?tab=details', async page => {
    await sees(page, 'knobs/lr')
    await sees(page, 'model/net.py')
  })
})

test('a curve shows values under the pointer and the arrow keys, and zooms', { skip }, () => on('/runs/vision-base-lr0.02', async page => {
  const chart = page.locator('section[aria-label="train/loss"]')
  const canvas = chart.locator('canvas')
  await until('the chart', async () => /300 points/.test(await chart.innerText().catch(() => '')))
  await canvas.focus()
  await page.keyboard.press('ArrowRight')
  await until('a tip', async () => /step 1\b/.test(await chart.innerText()))
  assert.match(await chart.locator('[aria-live]').first().innerText(), /^step 1: /)
  const box = await canvas.boundingBox()
  await page.mouse.move(box.x + box.width * 0.4, box.y + 80)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.6, box.y + 90, { steps: 4 })
  await page.mouse.up()
  await until('the range in the address', () => new URL(page.url()).searchParams.has('from'))
  const q = new URL(page.url()).searchParams
  assert.ok(Number(q.get('from')) > 60 && Number(q.get('to')) < 240, page.url())
  await until('fewer points', async () => { const n = Number(/(\d+) points/.exec(await chart.innerText())?.[1]); return n > 30 && n < 150 })
  await page.getByRole('button', { name: 'Reset zoom' }).click()
  await until('all points', async () => /300 points/.test(await chart.innerText()))
}))

test('runs are filtered, sorted, given columns, and compared', { skip }, () => on('/runs', async page => {
  await sees(page, 'vision-base-lr0.004')
  await page.getByLabel('Filter by name').fill('vision-base')
  await sees(page, '5 runs')
  await page.getByLabel('Conditions').fill('knobs/lr>0.01')
  await sees(page, '3 runs')
  await page.locator('summary', { hasText: 'Columns' }).click()
  await page.getByLabel('Find a metric or key').fill('val/loss')
  await page.locator('.menu-body label', { hasText: 'val/loss' }).locator('input').check()
  await page.keyboard.press('Escape')
  await page.getByRole('columnheader', { name: 'val/loss' }).getByRole('button').click()
  await until('an order', async () => new URL(page.url()).searchParams.get('sort') === '+metric:val/loss')
  const first = () => page.locator('.tr:not(.th)').first().innerText()
  await until('the best first', async () => (await first()).startsWith('vision-base-lr0.03'))
  for (const slug of ['vision-base-lr0.012', 'vision-base-lr0.03']) await page.getByLabel(`choose ${slug}`).check()
  await page.getByRole('button', { name: 'Compare 2' }).click()
  await sees(page, 'Compare 2 runs')
  await painted(page)
  await page.getByRole('tab', { name: 'Metadata' }).click()
  await sees(page, 'knobs/lr')
  assert.doesNotMatch(await text(page), /knobs\/batch/, 'what runs share is left out')
  await page.getByRole('tab', { name: 'Table' }).click()
  await sees(page, '0.012')
}))

test('a deep link shows the same to whoever opens it', { skip }, async () => {
  const link = '/compare?run=vision-base-lr0.004&run=vision-base-lr0.03&smooth=0.6&log=1&from=50&to=150&m=val'
  await on(link, async page => {
    const charts = page.locator('section.chart h2')
    await charts.filter({ hasText: 'val/loss' }).waitFor()
    assert.equal(await page.getByLabel('Log y').isChecked(), true)
    assert.equal(await page.getByLabel('Smooth').inputValue(), '0.6')
    assert.deepEqual(await charts.allInnerTexts(), ['val/accuracy', 'val/loss'])
    assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, link)
  })
  await on('/runs?status=failed&sort=slug', async page => {
    await sees(page, '3 runs')
    assert.equal(await page.getByRole('radio', { name: 'Failed' }).getAttribute('aria-checked'), 'true')
  })
})

test('a study shows its history, parameters, curves, timeline, trials and front', { skip }, async () => {
  const id = await idOf('vision-search')
  const best = (await studies()).find(s => s.id === id).best
  await on('/studies/' + id, async page => {
    await sees(page, `best value, trial ${best.number}`)
    await sees(page, 'What matters')
    await painted(page)
    for (const [tab, what] of [['Parameters', 'Parallel coordinates'], ['Curves', 'Intermediate values'], ['Timeline', 'each row a worker'], ['Outbox', 'Everything has been delivered']]) {
      await page.getByRole('tab', { name: tab }).click()
      await sees(page, what)
      if (tab !== 'Outbox') await painted(page)
    }
    await page.getByRole('tab', { name: 'Trials' }).click()
    await sees(page, '160 of 160')
    await page.getByLabel('Go to trial number').fill('150')
    await page.keyboard.press('Enter')
    await until('row 150', () => page.locator('.tr', { hasText: /^150/ }).isVisible())
    await page.getByRole('radio', { name: 'Failed' }).click()
    await sees(page, 'of 160')
    await until('only failed ones', async () => { const rows = await page.locator('.tr:not(.th)').allInnerTexts(); return rows.length > 0 && rows.every(r => /failed/.test(r)) })
  })
  await on(`/studies/${id}/trials/${best.number}`, async page => {
    await sees(page, 'Trial ' + best.number)
    await sees(page, 'optimizer')
  })
  await on('/studies/' + await idOf('size-and-loss'), async page => {
    await sees(page, 'Pareto front')
    await sees(page, 'that no other is better than')
    await painted(page)
  })
})

test('an experiment shows its funnel, failures, items, and how an item came about', { skip }, async () => {
  const experiment = await until('the experiment', async () => (await (await fetch(server.base + '/api/v1/datagen')).json()).items.find(e => e.items === 3))
  await on('/datagen', page => sees(page, 'texts / v1'))
  await on('/datagen/' + experiment.id, async page => {
    await sees(page, 'TimeoutError')
    await sees(page, 'rewrite')
    await page.getByRole('tab', { name: 'Items' }).click()
    await sees(page, '3 items')
    await page.getByRole('radio', { name: 'Filtered' }).click()
    await sees(page, '1 item')
    await sees(page, 'doc-0003')
    await page.getByRole('radio', { name: 'All' }).click()
    datagenItem(root.dir, 'doc-0004')
    await sees(page, 'doc-0004')
    await page.getByRole('tab', { name: 'Failures' }).click()
    await page.locator('summary').first().click()
    await sees(page, '<b>rewrite</b> took too long')
    await page.getByRole('tab', { name: 'Writers' }).click()
    await sees(page, 'Not merged yet')
  })
  await on(`/datagen/${experiment.id}/items/doc-0001`, async page => {
    await sees(page, 'a better draft')
    await sees(page, 'lang=en')
    await until('the old value', async () => (await page.locator('s').allInnerTexts()).includes('a first draft'))
    await until('the picture', () => page.locator('.blob img').first().evaluate(img => img.naturalWidth === 1))
    assert.match(await page.locator('.blob').first().innerText(), /\d+ B sha256:[0-9a-f]{8}…/)
    await sees(page, 'attempt 0 · seq ')
  })
  await on(`/datagen/${experiment.id}/items/doc-0002`, async page => {
    await sees(page, '<img src=x')
    assert.equal(await page.locator('main img').count(), 0)
  })
})

test('what a writer writes appears on open pages within a second', { skip }, async () => {
  const w = writer(root.dir, 'live-run')
  await on('/', async overview => {
    w.line('step=1 loss=0.91')
    await until('the run on the overview', async () => (await text(overview)).includes('live-run'))
    await on('/runs/live-run', async page => {
      const chart = page.locator('section[aria-label="loss"]')
      await until('its first point', async () => /1 point\b/.test(await chart.innerText().catch(() => '')))
      const slowest = []
      for (let step = 2; step <= 6; step++) {
        const began = Date.now()
        w.line(`step=${step} loss=${(0.9 / step).toFixed(4)}`)
        await until(`point ${step}`, async () => new RegExp(`\\b${step} points`).test(await chart.innerText()))
        slowest.push(Date.now() - began)
      }
      console.log(`# a point was on the page after ${slowest.map(n => n + ' ms').join(', ')}`)
      assert.match(await chart.innerText(), /0\.15/)
      await w.end()
      await until('the end', async () => /done/.test(await page.locator('.title').innerText()))
    })
  })
})

test('a study that is worked on moves on open pages', { skip }, async () => {
  const id = await idOf('live').catch(() => null) ?? await until('the study', async () => (await studies()).find(s => s.name === 'live')?.id)
  await on('/studies/' + id, async page => {
    await sees(page, 'No trials yet')
    const a = study.ask()
    study.report(a.number, 1, 0.8)
    study.tell(a.number, 0.625)
    await sees(page, '0.625')
    const b = study.ask()
    study.fail(b.number, 'no <b>memory</b>')
    await page.getByRole('tab', { name: 'Trials' }).click()
    await sees(page, 'no <b>memory</b>')
  })
})

test('names and texts of logs are text and nothing else', { skip }, async () => {
  const slug = encodeURIComponent(hostile)
  for (const path of ['/', '/runs', '/runs/' + slug, `/runs/${slug}?tab=details`, `/runs/${slug}?tab=notes`, `/compare?run=${slug}&run=vision-large&tab=diff`]) {
    await on(path, async page => {
      page.on('dialog', d => { page.faults.push('dialog ' + d.message()); d.dismiss() })
      await sees(page, path.includes('tab=notes') ? 'javascript:alert(3)' : '<img src=x')
      assert.equal(await page.locator('main img, main script, main u, main b b, a[href^="javascript"]').count(), 0, path)
    })
  }
})

test('a server that restarts is found again, and nothing is missed', { skip }, async () => {
  const w = writer(root.dir, 'restart-run')
  w.line('step=1 loss=3')
  await until('the run', async () => (await fetch(server.base + '/api/v1/runs/restart-run')).ok)
  await on('/runs/restart-run', async page => {
    const chart = page.locator('section[aria-label="loss"]')
    await until('its first point', async () => /1 point\b/.test(await chart.innerText().catch(() => '')))
    await server.stop('SIGKILL')
    await until('that it is told', async () => /Reconnecting/.test(await page.locator('.linked').innerText()))
    await until('what that means', async () => /does not answer/.test(await page.locator('.gone').innerText()))
    w.line('step=2 loss=2')
    w.line('step=3 loss=1')
    await sleep(300)
    assert.match(await text(page), /restart-run/, 'what was there stays')
    await server.start()
    await until('all three points', async () => /3 points/.test(await chart.innerText()))
    w.line('step=4 loss=0.5')
    await until('a fourth one', async () => /4 points/.test(await chart.innerText()))
    await until('that it is live', async () => /Live/.test(await page.locator('.linked').innerText()))
    await until('that nothing is gone', async () => await page.locator('.gone').innerText() === '')
  })
  await w.end()
})

test('a file that is rewritten is read anew', { skip }, async () => {
  const file = join(root.dir, 'torn-run.jsonl')
  appendFileSync(file, '{"ts_ms":1790189597000,"kind":"open","slug":"torn-run","description":"","metadata":{}}\n{"ts_ms":1790189597015,"step":1,"kind":"metric","name":"loss","value":1,"metadata":{}}\n{"ts_ms":17901895970')
  await until('the run', async () => (await fetch(server.base + '/api/v1/runs/torn-run')).ok)
  await on('/runs/torn-run', async page => {
    const chart = page.locator('section[aria-label="loss"]')
    await until('one point', async () => /1 point\b/.test(await chart.innerText().catch(() => '')))
    appendFileSync(file, '16,"step":2,"kind":"metric","name":"loss","value":0.5,"metadata":{}}\n')
    await until('two points', async () => /2 points/.test(await chart.innerText()))
  })
})

test('everything can be reached by the keyboard', { skip }, () => on('/runs', async page => {
  await sees(page, 'vision-huge')
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to content')
  await page.getByLabel('Filter by name').focus()
  await page.keyboard.type('vision-base')
  await sees(page, '5 runs')
  await page.locator('.table').focus()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press(' ')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press(' ')
  await until('two to compare', () => page.getByRole('button', { name: 'Compare 2' }).isEnabled())
  const slug = (await page.locator('.tr.active a').innerText())
  await page.keyboard.press('Enter')
  await until('the run', () => page.url().endsWith('/runs/' + slug))
  await page.getByRole('tab', { name: 'Charts' }).focus()
  await page.keyboard.press('ArrowRight')
  await until('its details', () => page.url().includes('tab=details'))
  await until('the focus on it', async () => await page.evaluate(() => document.activeElement.getAttribute('aria-selected')) === 'true')
}))

test('a run has one colour, on its page, in lists and among others', { skip }, async () => {
  const slugs = ['vision-base-lr0.004', 'vision-base-lr0.012', 'vision-resumed']
  const own = new Map()
  for (const slug of slugs) await on('/runs/' + slug, async page => {
    await until('its colour', () => page.locator('.title .swatch').isVisible())
    own.set(slug, await page.locator('.title .swatch').evaluate(e => getComputedStyle(e).backgroundColor))
  })
  assert.equal(new Set(own.values()).size, 3, 'they differ')
  await on('/compare?' + slugs.map(r => 'run=' + r).join('&'), async page => {
    const line = slug => page.getByRole('button', { name: 'Show ' + slug, exact: true }).locator('path').evaluate(e => getComputedStyle(e).stroke)
    for (const slug of slugs) assert.equal(await line(slug), own.get(slug), slug)
    await page.getByRole('tab', { name: 'Table' }).click()
    await until('the table', () => page.locator('.tr', { hasText: slugs[0] }).isVisible())
    for (const slug of slugs) assert.equal(await page.locator('.tr', { has: page.getByRole('link', { name: slug, exact: true }) }).locator('.swatch').evaluate(e => getComputedStyle(e).backgroundColor), own.get(slug), slug)
  })
  await on('/compare?' + Array.from({ length: 4 }, (_, i) => `run=none-${20 * i}`).join('&'), async page => {
    const strokes = await until('four lines', async () => { const l = await page.locator('.legend path').evaluateAll(list => list.map(e => e.getAttribute('stroke') + e.getAttribute('stroke-dasharray'))); return l.length === 4 && l })
    assert.equal(new Set(strokes).size, 4, 'those of one colour are dashed differently')
  })
})

test('runs are grouped by what they differ in, and the best of a table stands out', { skip }, async () => {
  const link = '/compare?' + [0.004, 0.008, 0.012].map(lr => 'run=vision-base-lr' + lr).join('&') + '&run=vision-resumed'
  await on(link, async page => {
    await page.getByLabel('Group by').selectOption('knobs/lr')
    await until('the groups', async () => /knobs\/lr 0\.012\s*2 runs/.test(await page.locator('.legend').first().innerText()))
    assert.equal(new URL(page.url()).searchParams.get('group'), 'knobs/lr')
    await painted(page)
    const canvas = page.locator('section[aria-label="val/loss"] canvas')
    await canvas.focus()
    await page.keyboard.press('End')
    await until('the mean', async () => /knobs\/lr 0\.012, mean of 2/.test(await page.locator('section[aria-label="val/loss"]').innerText()))
  })
  await on(link + '&tab=table&col=metric:val/loss', async page => {
    await until('the best', () => page.locator('.best').first().isVisible())
    const best = Number(await page.locator('.best').first().innerText())
    for (const text of await page.locator('.tr:not(.th) span[role=gridcell]:nth-child(3)').allInnerTexts()) assert.ok(best <= Number(text), `${best} is the best, and there is ${text}`)
  })
  await on('/runs?q=vision-base', async page => {
    await page.getByRole('button', { name: 'Compare first 5' }).click()
    await sees(page, 'Compare 5 runs')
  })
})

test('charts are taken along as pictures and as values', { skip }, () => on('/runs/vision-base-lr0.02', async page => {
  const chart = page.locator('section[aria-label="val/loss"]')
  await until('the chart', async () => /60 points/.test(await chart.innerText().catch(() => '')))
  const take = async what => {
    await chart.locator('canvas').hover()
    await chart.locator('.save summary').click()
    const [file] = await Promise.all([page.waitForEvent('download'), chart.getByRole('button', { name: what }).click()])
    return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) }
  }
  const picture = await take('Picture (PNG)'), values = await take('Values (CSV)')
  assert.match(picture.name, /^val-loss.*\.png$/)
  assert.equal(picture.bytes.subarray(1, 4).toString(), 'PNG')
  const lines = values.bytes.toString().trim().split('\r\n')
  assert.equal(lines[0], 'line,step,value')
  assert.equal(lines.length, 61)
  assert.match(lines[60], /^split=val,300,0\.\d+$/)
}))

test('keys are told of, and work everywhere', { skip }, () => on('/', async page => {
  await sees(page, 'vision-search')
  await page.keyboard.press('?')
  const dialog = page.getByRole('dialog', { name: 'Keys' })
  await until('the help', () => dialog.isVisible())
  await page.keyboard.press('Escape')
  await until('that it is gone', async () => !await dialog.isVisible())
  await page.keyboard.press('g')
  await page.keyboard.press('r')
  await until('the runs', () => page.url().endsWith('/runs'))
  await until('their filter', () => page.getByLabel('Filter by name').isVisible())
  await page.keyboard.press('/')
  await until('the focus on the filter', async () => await page.evaluate(() => document.activeElement.getAttribute('aria-label')) === 'Filter by name, description or tag')
  await page.keyboard.type('g?vision')
  assert.equal(await page.getByLabel('Filter by name').inputValue(), 'g?vision')
  assert.equal(await dialog.isVisible(), false)
  await page.getByLabel('Filter by name').fill('vision-base')
  await sees(page, '5 runs')
  await page.getByRole('columnheader', { name: 'Step' }).getByRole('button').focus()
  await page.keyboard.press('Enter')
  await until('an order', () => new URL(page.url()).searchParams.get('sort') === '-step')
  assert.equal(await page.getByRole('columnheader', { name: 'Step' }).getAttribute('aria-sort'), 'descending')
  await page.getByRole('radio', { name: 'All' }).focus()
  await page.keyboard.press('ArrowRight')
  await until('the running ones', () => new URL(page.url()).searchParams.get('status') === 'running')
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Running')
}))

test('a list of a million items goes to any place', { skip }, async () => {
  const experiment = await until('the experiment', async () => (await (await fetch(server.base + '/api/v1/datagen')).json()).items[0])
  const total = 1_000_000, asked = []
  const page = await open(browser, server.base, '/nowhere')
  // The server's own lists of this length are measured by bench-ui.
  await page.route(/\/items\?/, route => {
    const q = new URL(route.request().url()).searchParams, offset = Number(q.get('offset') ?? 0), reverse = q.get('reverse') === 'true'
    asked.push(offset)
    const items = Array.from({ length: Math.min(Number(q.get('limit')), total - offset) }, (_, i) => {
      const n = reverse ? total - 1 - offset - i : offset + i
      return { item: 'item-' + n, root: 'item-' + n, parent: '', status: 'completed', step: '', attempt: 0, events: 1, failures: 0, error_type: '', tags: {}, created_ms: 1, updated_ms: 1, suspect: false }
    })
    return route.fulfill({ json: { seq: '1', items, next: '', total } })
  })
  const shows = n => until(`item ${n} in sight`, () => page.evaluate(n => {
    const box = document.querySelector('.table').getBoundingClientRect(), row = [...document.querySelectorAll('.tr:not(.th)')].find(r => r.querySelector('a')?.innerText === 'item-' + n)?.getBoundingClientRect()
    return !!row && row.top >= box.top && row.bottom <= box.bottom
  }, n))
  try {
    await page.goto(server.base + `/datagen/${experiment.id}?tab=items&at=500001`)
    await shows(500000)
    await page.getByLabel('Go to row').fill('750000')
    await page.keyboard.press('Enter')
    await shows(749999)
    assert.equal(new URL(page.url()).searchParams.get('at'), '750000')
    const table = page.locator('.table')
    await table.focus()
    await page.keyboard.press('End')
    await shows(999999)
    await page.keyboard.press('Home')
    await shows(0)
    await table.hover()
    for (let i = 1; i <= 3; i++) {
      await page.mouse.wheel(0, 340)
      await shows(10 * i + 2)
    }
    await table.evaluate(t => { t.scrollTop = (t.scrollHeight - t.clientHeight) / 4 })
    await until('a quarter', () => page.evaluate(() => [...document.querySelectorAll('.tr:not(.th) a')].some(a => Math.abs(Number(a.innerText.slice(5)) - 250000) < 100)))
    await page.getByRole('columnheader', { name: 'Item' }).getByRole('button').click()
    await shows(0)
    await page.getByRole('columnheader', { name: 'Item' }).getByRole('button').click()
    await shows(999999)
    assert.ok(asked.length < 40, `${asked.length} pages were asked for`)
    assert.deepEqual(page.faults, [])
  } finally { await page.context().close() }
})

test('a phone shows every view without scrolling sideways', { skip }, async () => {
  const id = await idOf('vision-search')
  for (const path of ['/', '/runs', '/runs/vision-resumed', '/runs/vision-resumed?tab=details', '/compare?run=vision-large&run=vision-huge', '/studies', '/studies/' + id, `/studies/${id}?tab=params`, `/studies/${id}?tab=trials`, `/studies/${id}/trials/3`, '/datagen']) {
    await on(path, async page => {
      await until('the page', () => page.locator('main h1').first().isVisible())
      await sleep(300)
      const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
      assert.ok(wide <= screen, `${path} is ${wide} wide on a screen of ${screen}`)
    }, { viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true })
  }
})

test('dark and light follow the system and the switch', { skip }, async () => {
  const back = page => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  let dark
  await on('/', async page => { dark = await back(page) }, { colorScheme: 'dark' })
  await on('/runs/vision-resumed', async page => {
    const light = await back(page)
    assert.notEqual(light, dark)
    await page.getByRole('button', { name: 'Switch to dark' }).click()
    await until('the dark', async () => await back(page) === dark)
    await page.reload()
    assert.equal(await back(page), dark, 'the choice is kept')
    await page.getByRole('button', { name: 'Switch to light' }).click()
    await until('the light', async () => await back(page) === light)
  })
})

test('what is not there is said, and nothing jumps while it loads', { skip }, async () => {
  await on('/runs/no-such-run', page => sees(page, 'There is no run “no-such-run”'))
  await on('/studies/0123456789abcdef', page => sees(page, 'There is no such study'))
  await on('/nowhere', page => sees(page, 'There is no such page'))
  await on('/runs?q=nothing-of-this-name', page => sees(page, 'No run matches'))
  const page = await open(browser, server.base, '/nowhere')
  await page.evaluate(() => {
    window.shift = 0
    new PerformanceObserver(l => { for (const e of l.getEntries()) if (!e.hadRecentInput) window.shift += e.value }).observe({ type: 'layout-shift', buffered: true })
  })
  for (const path of ['/', '/runs', '/runs/vision-resumed', '/studies/' + await idOf('vision-search')]) {
    const other = await open(browser, server.base, path)
    await sleep(700)
    const shift = await other.evaluate(() => new Promise(done => {
      let sum = 0
      new PerformanceObserver(l => { for (const e of l.getEntries()) sum += e.value; done(sum) }).observe({ type: 'layout-shift', buffered: true })
      setTimeout(() => done(sum), 200)
    }))
    assert.ok(shift < 0.1, `${path} moved by ${shift}`)
    await other.context().close()
  }
  await page.context().close()
})

test('a page keeps its memory however much comes', { skip }, async () => {
  const w = writer(root.dir, 'busy-run')
  w.line('step=0 a=1 b=2 c=3 d=4')
  await until('the run', async () => (await fetch(server.base + '/api/v1/runs/busy-run')).ok)
  await on('/runs/busy-run', async page => {
    const heap = async () => { await page.evaluate(() => globalThis.gc?.()); return page.evaluate(() => performance.memory.usedJSHeapSize) }
    const chart = page.locator('section[aria-label="a"]')
    let step = 0
    const burst = async lines => {
      for (let i = 0; i < lines; i++) { step++; w.line(`step=${step} a=${Math.sin(step / 50)} b=${step % 7} c=${1 / step} d=${step}`) }
      await until(`step ${step}`, async () => { const m = /(?:of )?([\d\u2009]+) points?/.exec(await chart.innerText()); return m && Number(m[1].replace(/\u2009/g, '')) > step - 1 })
    }
    for (let i = 0; i < 5; i++) await burst(1000)
    await sleep(1500)
    const before = await heap()
    for (let i = 0; i < 20; i++) await burst(1000)
    let grown
    try {
      await until('no more memory than at first', async () => {
        await sleep(1500) // in which what is drawn and sent is done
        return (grown = (await heap()) - before) < 8e6
      })
    } finally { console.log(`# 80000 points later the page holds ${(grown / 1e6).toFixed(1)} MB more than ${(before / 1e6).toFixed(1)} MB`) }
  })
  await w.end()
})

test('a server with tokens asks for one', { skip }, async () => {
  const own = tempRoot()
  const { runs } = await import('./fixtures.mjs')
  const { foldlog } = await import('./lib.mjs')
  runs(own.dir, Date.now())
  const tokens = join(own.dir, 'tokens.json')
  const secret = foldlog(own.dir, ['serve', 'token', 'add', 'browser', '--tokens', tokens]).trim()
  const locked = await serve(own.dir, ['--tokens', tokens])
  const page = await open(browser, locked.base, '/')
  try {
    await sees(page, 'This server asks for a token')
    assert.equal(await page.locator('.linked').count(), 0, 'nothing is said of a connection before there is a token')
    await page.getByLabel('Token').fill('wrong')
    await page.getByRole('button', { name: 'Open' }).click()
    await sees(page, 'wrong token')
    await page.getByLabel('Token').fill(secret)
    await page.getByRole('button', { name: 'Open' }).click()
    await sees(page, 'vision-large')
    await until('that it is live', async () => /Live/.test(await page.locator('.linked').innerText()))
    assert.equal(await page.evaluate(() => document.cookie), '', 'scripts cannot read the token')
  } finally {
    await page.context().close()
    await locked.stop()
    own.remove()
  }
})
