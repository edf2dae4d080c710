// Times are told by the server's clock: a laptop's may be minutes off, and would call
// a run silent that has just spoken.

let ahead = 0
const hearers = new Set<() => void>()

/** The present time by the server's clock, as far as it is known. */
export const serverNow = () => Date.now() + ahead

/** How far the server's clock is ahead of this computer's, in milliseconds. */
export const clockAhead = () => ahead

/** Takes the time that the server has just told. What is less than two seconds is the way it took. */
export function tellTime(ms: number) {
  const by = ms - Date.now()
  const next = Math.abs(by) < 2000 ? 0 : by
  if (Math.abs(next - ahead) < 1000) return
  ahead = next
  hearers.forEach(f => f())
}

export function onTime(f: () => void): () => void {
  hearers.add(f)
  return () => { hearers.delete(f) }
}
