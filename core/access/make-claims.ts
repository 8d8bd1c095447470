// From a user whom a test makes up to the claims that an issuer would write of it: user-claims.ts the other way round. For
// `underTest` of plugins that say who calls.
import type { TestUser } from '../kernel/define-plugin.ts'
import { isObject } from '../mcp/is-object.ts'
import type { ClaimPaths } from './user-claims.ts'

/** A name that dots may part: not a URL. */
const PARTED = /^[\w-]+(?:\.[\w-]+)+$/

/** Writes a value where `claimAt` finds it. */
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

/** The claims of a made-up user, where these paths look for them; the user's own claims go over them. */
export function makeClaims(user: TestUser, paths: ClaimPaths = {}): Record<string, unknown> {
  const { subject = 'tester', clientId = 'test-client', scopes = [], roles = [], claims = {} } = user
  const made: Record<string, unknown> = {}
  const write = (given: string | string[] | undefined, standard: string, value: unknown) =>
    writeClaim(made, [given ?? standard].flat()[0] ?? standard, value)
  write(paths.clientId, 'client_id', clientId)
  write(paths.subject, 'sub', subject)
  if (scopes.length > 0) write(paths.scopes, 'scope', scopes.join(' '))
  if (roles.length > 0) write(paths.roles, 'roles', [...roles])
  return { ...made, ...claims }
}
