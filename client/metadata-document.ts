// One metadata document at one address: found, not there, or not to be had now. And the readers of its members.
import type { ClientContext } from './context.ts'
import { AuthError } from './errors.ts'
import { printableUrl } from './printable.ts'

export type Members = Readonly<Record<string, unknown>>

export type Lookup =
  | { readonly kind: 'found'; readonly members: Members }
  /** It answers success with something else than a JSON object. */
  | { readonly kind: 'not-json' }
  /** `busy`: it may be there another time (408, 429). */
  | { readonly kind: 'absent'; readonly status: number; readonly busy: boolean }

/** The server is there and cannot answer now. */
export const unavailable = (what: string, url: string, status: number): AuthError =>
  new AuthError(`${what} at ${printableUrl(url)} answers ${status}`, {
    code: 'temporarily_unavailable',
    fix: 'try again later; if it stays so, tell the operator of that server',
    retryable: true,
  })

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Looks for a document. 4xx and 502 mean that it is not there (some gateways say 502 for what they do not know); another
 * 5xx, or no answer, throws an AuthError `temporarily_unavailable`.
 */
export async function lookUp(ctx: ClientContext, url: string, what: string, signal: AbortSignal): Promise<Lookup> {
  const { status, json } = await ctx.http.getJson(url, { what, signal })
  if (status >= 200 && status < 300) return isObject(json) ? { kind: 'found', members: json } : { kind: 'not-json' }
  if (status >= 500 && status !== 502) throw unavailable(what, url, status)
  return { kind: 'absent', status, busy: status === 408 || status === 429 }
}

export interface Search<Found> {
  readonly found?: Found
  /** Of the first location with an unusable document. */
  readonly failure?: unknown
}

/**
 * Tries the URLs in order until `read` accepts a document. `read` returns undefined if a URL has no document. After an invalid
 * document the next URL is tried. With `stopIfUnavailable`, a temporary failure ends the search, because the URL may have one.
 */
export async function findDocument<Found>(
  urls: readonly string[],
  read: (url: string) => Promise<Found | undefined>,
  { signal, stopIfUnavailable }: { readonly signal: AbortSignal; readonly stopIfUnavailable: boolean },
): Promise<Search<Found>> {
  let failure: unknown
  for (const url of urls) {
    try {
      const found = await read(url)
      if (found !== undefined) return { found }
    } catch (thrown) {
      if (signal.aborted || !AuthError.is(thrown) || (stopIfUnavailable && thrown.retryable)) throw thrown
      // The network policy refused it: the caller must decide.
      if (thrown.code === 'blocked_address') throw thrown
      failure ??= thrown
    }
  }
  return { failure }
}

/** A member that is a non-empty string. */
export const textOf = (members: Members, name: string): string | undefined => {
  const value = members[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The strings of a member that is a list; undefined where it is none. */
export const listOf = (members: Members, name: string): readonly string[] | undefined => {
  const value = members[name]
  return Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : undefined
}
