/**
 * The rule by which everything is found by what was typed: what has the letters, or
 * matches them as a regular expression, whatever the case. The server has the same
 * (server/find.go), and server/testdata/find.json holds both to it: an expression is of
 * what both understand alike, and bounded, so that no address can stop the page.
 */
export function finder(typed: string): (name: string) => boolean {
  const letters = lower(typed), source = patternOf(typed)
  const has = (name: string) => lower(name).includes(letters)
  if (source === null || !/[\\.+*?()|[\]{}^$]/.test(typed)) return has
  try {
    const wanted = new RegExp(source, 'iu')
    return name => has(name) || wanted.test(name)
  } catch {
    return has
  }
}

/** Letters in lower case, one by one: a language's own rules, as for the last letter of a word, are for whole words. */
const lower = (text: string) => /^[\x00-\x7f]*$/.test(text) ? text.toLowerCase() : text.replace(/\p{L}/gu, c => String.fromCodePoint(c.toLowerCase().codePointAt(0)!))

const longest = 200, mostRepetitions = 6, mostCounted = 200
const tokens = /\\[dDwWsSbB!-/:-@[-`{-~]|\[\^?(?:[^\][\\]|\\[dws!-/:-@[-`{-~])+\]|\((?:\?:)?|[*+?]\??|\{[0-9]+(?:,[0-9]*)?\}\??|./gsu
const rangeOfSet = /^\[.*(?:\\[dws]-[^\]]|[^[]-\\[dws])/su
const blank = '\\t\\n\\f\\r '

/** What was typed as an expression of browsers; null if it is none, or not of the language of the server. */
function patternOf(typed: string): string | null {
  if ([...typed].length > longest) return null
  const costly = [false] // of each open group, whether it repeats or chooses
  let last: 'nothing' | 'character' | 'group' | 'costly group' = 'nothing', repetitions = 0, counted = 0, source = ''
  for (const [t] of typed.matchAll(tokens)) {
    const before = last, c = t[0], inner = costly.length - 1
    last = 'nothing'
    if (t === '\\' || t === '[' || t === '[^]' || c === '[' && rangeOfSet.test(t)) return null
    if (c === '(') costly.push(false)
    else if (c === ')') {
      if (inner === 0) return null
      last = costly.pop() ? 'costly group' : 'group'
      if (last === 'costly group') costly[inner - 1] = true
    } else if (c === '|') costly[inner] = true
    else if ('*+?'.includes(c) || c === '{' && t.length > 1) {
      if (before === 'nothing' || before === 'costly group' && c !== '?' || before !== 'character' && c === '{') return null
      repetitions++
      counted += Math.max(0, ...(t.match(/[0-9]+/g) ?? []).map(Number))
      costly[inner] = true
    } else if (!/^(?:[\^$]|\\[bB])$/.test(t)) last = 'character'
    source += translated(t)
  }
  return costly.length === 1 && repetitions <= mostRepetitions && counted <= mostCounted ? source : null
}

/** A token as browsers want it, which know other blanks and fewer signs that may be escaped. */
function translated(t: string): string {
  if (t === '.') return '[^\\n]'
  if (t === '\\s') return `[${blank}]`
  if (t === '\\S') return `[^${blank}]`
  if (/^[{}\]]$/.test(t)) return '\\' + t
  if (t.startsWith('[')) return t.replace(/\\(.)/gsu, (e, c) => c === 's' ? blank : /\w/.test(c) && c !== '_' ? e : code(c))
  return /^\\[^\w]|^\\_/.test(t) ? code(t[1]) : t
}

const code = (c: string) => `\\u{${c.codePointAt(0)!.toString(16)}}`
