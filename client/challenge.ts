// Parses WWW-Authenticate (RFC 9110 §11.6.1) in linear time, including lists of challenges and quoted commas.
import { AuthError } from './errors.ts'
import { isScope, printable } from './text.ts'

interface Challenge {
  readonly scheme: string
  token68?: string
  readonly params: Map<string, string[]>
}

/** RFC 9110 `tchar`. */
const TCHAR = "[\\w!#$%&'*+.^`|~-]"
const QUOTED = '"([^"\\\\]*(?:\\\\.[^"\\\\]*)*)'

const SEPARATORS = /[ \t,]+/y
const SCHEME = new RegExp(`(${TCHAR}+)(?![ \\t]*=)(?:[ \\t]+|(?=,|$))`, 'y')
const TOKEN68 = new RegExp(`((?:${TCHAR}|/)+=*)[ \\t]*(?=,|$)`, 'y')
/** A parameter. Unquoted URLs are accepted: a bare value ends at a space or comma. */
const PARAM = new RegExp(`(${TCHAR}+)[ \\t]*=[ \\t]*(?:${QUOTED}"|(?![ \\t"])([^, \\t]*))[ \\t]*`, 'sy')
/** Text up to the next comma outside of quotes. */
const REST = new RegExp(`(?:[^,"]+|${QUOTED}(?:"|\\\\?$))*`, 'sy')

/** Parses a header. Never throws: skips invalid text up to the next comma. */
export function parseChallengeList(text: string): Challenge[] {
  const challenges: Challenge[] = []
  let at = 0

  function matchNext(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    if (found) at = pattern.lastIndex
    return found
  }

  function readParams(params: Challenge['params'] | undefined, first: RegExpExecArray | null): void {
    for (let found = first; found; found = matchNext(PARAM)) {
      const [, name = '', quoted, bare = ''] = found
      const value = quoted?.replace(/\\(.)/gs, '$1') ?? bare
      const values = params?.get(name.toLowerCase())
      if (values) values.push(value)
      else params?.set(name.toLowerCase(), [value])
    }
    matchNext(REST)
  }

  while (at < text.length) {
    if (matchNext(SEPARATORS)) continue
    const param = matchNext(PARAM)
    const [, scheme] = (!param && matchNext(SCHEME)) || []
    if (scheme === undefined) {
      readParams(challenges.at(-1)?.params, param)
      continue
    }
    const challenge: Challenge = { scheme: scheme.toLowerCase(), params: new Map() }
    challenges.push(challenge)
    const [, token68] = matchNext(TOKEN68) ?? []
    if (token68 === undefined) readParams(challenge.params, matchNext(PARAM))
    else challenge.token68 = token68
  }
  return challenges
}

export type AuthChallenge = NonNullable<ReturnType<typeof readChallenge>>

const paramValues = (challenges: readonly Challenge[], name: string): string[] =>
  challenges.flatMap(({ params }) => params.get(name) ?? []).filter(value => value !== '')

function readScope(challenges: readonly Challenge[]): readonly string[] | undefined {
  const lists = paramValues(challenges, 'scope').map(value => [...new Set(value.split(/[ \t]+/).filter(isScope))])
  return lists.find(list => list.length > 0)
}

function readError(challenges: readonly Challenge[]): string | undefined {
  const errors = paramValues(challenges, 'error')
  return errors.find(error => error === 'use_dpop_nonce') ?? errors[0]
}

function throwUnsupported(challenges: readonly Challenge[]): never {
  const schemes = [...new Set(challenges.map(({ scheme }) => scheme.slice(0, 40)))].slice(0, 10)
  throw new AuthError(`the server requires ${schemes.join(', ')}; this client supports Bearer and DPoP`, {
    code: 'unsupported_challenge',
    fix: 'set the Authorization header yourself for this server, or ask its operator to protect it with OAuth',
  })
}

/** Reads the OAuth challenge of a response; undefined without one. Throws an AuthError `unsupported_challenge`. */
export function readChallenge({ status, headers }: Pick<Response, 'status' | 'headers'>) {
  if (status !== 401 && status !== 403) return undefined
  const all = parseChallengeList(headers.get('www-authenticate') ?? '')
  const supported = all.filter(({ scheme }) => scheme === 'bearer' || scheme === 'dpop')
  if (status === 403 && !paramValues(supported, 'error').includes('insufficient_scope')) return undefined
  if (supported.length === 0 && all.length > 0) throwUnsupported(all)
  const description = paramValues(supported, 'error_description')[0]
  const scheme = supported.some(one => one.scheme === 'bearer') ? 'Bearer' : 'DPoP'
  return {
    status,
    scheme: supported.length === 0 ? undefined : scheme,
    scope: readScope(supported),
    resourceMetadata: [...new Set(paramValues(supported, 'resource_metadata'))],
    /** `use_dpop_nonce` if any challenge has it, otherwise the first error. */
    error: status === 403 ? 'insufficient_scope' : readError(supported),
    errorDescription: description === undefined ? undefined : printable(description, 500),
    dpopNonce: headers.get('dpop-nonce') ?? undefined,
  }
}
