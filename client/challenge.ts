// What a 401 or 403 asks of the client: the cue to get a token, read from its challenges (RFC 6750 §3, RFC 9449 §7.1,
// RFC 9728 §5.1).
import { type Challenge, parseChallengeList } from './challenge-parser.ts'
import { AuthError } from './errors.ts'
import { isScope } from './json.ts'
import { printable } from './printable.ts'

export type { Challenge } from './challenge-parser.ts'

/** What a protected answer says about getting in. */
export interface AuthCue {
  readonly status: 401 | 403
  /** `Bearer` where it is offered at all; undefined for a 401 without any challenge. */
  readonly scheme: 'Bearer' | 'DPoP' | undefined
  /** Undefined where none is named. */
  readonly scope: readonly string[] | undefined
  /** Every address that is named for the resource's metadata, in order, as given. */
  readonly resourceMetadata: readonly string[]
  /** `use_dpop_nonce` where any challenge says so, else the first error that is named. */
  readonly error: string | undefined
  /** Fit to be shown: at most 500 characters, controls escaped. */
  readonly errorDescription?: string | undefined
  readonly dpopNonce: string | undefined
}

/** The challenges of every WWW-Authenticate header of a response. */
export function parseChallenges(headers: Headers): Challenge[] {
  return parseChallengeList(headers.get('www-authenticate') ?? '')
}

const valuesOf = (challenges: readonly Challenge[], name: string): string[] =>
  challenges.flatMap(({ params }) => params.get(name) ?? []).filter(value => value !== '')

/** Of the first `scope` that names any. */
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
  throw new AuthError(`the server asks for ${schemes.join(', ')}, and this client knows Bearer and DPoP`, {
    code: 'unsupported_challenge',
    fix: 'set the Authorization header yourself for this server, or ask its operator to protect it with OAuth',
  })
}

/**
 * What a 401 or 403 asks for. Undefined where it is no cue for OAuth: another status, or a 403 without a challenge of
 * `insufficient_scope`. Reads the headers alone. Throws an AuthError `unsupported_challenge` for a 401 whose challenges
 * are all of other schemes.
 */
export function readCue({ status, headers }: Pick<Response, 'status' | 'headers'>): AuthCue | undefined {
  if (status !== 401 && status !== 403) return undefined
  const all = parseChallenges(headers)
  const ours = all.filter(({ scheme }) => scheme === 'bearer' || scheme === 'dpop')
  const isStepUp = valuesOf(ours, 'error').includes('insufficient_scope')
  if (status === 403 && !isStepUp) return undefined
  if (ours.length === 0 && all.length > 0) refuse(all)
  const description = valuesOf(ours, 'error_description')[0]
  return {
    status,
    scheme: ours.length === 0 ? undefined : ours.some(({ scheme }) => scheme === 'bearer') ? 'Bearer' : 'DPoP',
    scope: scopeOf(ours),
    resourceMetadata: [...new Set(valuesOf(ours, 'resource_metadata'))],
    error: status === 403 ? 'insufficient_scope' : errorOf(ours),
    errorDescription: description === undefined ? undefined : printable(description, 500),
    dpopNonce: headers.get('dpop-nonce') ?? undefined,
  }
}
