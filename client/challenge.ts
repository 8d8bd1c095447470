// Parses WWW-Authenticate (RFC 9110 §11.6.1) in linear time, including lists of challenges and quoted commas.
import { AuthError } from './errors.ts'
import { isScope, printable } from './text.ts'

interface Challenge {
  readonly scheme: string
  readonly token68?: string
  readonly params: ReadonlyMap<string, readonly string[]>
}

export interface HeaderText {
  readonly length: number
  charCodeAt(index: number): number
  slice(start: number, end: number): string
}

const COMMA = 0x2c
const QUOTE = 0x22
const EQUALS = 0x3d
const BACKSLASH = 0x5c
const SLASH = 0x2f

/** RFC 9110 `tchar`, by character code. */
const IS_TCHAR: readonly boolean[] = Array.from({ length: 128 }, (_, code) =>
  /[\w!#$%&'*+.^`|~-]/.test(String.fromCharCode(code)),
)

const isTchar = (code: number) => IS_TCHAR[code] === true
const isToken68 = (code: number) => isTchar(code) || code === SLASH
const isSpace = (code: number) => code === 0x20 || code === 0x09
const isUnquoted = (code: number) => code !== COMMA && !isSpace(code)

interface OpenChallenge {
  readonly scheme: string
  token68?: string
  readonly params: Map<string, string[]>
}

/** Parses a header. Never throws: skips invalid text up to the next comma. */
export function parseChallengeList(text: HeaderText): Challenge[] {
  const { length } = text
  const challenges: OpenChallenge[] = []
  let at = 0

  const peek = (): number => (at < length ? text.charCodeAt(at) : Number.NaN)
  const isAtItemEnd = (): boolean => at >= length || peek() === COMMA

  function readWhile(test: (code: number) => boolean): string {
    const start = at
    while (at < length && test(text.charCodeAt(at))) at++
    return text.slice(start, at)
  }

  function skipSpace(): void {
    while (at < length && isSpace(text.charCodeAt(at))) at++
  }

  function readQuoted(): string | undefined {
    let value = ''
    let start = at
    while (at < length) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) {
        value += text.slice(start, at)
        at++
        return value
      }
      if (code === BACKSLASH) {
        value += text.slice(start, at)
        at++
        start = at
      }
      at++
    }
    at = length
    return undefined
  }

  function skipToComma(): void {
    while (!isAtItemEnd()) {
      const code = peek()
      at++
      if (code === QUOTE) readQuoted()
    }
  }

  /** Accepts unquoted URLs: a bare value ends at a space or comma. */
  function readValue(): string | undefined {
    skipSpace()
    if (peek() !== QUOTE) return readWhile(isUnquoted)
    at++
    return readQuoted()
  }

  function readParams(challenge: OpenChallenge | undefined, first: string): void {
    for (let name = first; name !== ''; ) {
      at++
      const value = readValue()
      const values = challenge?.params.get(name.toLowerCase()) ?? []
      if (value !== undefined) challenge?.params.set(name.toLowerCase(), values)
      if (value !== undefined) values.push(value)
      skipSpace()
      name = readWhile(isTchar)
      skipSpace()
      if (peek() !== EQUALS) break
    }
    skipToComma()
  }

  function readAfterScheme(challenge: OpenChallenge): void {
    if (isAtItemEnd()) return
    const start = at
    const run = readWhile(isToken68)
    const afterRun = at
    readWhile(code => code === EQUALS)
    const end = at
    skipSpace()
    if (run !== '' && isAtItemEnd()) {
      challenge.token68 = text.slice(start, end)
      return
    }
    at = afterRun
    skipSpace()
    if (run !== '' && !run.includes('/') && peek() === EQUALS) readParams(challenge, run)
    else skipToComma()
  }

  while (at < length) {
    skipSpace()
    if (peek() === COMMA) {
      at++
      continue
    }
    const word = readWhile(isTchar)
    const end = at
    skipSpace()
    if (word !== '' && peek() === EQUALS) {
      readParams(challenges.at(-1), word)
    } else if (word !== '' && (isAtItemEnd() || at > end)) {
      const challenge: OpenChallenge = { scheme: word.toLowerCase(), params: new Map() }
      challenges.push(challenge)
      readAfterScheme(challenge)
    } else {
      skipToComma()
    }
  }
  return challenges
}

export type AuthCue = NonNullable<ReturnType<typeof readCue>>

export function parseChallenges(headers: Headers): Challenge[] {
  return parseChallengeList(headers.get('www-authenticate') ?? '')
}

const valuesOf = (challenges: readonly Challenge[], name: string): string[] =>
  challenges.flatMap(({ params }) => params.get(name) ?? []).filter(value => value !== '')

function scopeOf(challenges: readonly Challenge[]): readonly string[] | undefined {
  const lists = valuesOf(challenges, 'scope').map(value => [...new Set(value.split(/[ \t]+/).filter(isScope))])
  return lists.find(list => list.length > 0)
}

function errorOf(challenges: readonly Challenge[]): string | undefined {
  const errors = valuesOf(challenges, 'error')
  return errors.find(error => error === 'use_dpop_nonce') ?? errors[0]
}

function refuse(challenges: readonly Challenge[]): never {
  const schemes = [...new Set(challenges.map(({ scheme }) => scheme.slice(0, 40)))].slice(0, 10)
  throw new AuthError(`the server requires ${schemes.join(', ')}; this client supports Bearer and DPoP`, {
    code: 'unsupported_challenge',
    fix: 'set the Authorization header yourself for this server, or ask its operator to protect it with OAuth',
  })
}

/** Reads the OAuth challenge of a response; undefined without one. Throws an AuthError `unsupported_challenge`. */
export function readCue({ status, headers }: Pick<Response, 'status' | 'headers'>) {
  if (status !== 401 && status !== 403) return undefined
  const all = parseChallenges(headers)
  const ours = all.filter(({ scheme }) => scheme === 'bearer' || scheme === 'dpop')
  const isStepUp = valuesOf(ours, 'error').includes('insufficient_scope')
  if (status === 403 && !isStepUp) return undefined
  if (ours.length === 0 && all.length > 0) refuse(all)
  const description = valuesOf(ours, 'error_description')[0]
  const scheme = ours.some(one => one.scheme === 'bearer') ? 'Bearer' : 'DPoP'
  return {
    status,
    scheme: ours.length === 0 ? undefined : scheme,
    scope: scopeOf(ours),
    resourceMetadata: [...new Set(valuesOf(ours, 'resource_metadata'))],
    /** `use_dpop_nonce` if any challenge has it, otherwise the first error. */
    error: status === 403 ? 'insufficient_scope' : errorOf(ours),
    errorDescription: description === undefined ? undefined : printable(description, 500),
    dpopNonce: headers.get('dpop-nonce') ?? undefined,
  }
}
