// From the claims of a token to the User that handlers, policies and sessions see; the same for every kind of token.

import type { User } from '../kernel/user.ts'
import { isObject } from '../mcp/is-object.ts'
import { CLAIM_PATH_PATTERN } from '../mcp/units.ts'

/** What a token, or its issuer, says of its user. */
export type Claims = Readonly<Record<string, unknown>>

/** Where an issuer writes what. A path is a claim's name, or names joined by dots; names may contain dots. */
export interface ClaimPaths {
  /** All of them count. Text is split at spaces. Default `scope` and `scp`. */
  scopes?: string | string[]
  /** All of them count. Default `roles`. */
  roles?: string | string[]
  /** The first that is there. Default `sub`. */
  subject?: string | string[]
  /** The first that is there. Default `client_id` and `azp`. */
  clientId?: string | string[]
}

/** How long streams of a token's user may last. */
export interface StreamOptions {
  /** Long-lived streams go on when the token that opened them expires. Default false. */
  streamsOutliveToken?: boolean | undefined
}

/** Its schema, for a plugin's options. */
export const STREAMS_OUTLIVE_TOKEN_SCHEMA = {
  type: 'boolean',
  default: false,
  description: 'Long-lived streams go on when the token that opened them expires.',
} as const

const DEFAULT_PATHS = { scopes: ['scope', 'scp'], roles: 'roles', subject: 'sub', clientId: ['client_id', 'azp'] }

const PATH = { type: 'string', pattern: CLAIM_PATH_PATTERN } as const

const pathSchema = <const D extends string>(standard: string | string[], description: D) =>
  ({ anyOf: [PATH, { type: 'array', items: PATH, minItems: 1 }], default: standard, description }) as const

/** The schema of each of `ClaimPaths`, for a plugin's options. */
export const CLAIM_PATHS_SCHEMA = {
  scopes: pathSchema(DEFAULT_PATHS.scopes, 'Where the scopes are; all of them count. Text is split at spaces.'),
  roles: pathSchema(DEFAULT_PATHS.roles, 'Where the roles are; all of them count.'),
  subject: pathSchema(DEFAULT_PATHS.subject, 'Where the subject is; the first that is there.'),
  clientId: pathSchema(DEFAULT_PATHS.clientId, "Where the client's id is; the first that is there."),
}

/** The value at a path such as `realm_access.roles`; a whole name wins over its parts. */
export function claimAt(claims: unknown, path: string): unknown {
  if (!isObject(claims)) return undefined
  if (Object.hasOwn(claims, path)) return claims[path]
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const head = path.slice(0, dot)
    const found = Object.hasOwn(claims, head) ? claimAt(claims[head], path.slice(dot + 1)) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** The strings at these paths, each once; what is no string, and no list of strings, gives none. */
export function stringsAt(claims: Claims, paths: string | readonly string[]): string[] {
  const found = [paths].flat().flatMap(path => claimAt(claims, path) ?? [])
  return [...new Set(found.filter(value => typeof value === 'string' && value !== ''))] as string[]
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const part of Object.values(value)) freeze(part)
  }
  return value
}

/**
 * The user of these claims, frozen whole: one object may serve many requests. Undefined where they name neither a
 * subject nor a client, and where the subject is there but is no text: it would make one user of many. `subjectClaim` tells a
 * client without a subject from a user of that name.
 */
export function readUser(
  claims: Claims,
  issuer: string,
  claimPaths: ClaimPaths = {},
  { streamsOutliveToken = false }: StreamOptions = {},
): User | undefined {
  const {
    scopes = DEFAULT_PATHS.scopes,
    roles = DEFAULT_PATHS.roles,
    subject = DEFAULT_PATHS.subject,
    clientId = DEFAULT_PATHS.clientId,
  } = claimPaths
  const [client] = stringsAt(claims, clientId)
  const paths = [subject].flat()
  const at = paths.findIndex(path => (claimAt(claims, path) ?? undefined) !== undefined)
  const named = at === -1 ? client : claimAt(claims, paths[at] ?? '')
  const subjectClaim = at === -1 ? 'client_id' : at === 0 ? undefined : paths[at]
  if (typeof named !== 'string' || named === '') return undefined
  const { exp } = claims
  const ends = typeof exp === 'number' && Number.isFinite(exp) && !streamsOutliveToken
  const granted = stringsAt(claims, scopes).flatMap(text => text.split(' '))
  return freeze({
    issuer,
    subject: named,
    ...(subjectClaim !== undefined && { subjectClaim }),
    ...(client !== undefined && { clientId: client }),
    scopes: [...new Set(granted.filter(scope => scope !== ''))],
    roles: stringsAt(claims, roles),
    claims,
    ...(ends && { expiresAt: exp * 1_000 }),
  })
}
