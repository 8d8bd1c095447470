// Converts token claims to users, and test users to claims.
import type { User } from '../kernel/user.ts'
import { flag } from '../mcp/schema/schema-parts.ts'
import { CLAIM_PATH_PATTERN } from '../mcp/units.ts'
import { isObject } from '../mcp/wire/message.ts'

/** The claims of a token. */
export type Claims = Readonly<Record<string, unknown>>

/** Claim paths: a claim name, or names joined by dots. Names can contain dots. */
export interface ClaimPaths {
  /** Values of all paths are merged; text is split at spaces. Default `scope` and `scp`. */
  scopes?: string | string[]
  /** Values of all paths are merged. Default `roles`. */
  roles?: string | string[]
  /** The first match wins. Default `sub`. */
  subject?: string | string[]
  /** The first match wins. Default `client_id` and `azp`. */
  clientId?: string | string[]
}

export interface StreamOptions {
  /** Keeps long-lived streams open after token expiry. Default false. */
  streamsOutliveToken?: boolean | undefined
}

export const STREAMS_OUTLIVE_TOKEN_SCHEMA = flag(
  'Keeps GET, subscriptions/listen and HTTP+SSE streams open after the token expires.',
  { default: false },
)

const DEFAULT_PATHS = { scopes: ['scope', 'scp'], roles: 'roles', subject: 'sub', clientId: ['client_id', 'azp'] }

const PATH = { type: 'string', pattern: CLAIM_PATH_PATTERN } as const

const pathSchema = <const D extends string>(standard: string | string[], description: D) =>
  ({ anyOf: [PATH, { type: 'array', items: PATH, minItems: 1 }], default: standard, description }) as const

/** The schema of each `ClaimPaths` key, for the options of plugins. */
export const CLAIM_PATHS_SCHEMA = {
  scopes: pathSchema(DEFAULT_PATHS.scopes, 'Paths of the scopes, which are merged. Text is split at spaces.'),
  roles: pathSchema(DEFAULT_PATHS.roles, 'Paths of the roles, which are merged.'),
  subject: pathSchema(DEFAULT_PATHS.subject, 'Paths of the subject. The first match wins.'),
  clientId: pathSchema(DEFAULT_PATHS.clientId, 'Paths of the client id. The first match wins.'),
}

/** Returns the value at a path such as `realm_access.roles`. A complete name takes precedence over its parts. */
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
 * Converts claims to a user, deeply frozen because requests share it. Undefined without subject and client, or if the
 * subject is not a string.
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

/** A fake user; default `tester` without scopes and roles. `claims` override other keys. */
export type TestUser = Partial<Pick<User, 'subject' | 'clientId' | 'scopes' | 'roles' | 'claims'>>

/** The options of an authentication plugin, with a test issuer. */
export interface UnderTest<Options> {
  readonly options: Options
  /** Issues a token for a resource. `lifetime` in seconds. */
  issue(user: TestUser, resource: string, lifetime: number): string
  close?(): Promise<void>
}

const PARTED = /^[\w-]+(?:\.[\w-]+)+$/

export function writeClaim(claims: Record<string, unknown>, path: string, value: unknown): void {
  if (!PARTED.test(path)) {
    claims[path] = value
    return
  }
  const [head = '', ...rest] = path.split('.')
  const inner = isObject(claims[head]) ? { ...claims[head] } : {}
  writeClaim(inner, rest.join('.'), value)
  claims[head] = inner
}

/** Creates the claims of a test user at these paths. The user's `claims` override them. */
export function makeClaims(user: TestUser, paths: ClaimPaths = {}): Record<string, unknown> {
  const { subject = 'tester', clientId = 'test-client', scopes = [], roles = [], claims = {} } = user
  const made: Record<string, unknown> = {}
  const write = (path: string | string[] | undefined, standard: string, value: unknown) =>
    writeClaim(made, [path ?? standard].flat()[0] ?? standard, value)
  write(paths.clientId, 'client_id', clientId)
  write(paths.subject, 'sub', subject)
  if (scopes.length > 0) write(paths.scopes, 'scope', scopes.join(' '))
  if (roles.length > 0) write(paths.roles, 'roles', [...roles])
  return { ...made, ...claims }
}

export const hasBoundToken = (user: { readonly claims: Claims } | undefined): boolean =>
  user !== undefined && typeof boundKey(user.claims) === 'string'

/** Returns the JWK thumbprint of a bound token (RFC 9449 section 6). Undefined if unbound, null if `cnf` is invalid. */
export function boundKey({ cnf }: Claims): string | undefined | null {
  if (cnf === undefined || cnf === null) return undefined
  if (!isObject(cnf)) return null
  const jkt: unknown = Object.hasOwn(cnf, 'jkt') ? cnf['jkt'] : undefined
  if (jkt === undefined) return undefined
  return typeof jkt === 'string' && /^[\w-]{43}$/.test(jkt) ? jkt : null
}
