// What of a client's entry is for nobody's eyes: it is shown before it is replaced, and a terminal is often shared or recorded.
import { isObject } from '../../core/index.ts'

const HIDDEN = '…'
/** Keys whose values are secrets as often as not. */
const SECRET_KEYS = new Set(['headers', 'env'])
/** Parameters of a query that let somebody in. */
const SECRET_NAME = /key|token|secret|passw|auth|credential|signature|^sig$/i

/** The names of the parameters of a URL that look like secrets. */
export function secretParameters(url: string): string[] {
  if (!URL.canParse(url)) return []
  return [...new Set(new URL(url).searchParams.keys())].filter(name => SECRET_NAME.test(name))
}

function hideInText(text: string): string {
  const hidden = text.replace(/\b(Bearer|Basic)\s+\S+/gi, `$1 ${HIDDEN}`)
  return hidden.replace(/([?&])([^=&#\s]+)=[^&#\s]+/g, (found, mark: string, name: string) =>
    SECRET_NAME.test(name) ? `${mark}${name}=${HIDDEN}` : found,
  )
}

const hideAll = (value: unknown): unknown =>
  isObject(value) ? Object.fromEntries(Object.keys(value).map(key => [key, HIDDEN])) : HIDDEN

/** The entry with `…` for the values of headers and environment, and for tokens in the rest. */
export function withoutSecrets(entry: unknown): unknown {
  if (typeof entry === 'string') return hideInText(entry)
  if (Array.isArray(entry)) return entry.map(withoutSecrets)
  if (!isObject(entry)) return entry
  return Object.fromEntries(
    Object.entries(entry).map(([key, value]) => [key, SECRET_KEYS.has(key) ? hideAll(value) : withoutSecrets(value)]),
  )
}
