// Which versions of Node build the dashboard is told before they fail at it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFileSync } from 'node:fs'
import node from '../node.cjs'

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url)))

test('a version of Node is told from those that are too old', () => {
  const good = ['20.19.0', '20.20.2', '22.12.0', '23.0.0', '24.1.0'], bad = ['18.19.1', '20.18.9', '21.7.0', '22.11.0']
  for (const v of [...good, ...bad]) assert.equal(node.within(v.split('.').map(Number), engines.node), good.includes(v), v)
  assert.equal(node.words('^20.19.0 || >=22.12.0'), '20 from 20.19 on, or 22.12 or newer')
})
