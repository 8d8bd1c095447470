// For `testHost`: replaces the issuer keys with a test key.
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { writeClaim } from '../../core/auth.ts'
import { makeClaims, type UnderTest } from '../../core/plugin.ts'
import type { AuthJwtOptions, IssuerOptions } from './options.ts'

/** The issuer if its environment variable is missing. */
const DEFAULT_ISSUER = 'https://issuer.test'
const KID = 'test'

export function createTestIssuer(options: AuthJwtOptions): UnderTest<AuthJwtOptions> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: KID, alg: 'ES256', use: 'sig' }]
  const withTestKey = ({ authority, issuer, jwksUri: _, keys: __, secret: ___, ...rest }: IssuerOptions) => ({
    ...rest,
    issuer: issuer ?? authority ?? DEFAULT_ISSUER,
    keys,
  })
  const { issuers, algorithms: _, ...topLevel } = options
  const isNamed = [topLevel.authority, topLevel.issuer, topLevel.jwksUri, topLevel.keys, topLevel.secret].some(
    value => value !== undefined,
  )
  const ownIssuer = topLevel.ownIssuer ?? (!issuers && !isNamed)
  const rest = { ...topLevel, ...(ownIssuer && { ownIssuer }) }
  const [first = rest] = issuers ?? []
  const { issuer } = withTestKey(first)
  const { audience, claims: paths = {} } = { ...rest, ...first }
  return {
    options: issuers ? { ...rest, issuers: issuers.map(withTestKey) } : withTestKey(rest),
    issue(user, resource, lifetime) {
      const exp = Math.floor(Date.now() / 1_000) + lifetime
      const claims: Record<string, unknown> = { iss: issuer, jti: randomUUID() }
      writeClaim(claims, [paths.audience ?? 'aud'].flat()[0] ?? 'aud', [audience ?? resource].flat()[0])
      for (const [path, value] of Object.entries(paths.required ?? {})) writeClaim(claims, path, value)
      const lifetimeClaims = { exp, iat: Math.min(exp, Math.floor(Date.now() / 1_000)) }
      const payload = { ...claims, ...lifetimeClaims, ...makeClaims(user, paths) }
      return jwt.sign(payload, privateKey, { algorithm: 'ES256', keyid: KID, header: { alg: 'ES256', typ: 'at+jwt' } })
    },
  }
}
