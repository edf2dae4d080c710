// Logs hold integers of 64 bits, and a number of JavaScript only those of 53: the others
// are bigints, so that a seed is shown and copied as it was written.

type Raw = typeof JSON & { rawJSON?: (text: string) => unknown }

const beyond = /[[:,]\s*-?\d{16,}\s*[,}\]]/

function whole(_: string, v: unknown, context?: { source: string }): unknown {
  const source = context?.source
  return typeof v === 'number' && !Number.isSafeInteger(v) && source && /^-?\d+$/.test(source) ? BigInt(source) : v
}

/** JSON.parse that keeps large integers, in browsers that tell of them. */
export function parse<T>(text: string): T {
  return beyond.test(text) ? JSON.parse(text, whole) : JSON.parse(text)
}

Object.defineProperty(BigInt.prototype, 'toJSON', {
  value(this: bigint) { return (JSON as Raw).rawJSON?.(String(this)) ?? String(this) },
})
