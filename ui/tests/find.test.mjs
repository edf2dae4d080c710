// The browser finds what the server finds: both are held to one table.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { transformWithOxc } from 'vite'

const at = path => new URL(path, import.meta.url)
const { code } = await transformWithOxc(readFileSync(at('../src/lib/find.ts'), 'utf8'), 'find.ts')
const { finder } = await import('data:text/javascript,' + encodeURIComponent(code))
const cases = JSON.parse(readFileSync(at('../../server/testdata/find.json')))

test('names are found in the browser as the server finds them', () => {
  assert.ok(cases.length >= 100)
  assert.deepEqual(cases.filter(c => finder(c.typed)(c.name) !== c.found), [])
})

test('an expression over which a browser could sit for ever is letters', () => {
  const name = 'a'.repeat(120) + '!'
  for (const typed of ['(a+)+$', '(a|aa)+$', '(a*)*b', '((a*)a)*$', '(?:a?){60}a{60}$', 'a*a*a*a*a*a*a*a*a*a*b']) assert.equal(finder(typed)(name), false, typed)
})
