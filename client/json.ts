// Reads what an authorization server says, leniently where real servers differ, and makes it fit to be shown.
import { printable } from './printable.ts'
import type { Secrets } from './secrets.ts'

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A text with something in it; null and an empty text are as good as absent. */
export const readText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** A number of 0 or more, which some servers send as text. */
export function readNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number >= 0 ? number : undefined
}

/** What an answer says about its failure (RFC 6749 §5.2): `error` and `error_description`, and nothing else of it. */
export function saidIn({ json }: { readonly json: unknown }): string | undefined {
  if (!isObject(json)) return undefined
  const said = [readText(json['error']), readText(json['error_description'])].filter(text => text !== undefined)
  return said.length > 0 ? said.join(': ') : undefined
}

/** A server's words for a message: without known secrets, nothing unprintable, 500 characters at most. */
export const showText = (secrets: Secrets, text: string): string => printable(secrets.scrub(text), 500)
