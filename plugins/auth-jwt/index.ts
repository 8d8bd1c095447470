// Authenticates callers by JWT access tokens, and enforces `authorize` of routes.
import { requireResource } from '../../core/auth.ts'
import { definePlugin, type InternalHost } from '../../core/internal.ts'
import { authenticateBearer, authorizeRoute, StartError, type VerifyToken } from '../../core/plugin.ts'
import { enforceDPoP } from '../families/dpop/index.ts'
import { registerIssuers } from '../families/issuer-keys/index.ts'
import { createProfile, findOwnIssuers, type Profile } from './issuers.ts'
import { type AuthJwtOptions, authJwtSchema, type FilledAuthJwt } from './options.ts'
import { createVerifier } from './verify-token.ts'

export { auth0, cognito, entra, keycloak, okta } from './presets.ts'

const KEY_AGE = {
  name: 'mcp_host_key_age_seconds',
  help: 'How long ago an issuer’s key set was read.',
  labels: ['issuer'],
}

const KEYS_UNAVAILABLE = 'the keys of the issuer cannot be fetched; see the log'

function warnOfIssuerMismatch(host: InternalHost, { issuers }: Profile): void {
  const listed = host.routes.flatMap(route => host.services.slot('protectedResource', route).serversOf?.(route) ?? [])
  const others = [...new Set(listed)].filter(server => !issuers.has(server))
  if (others.length === 0 || issuers.size === 0) return
  const what = `the metadata names ${others.join(', ')}, but only tokens from ${[...issuers.keys()].join(', ')} are accepted`
  host.report(
    new StartError('MH2010', `${what}; configure the same issuers in both places`, { at: host.config.at }),
    'warning',
  )
}

/** The plugin `auth-jwt` as a configured value, for configs that give it another name. */
export const authJwt = definePlugin<AuthJwtOptions, FilledAuthJwt>({
  options: authJwtSchema,
  provides: ['user', 'authorize'],
  setup(host, options) {
    const profile = createProfile(host, options)
    registerIssuers(host, profile.issuers)
    let verify: VerifyToken = () => ({ unavailable: 'the server is starting', retryAfter: 1 })
    host.authenticate(authenticateBearer(host, (...args) => verify(...args), enforceDPoP(host, options.dpop)))
    host.authorize(authorizeRoute(host))
    host.onReady(() => {
      const own = findOwnIssuers(host, options, profile)
      verify = createVerifier({
        profile,
        own,
        now: host.clock.now,
        resourceAt: ({ route, params }) => host.services.slot('protectedResource', route).resourceOf(route, params),
      })
      const perRoute = [...profile.issuers.values(), ...own.values()].some(({ audience }) => audience === undefined)
      if (perRoute && profile.validate.audience) requireResource(host)
      if (host.config.purpose === 'inspect' && own.size === 0) warnOfIssuerMismatch(host, profile)
    })
    for (const [issuer, keys] of profile.remote) {
      host.metrics.gauge(KEY_AGE, () => {
        const age = keys.age()
        return age === undefined ? [] : [[age / 1_000, { issuer }]]
      })
      host.readiness(`${host.name}: keys of ${issuer}`, async () => (await keys.checkUsable()) || KEYS_UNAVAILABLE)
      host.onStart(() => keys.warmUp())
      host.onClose(() => keys.close())
    }
  },
  async underTest(options) {
    const { createTestIssuer } = await import('./test-issuer.ts')
    return createTestIssuer(options)
  },
})
