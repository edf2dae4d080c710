// node tests/pictures.mjs DIR: pictures of every view, of what the demonstration makes.
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { foldlog, launch, open, serve, sleep, tempRoot } from './lib.mjs'

const out = resolve(process.argv[2] ?? 'pictures')
mkdirSync(out, { recursive: true })
const root = tempRoot()
foldlog(root.dir, ['demo', '--dir', join(root.dir, 'demo'), '--no-serve', '-q'])
const server = await serve(join(root.dir, 'demo'))
const browser = await launch()
try {
  await server.settled()
  const ask = async path => (await (await fetch(server.base + '/api/v1/' + path)).json()).items
  const study = (await ask('studies'))[0], runs = await ask('runs?sort=-metric:val/accuracy'), experiment = (await ask('datagen'))[0]
  const images = await ask(`datagen/${experiment.id}/items?status=completed&sort=events`)
  const image = images.find(i => i.parent)
  const compare = '/compare?' + runs.filter(r => r.status === 'done').slice(0, 6).map(r => 'run=' + encodeURIComponent(r.slug)).join('&')
  const views = [
    ['overview', '/', 640], ['runs', '/runs?col=metric:val/accuracy&col=knobs/lr&sort=-metric:val/accuracy', 700], ['run', '/runs/' + encodeURIComponent(runs[0].slug)],
    ['compare', compare], ['study', '/studies/' + study.id, 1000], ['parameters', `/studies/${study.id}?tab=params`, 1190], ['timeline', `/studies/${study.id}?tab=timeline`, 580],
    ['trials', `/studies/${study.id}?tab=trials`, 760], ['datagen', '/datagen/' + experiment.id, 580], ['item', `/datagen/${experiment.id}/items/${encodeURIComponent(image.item)}`, 900],
    ['dark', '/studies/' + study.id, 920, { colorScheme: 'dark' }], ['phone', '/studies/' + study.id, 780, { viewport: { width: 390, height: 780 } }],
  ]
  for (const [name, path, height, options] of views) {
    const page = await open(browser, server.base, path, { viewport: { width: 1280, height: height ?? 860 }, ...options })
    await page.waitForLoadState('load')
    await sleep(1500)
    await page.screenshot({ path: join(out, name + '.png') })
    await page.context().close()
  }
} finally {
  await browser.close()
  await server.stop()
  root.remove()
}
