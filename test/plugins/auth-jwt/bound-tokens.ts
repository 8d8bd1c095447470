// Tokens that are bound to a key, and a host that takes them: for the tests of DPoP.
import { boundTo } from '../../support/dpop.ts'
import { startProtected } from '../../support/protected-host.ts'
import type { TestConfig } from '../../support/start-host.ts'
import { inSeconds, makeKey, signToken, toJwk } from '../../support/test-issuer.ts'

export const ISSUER = 'https://issuer.test'
export const issuerKey = makeKey('of-issuer')
export const key = makeKey('mine')
export const thief = makeKey('of-a-thief')

/** A host that takes the tokens of this issuer. */
export const startBound = (plugins: TestConfig['plugins'] = {}) =>
  startProtected({ 'auth-jwt': { issuer: ISSUER, keys: [toJwk(issuerKey)] }, ...plugins })

/** A token for this address; `bound`: what it says of its key. */
export const tokenFor = (url: string, bound: object = boundTo(key), changes: Record<string, unknown> = {}) =>
  signToken(
    { iss: ISSUER, sub: 'ann', aud: url, client_id: 'c', exp: inSeconds(300), iat: inSeconds(0), ...bound, ...changes },
    issuerKey,
  )
