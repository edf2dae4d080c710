import { text } from './format'

/** A cell of a table that is taken along; a number beyond 2^53 is a bigint. */
export type Cell = string | number | bigint

/** A value of a log as a cell. */
export const cellOf = (v: unknown): Cell => typeof v === 'number' || typeof v === 'bigint' ? v : text(v)

/** Rows as comma-separated values (RFC 4180). What a spreadsheet would run is text. */
export function csv(rows: Cell[][]): string {
  const cell = (v: Cell) => {
    if (typeof v === 'number' || typeof v === 'bigint') return String(v)
    const safe = /^[=+\-@\t\r]/.test(v) ? "'" + v : v
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  }
  return rows.map(r => r.map(cell).join(',')).join('\r\n') + '\r\n'
}

/** A name for a file that every system takes. */
export const fileName = (name: string) => name.replace(/[^\p{L}\p{N}._-]+/gu, '-').replace(/^[-.]+|[-.]+$/g, '').slice(0, 80) || 'chart'

export function download(blob: Blob, name: string) {
  const a = document.createElement('a')
  a.href = URL.createObjectURL(blob)
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000)
}
