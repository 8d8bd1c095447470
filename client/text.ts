// Validates values of server responses, makes server text safe to display, and redacts known secrets.
import { LRUCache } from 'lru-cache'

const SECRET_MEMBERS = new Set([
  'access_token',
  'refresh_token',
  'id_token',
  'client_secret',
  'registration_access_token',
  'initial_access_token',
  'device_code',
  'device_secret',
  'code',
  'code_verifier',
  'assertion',
  'client_assertion',
  'subject_token',
  'actor_token',
  'software_statement',
  'password',
])

/** Maximum secrets per response, so that a server cannot evict earlier ones. */
const MAX_PER_RESPONSE = 20
const MAX_DEPTH = 6

const CREDENTIALS: readonly (readonly [RegExp, string])[] = [
  [
    /((?:access|refresh|id|registration_access|initial_access|subject|actor)_token|client_secret|client_assertion|device_code|code_verifier)(["']?\s*[=:]\s*["']?|%3D)[^\s"'&,;<>]{8,}/gi,
    '$1$2[redacted]',
  ],
  [/\b(Bearer|DPoP|Basic) (?=[\w.~+/-]*\d)[\w.~+/-]{16,}=*/gi, '$1 [redacted]'],
  [/\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){1,3}/g, '[redacted]'],
]

export const redactCredentials = (text: string): string =>
  CREDENTIALS.reduce((left, [pattern, instead]) => left.replace(pattern, instead), text)

function collectSecrets(value: unknown, depth = 0, secrets: string[] = []): string[] {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return secrets
  for (const [name, member] of Object.entries(value)) {
    if (secrets.length >= MAX_PER_RESPONSE) break
    if (typeof member === 'string' && SECRET_MEMBERS.has(name)) secrets.push(member)
    else collectSecrets(member, depth + 1, secrets)
  }
  return secrets
}

export function redactSecrets(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactCredentials(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH) return '[deep]'
  if (Array.isArray(value)) return value.map(one => redactSecrets(one, depth + 1))
  const shown = (name: string, member: unknown) =>
    SECRET_MEMBERS.has(name) || ('kty' in value && PRIVATE_PARTS.has(name))
      ? REDACTED
      : redactSecrets(member, depth + 1)
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shown(name, member)]))
}

/** Private JWK members (RFC 7518 §6). */
const PRIVATE_PARTS = new Set(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])

const MAX_SECRETS = 500

const REDACTED = '[redacted]'

export type Secrets = ReturnType<typeof createSecrets>

/** Form-encodes a value (RFC 6749, appendix B). */
export const formEncode = (value: string): string => new URLSearchParams([['', value]]).toString().slice(1)

function encodings(value: string): string[] {
  const [form, json] = [formEncode(value), JSON.stringify(value).slice(1, -1)]
  // Unlike encodeURIComponent, the form encoding does not throw for a lone surrogate.
  const all = new Set([value, form, form.replaceAll('+', '%20'), json, json.replaceAll('/', '\\/')])
  return [...all].sort((one, other) => other.length - one.length)
}

/** Values are in a closure, so inspection and serialization do not reveal them. */
export function createSecrets() {
  const known = new LRUCache<string, readonly string[]>({ max: MAX_SECRETS })
  /** Call it as soon as a secret is known, and at each use. */
  function add(...values: (string | undefined)[]): void {
    for (const value of values) if (value) known.set(value, known.get(value) ?? encodings(value))
  }
  return {
    add,
    /** Registers named secrets of a server response. Call it before the response is used. */
    addFrom: (json: unknown): void => add(...collectSecrets(json)),
    /** Redacts known secrets, also form, URL or JSON encoded, and text that looks like a credential. */
    scrub(text: string): string {
      // Longest first: a secret can be a prefix of another.
      const encoded = [...known.values()].flat().sort((one, other) => other.length - one.length)
      return redactCredentials(encoded.reduce((left, encoding) => left.replaceAll(encoding, REDACTED), text))
    },
  }
}

/** Control, format, bidirectional and invisible characters, and lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu

const escapeCharacter = (character: string): string =>
  character
    .split('')
    .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')

export function printable(text: string, maxLength = Number.POSITIVE_INFINITY): string {
  const shortened = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return shortened.replace(UNPRINTABLE, escapeCharacter)
}

export const printableLines = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(UNPRINTABLE, found => (found === '\n' || found === '\t' ? found : escapeCharacter(found)))

export function printableUrl(url: string | URL): string {
  const [text = ''] = String(url).split(/[?#]/, 1)
  return printable(text.replace(/^([^/]*\/\/)[^/]*@/, '$1'), 300)
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Removes undefined members. */
export const defined = <T extends object>(fields: T) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }

export const readText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** Maximum lifetime or time, seconds: a value that every Date can represent (year 2286). */
const MAX_SECONDS = 1e10

export function readSeconds(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : value
  return typeof number === 'number' && number >= 0 ? Math.min(number, MAX_SECONDS) : undefined
}

/** Visible ASCII and spaces only, as in client ids, secrets, scopes and tokens (RFC 6749, appendix A). */
export const isVisible = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

/** True for a valid scope (RFC 6749 §3.3). */
export const isScope = (value: unknown): value is string =>
  typeof value === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(value)

/** Reads only `error` and `error_description` (RFC 6749 §5.2). */
export function readErrorText({ json }: { readonly json: unknown }): string | undefined {
  if (!isObject(json)) return undefined
  const parts = [readText(json['error']), readText(json['error_description'])].filter(text => text !== undefined)
  return parts.length > 0 ? parts.join(': ') : undefined
}

export const showText = (secrets: Secrets, text: string): string => printable(secrets.scrub(text), 500)

/** Names a process in messages. Undefined: its id is not known. */
export const processText = (pid: number | undefined): string =>
  pid === undefined ? 'another process' : `process ${pid}`
