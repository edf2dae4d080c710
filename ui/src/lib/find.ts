/**
 * The rule by which everything is found by what was typed: what has the letters, or
 * matches them as a regular expression, whatever the case. The server has the same.
 */
export function finder(typed: string): (name: string) => boolean {
  const letters = typed.toLowerCase()
  const has = (name: string) => name.toLowerCase().includes(letters)
  try {
    const wanted = new RegExp(typed, 'i')
    return name => wanted.test(name) || has(name)
  } catch {
    return has
  }
}
