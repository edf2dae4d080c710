// node node.cjs : whether this Node builds the dashboard. Any Node can read it, the
// oldest too. With CI=true one that is too old is a fault; else it is left out, and said.
const { engines } = require('./package.json')

/** Whether a version, as [20, 19, 2], is in a range such as "^20.19.0 || >=22.12.0". */
function within([major, minor], range) {
  return range.split('||').some(part => {
    const [, how, a, b] = /^\s*(\^|>=)(\d+)\.(\d+)/.exec(part)
    return major === +a ? minor >= +b : how === '>=' && major > +a
  })
}

const words = range => range.split('||').map(p => p.trim().replace(/^\^(\d+)\.(\d+)\.\d+$/, '$1 from $1.$2 on').replace(/^>=(\d+)\.(\d+)\.\d+$/, '$1.$2 or newer')).join(', or ')

module.exports = { within, words }
if (require.main === module && !within(process.versions.node.split('.').map(Number), engines.node)) {
  console.error(`the dashboard is built by Node ${words(engines.node)}; this is ${process.versions.node}, from ${process.execPath}`)
  process.exit(1)
}
