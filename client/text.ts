// Validates values of server responses and makes server text safe to display.
import type { Secrets } from './secrets.ts'

/** Control, format, bidirectional and invisible characters, and lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu

const escapeOne = (character: string): string =>
  character
    .split('')
    .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')

export function printable(text: string, maxLength = Number.POSITIVE_INFINITY): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return cut.replace(UNPRINTABLE, escapeOne)
}

export const printableLines = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(UNPRINTABLE, found => (found === '\n' || found === '\t' ? found : escapeOne(found)))

export function printableUrl(url: string | URL): string {
  const [text = ''] = String(url).split(/[?#]/, 1)
  return printable(text.replace(/^([^/]*\/\/)[^/]*@/, '$1'), 300)
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Without undefined members. */
export const given = <T extends object>(fields: T) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }

export const readText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** Maximum lifetime or time, seconds: fits in every Date (year 2286). */
const MAX_SECONDS = 1e10

export function readSeconds(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : value
  return typeof number === 'number' && number >= 0 ? Math.min(number, MAX_SECONDS) : undefined
}

/** Visible ASCII and spaces only, as in client ids, secrets, scopes and tokens (RFC 6749, appendix A). */
export const isVisible = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

/** RFC 6749 §3.3. */
export const isScope = (value: unknown): value is string =>
  typeof value === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(value)

/** Reads only `error` and `error_description` (RFC 6749 §5.2). */
export function saidIn({ json }: { readonly json: unknown }): string | undefined {
  if (!isObject(json)) return undefined
  const said = [readText(json['error']), readText(json['error_description'])].filter(text => text !== undefined)
  return said.length > 0 ? said.join(': ') : undefined
}

export const showText = (secrets: Secrets, text: string): string => printable(secrets.scrub(text), 500)
