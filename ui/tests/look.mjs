// node tests/look.mjs BASE OUT PATH... : pictures of pages, for looking at.
import { chromium } from 'playwright-core'
const [base, out, ...paths] = process.argv.slice(2)
const b = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell', args: ['--no-sandbox'] })
const dark = process.env.DARK === '1', width = Number(process.env.WIDTH ?? 1360), height = Number(process.env.HEIGHT ?? 900)
const page = await b.newPage({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', deviceScaleFactor: 1 })
page.on('console', m => m.type() === 'error' && console.log('console:', m.text()))
page.on('pageerror', e => console.log('error:', e.message))
for (const [i, p] of paths.entries()) {
  await page.goto(base + p)
  await page.waitForTimeout(Number(process.env.WAIT ?? 1200))
  await page.screenshot({ path: `${out}-${i}.png`, fullPage: process.env.FULL === '1' })
}
await b.close()
