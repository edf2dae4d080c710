import { parse } from './json'
import type { Num } from './types'

/** An answer that is no success, as the problem document says it. */
export class ApiError extends Error {
  constructor(readonly status: number, readonly title: string, detail: string) { super(detail || title) }
}

export const number = (v: Num | null | undefined): number => v === null || v === undefined ? NaN : Number(v)
export const numbers = (list: Num[]): number[] => list.map(Number)

export type Query = { [key: string]: string | number | boolean | string[] | undefined }

/** url of a path below /api/v1; lists are repeated parameters. */
export function url(path: string, query: Query = {}): string {
  const q = new URLSearchParams()
  for (const [key, v] of Object.entries(query)) {
    if (Array.isArray(v)) v.forEach(one => q.append(key, one))
    else if (v !== undefined && v !== '' && v !== false) q.set(key, String(v))
  }
  const text = q.toString()
  return '/api/v1/' + path + (text ? '?' + text : '')
}

export const seg = encodeURIComponent

/** Hears of every answer that asks for a token. */
export let onUnauthorized = () => {}
export function setOnUnauthorized(f: () => void) { onUnauthorized = f }

async function answer(at: string, init: RequestInit): Promise<Response> {
  const { signal } = init
  let r: Response
  try {
    r = await fetch(at, init)
  } catch (e) {
    if (signal?.aborted) throw e
    throw new ApiError(0, 'The server does not answer', 'The server does not answer. It may have stopped, or be restarting.')
  }
  if (!r.ok) {
    if (r.status === 401 && !at.includes('/session/')) onUnauthorized()
    const p = await r.json().catch(() => ({}))
    throw new ApiError(r.status, p.title ?? r.statusText, p.detail ?? '')
  }
  return r
}

async function call<T>(method: string, at: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }
  const r = await answer(at, { method, signal, ...sent })
  return r.status === 204 ? (undefined as T) : parse<T>(await r.text())
}

/** An answer of another type than JSON, as it is. */
export const bytesOf = (path: string, accept: string, signal?: AbortSignal) =>
  answer(url(path), { signal, headers: { Accept: accept } }).then(r => r.arrayBuffer())

export const get = <T>(path: string, query?: Query, signal?: AbortSignal) => call<T>('GET', url(path, query), undefined, signal)
export const post = <T>(path: string, body: unknown, signal?: AbortSignal) => call<T>('POST', '/api/v1/' + path, body, signal)
export const put = <T>(path: string, body: unknown) => call<T>('PUT', '/api/v1/' + path, body)
