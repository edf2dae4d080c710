// What people look for first: why something failed, what was said and when, where the
// good parameters lie; by the keyboard, too.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Stream } from './fixtures.mjs'
import { findChromium, foldlog, launch, serve, tempRoot, until, writer, visit } from './lib.mjs'

let root, server, browser, study
const skip = findChromium() ? false : 'there is no Chromium on this machine'

before(async () => {
  if (skip) return
  root = tempRoot()
  const said = new Stream('talkative', Date.now() - 9e6)
  for (let i = 0; i < 3000; i++) { said.ts += 100; said.note(i, `remark ${i}`); if (i % 100 === 0) said.metric(i, 'loss', 1 / (1 + i)) }
  said.done().write(root.dir)
  const near = new Stream('near', Date.now() - 9e6)
  for (let i = 0; i < 20; i++) near.metric(i, 'close', 1e6 + (i % 2) * 1e-3).metric(i, 'signed', i % 2 ? -i : i + 1)
  near.done().write(root.dir)
  searched(root.dir)
  server = await serve(root.dir)
  await server.settled()
  browser = await launch()
  study = (await (await fetch(server.base + '/api/v1/studies')).json()).items[0].id
})
after(async () => {
  await browser?.close()
  await server?.stop()
  root?.remove()
})

/** A study in which trials fail for two reasons, one of them with numbers that differ. */
function searched(dir) {
  writeFileSync(join(dir, 'space.yaml'), 'lr: {type: float, low: 1e-4, high: 0.1, log: true}\nwidth: {type: int, low: 16, high: 256}\noptimizer: {type: categorical, choices: [adam, sgd]}\n')
  writeFileSync(join(dir, 'train.sh'), 'case $2 in 1|4) echo "CUDA out of memory: $2 GiB" >&2; exit 1;; 6) echo "no such file: x" >&2; exit 1;; esac\necho "{\\"step\\": 1, \\"loss\\": 0.$2}"\n')
  foldlog(dir, ['study', 'create', 'search.atj', '--name', 'search', '--metric', 'loss', '--space', 'space.yaml', '--seed', '3'])
  foldlog(dir, ['study', 'run', 'search.atj', '--trials', '9', '-q', '--', 'sh', 'train.sh', '{lr}', '{trial}'])
}

const on = (path, use, options) => visit(browser, server.base, path, use, options)

const main = page => page.locator('main').innerText()

test('what ran last is there when nothing runs', { skip }, () => on('/', async page => {
  const latest = page.locator('.panel', { has: page.getByRole('heading', { name: 'Latest runs' }) }).locator('li')
  await until('the runs', async () => (await latest.count()) === 5)
  await until('where they stand', async () => (await latest.allInnerTexts()).some(t => /done\s*step \d[^]*loss\s*0\.\d/.test(t)))
}))

test('a study says why its trials failed, alike ones together', { skip }, async () => {
  await on('/studies/' + study, async page => {
    await until('the reasons', async () => /CUDA out of memory/.test(await main(page)))
    const rows = await page.locator('.panel', { has: page.getByRole('heading', { name: 'Failed' }) }).locator('li').allInnerTexts()
    assert.equal(rows.length, 2)
    assert.match(rows[0], /trial 6[^]*no such file/)
    assert.match(rows[1], /trial 4\s*and 1 other alike[^]*CUDA out of memory: 4 GiB/)
    await page.getByRole('link', { name: 'trial 4' }).click()
    await until('the trial', () => page.url().endsWith('/trials/4'))
  })
  await on('/', page => until('the newest reason', async () => /3 trials of 9 failed, trial 6: [^]*no such file/.test(await main(page))))
})

test('annotations begin with the newest, and those before them come when they are asked for', { skip }, () => on('/runs/talkative?tab=notes', async page => {
  await until('the newest', async () => /remark 2999/.test(await main(page)))
  assert.doesNotMatch(await main(page), /remark 2499\b/)
  await page.getByRole('button', { name: 'Show older ones' }).click()
  await until('older ones', async () => /remark 1000\b/.test(await main(page)))
  await page.getByLabel('Find a text').fill('remark 15[0-9]0$')
  await until('those found', async () => (await page.locator('tbody tr').count()) === 10)
  await page.getByRole('link', { name: '1510' }).click()
  await until('the curves around it', () => /from=14\d\d&to=15\d\d/.test(page.url()))
}))

test('what was said is marked where it was said, as it comes', { skip }, async () => {
  const log = writer(root.dir, 'spoken')
  for (let i = 1; i <= 20; i++) log.line(`step=${i} loss=${1 / i}`)
  await until('the run', async () => (await fetch(server.base + '/api/v1/runs/spoken')).ok)
  await log.end()
  const more = new Stream('remarked', Date.now() - 1000)
  for (let i = 1; i <= 21; i++) more.metric(i, 'loss', 1 / i)
  more.note(11, 'the rate was lowered by hand').write(root.dir)
  await until('the other run', async () => (await fetch(server.base + '/api/v1/runs/remarked')).ok)
  await on('/runs/remarked', async page => {
    const canvas = page.locator('main canvas').first()
    await until('the chart', () => canvas.isVisible())
    await canvas.focus()
    await until('the remark', async () => {
      await page.keyboard.press('Home')
      for (let i = 0; i < 10; i++) await page.keyboard.press('ArrowRight')
      return /step 11[^]*lowered by hand/.test(await page.locator('.plot-tip').innerText().catch(() => ''))
    })
    more.note(15, 'and raised again').write(root.dir)
    await until('the new remark', async () => {
      await page.keyboard.press('Home')
      for (let i = 0; i < 14; i++) await page.keyboard.press('ArrowRight')
      return /step 15[^]*raised again/.test(await page.locator('.plot-tip').innerText().catch(() => ''))
    })
  })
})

test('values that differ little are told apart, and a logarithmic axis says what it lacks', { skip }, () => on('/runs/near?log=1', async page => {
  const close = page.locator('section[aria-label="close"]'), signed = page.locator('section[aria-label="signed"]')
  await until('the bounds', async () => /from 1000000 to 1000000\.001/.test(await close.innerText()))
  await until('what is left out', async () => /10 not above 0/.test(await signed.innerText()))
  await close.locator('canvas').focus()
  await page.keyboard.press('End')
  assert.match(await close.locator('.plot-tip').innerText(), /1000000\.001/)
}))

test('ranges of parameters are chosen by the keyboard', { skip }, () => on(`/studies/${study}?tab=params`, async page => {
  await page.locator('summary', { hasText: 'Ranges' }).focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'lr from')
  const status = page.locator('.legend [role=status]')
  const loss = page.getByLabel('loss from')
  await loss.fill('0.45')
  await loss.press('Enter')
  await until('the worse ones', async () => await status.innerText() === '3 trials chosen')
  await page.getByLabel('loss to').fill('0.6')
  await page.getByLabel('loss to').press('Enter')
  await until('one', async () => await status.innerText() === '1 trial chosen')
  await loss.fill('')
  await page.getByLabel('loss to').fill('')
  await page.getByLabel('loss to').press('Enter')
  await until('all', async () => await status.innerText() === '')
  await page.getByRole('combobox', { name: 'optimizer' }).selectOption('adam')
  await until('some', async () => /^\d trials? chosen$/.test(await status.innerText()))
}))

test('two parameters are seen against each other, and the address says which', { skip }, () => on(`/studies/${study}?tab=params`, async page => {
  const panel = page.locator('.panel', { has: page.getByRole('heading', { name: 'Two parameters' }) })
  await panel.getByLabel('Up').selectOption('optimizer')
  await until('in the address', () => /up=optimizer/.test(page.url()))
  const canvas = panel.locator('canvas')
  assert.equal(await canvas.getAttribute('aria-label'), 'loss by lr and optimizer')
  await canvas.focus()
  await page.keyboard.press('Home')
  assert.match(await panel.locator('.plot-tip').innerText(), /trial \d, complete[^]*loss/)
  await page.keyboard.press('Enter')
  await until('the trial', () => /\/trials\/\d$/.test(page.url()))
}))

test('a list of runs has the lowest and highest of a metric, by which it is sorted', { skip }, () => on('/runs?q=talk|near&col=metric:loss', async page => {
  await page.locator('.tr a', { hasText: 'talkative' }).waitFor()
  await page.locator('summary', { hasText: 'Columns' }).click()
  await page.locator('.menu-body label', { hasText: 'its highest' }).locator('input').check()
  await page.keyboard.press('Escape')
  const head = page.getByRole('columnheader', { name: 'max loss' })
  await head.getByRole('button').click()
  await until('in the address', () => new URL(page.url()).searchParams.get('sort') === '-metric:loss:max')
  const row = page.locator('.tr', { hasText: 'talkative' })
  await until('its values', async () => /0\.000344[^]*\n1\n/.test(await row.innerText()))
  assert.deepEqual(new URL(page.url()).searchParams.getAll('col'), ['metric:loss', 'metric:loss:max'])
}))
