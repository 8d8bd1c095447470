// The plugin `dev-auth-server`: auth-bridge at /dev-auth with the development provider, on loopback addresses only.
import { isLoopback, SCOPE } from '../../../core/auth.ts'
import { closed, definePlugin, type InternalHost } from '../../../core/internal.ts'
import { type OptionsOf, StartError } from '../../../core/plugin.ts'
import { DEVELOPMENT_OPTIONS, type FilledAuthBridge, texts } from '../options.ts'
import { NO_UPSTREAM } from '../upstream-context.ts'

/** Throws a StartError if other machines can reach this host, or in production. */
export function refuseExposedHost({ config: { at, http }, log }: InternalHost): void {
  const refuse = (why: string) => new StartError('MH2102', why, { at })
  if (process.env['NODE_ENV'] === 'production')
    throw refuse('it signs in anyone without a password; it does not run in production')
  if (!isLoopback(http.host)) throw refuse(`http.host is ${http.host}; it runs on a loopback address only`)
  const { publicUrl } = http
  if (publicUrl !== undefined && !isLoopback(new URL(publicUrl).hostname))
    throw refuse(`http.publicUrl is ${publicUrl}; it runs under a loopback address only`)
  log.warn(
    { code: 'MH2127', at },
    'Development authorization server enabled: anyone who can reach this host can sign in.',
  )
}

const LOOPBACK = ['http://127.0.0.1:*/**?*', 'http://[::1]:*/**?*', 'http://localhost:*/**?*']

const bridgeOptions = ({ scopes, ...provider }: FilledDevAuthServerOptions): FilledAuthBridge => ({
  provider: { type: 'development', ...provider },
  allow: { everyone: true },
  // A rule without conditions grants the scope to all users.
  scopes: Object.fromEntries((scopes ?? []).map(scope => [scope, {}])),
  roles: {},
  clients: { metadataDocuments: true, registration: true, redirects: LOOPBACK, fixed: [] },
  page: {},
  path: '/dev-auth',
  accessToken: '1h',
  refreshToken: '1d',
  login: '1d',
  session: '1d',
  refreshGrace: '60s',
  trustedIssuers: [],
})

const OPTIONS = closed(
  {
    ...DEVELOPMENT_OPTIONS,
    scopes: {
      ...texts,
      items: { ...texts.items, ...SCOPE },
      description: 'Scopes that clients can request, in addition to those in the metadata documents.',
    },
  },
  {
    description:
      'For development: auth-bridge at /dev-auth with the provider `development`, on loopback addresses only.',
  },
)

export interface DevAuthServerOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledDevAuthServerOptions extends OptionsOf<typeof OPTIONS, true> {}

export const devAuthServer = definePlugin<DevAuthServerOptions, FilledDevAuthServerOptions>({
  options: OPTIONS,
  provides: ['authorizationServer'],
  context: NO_UPSTREAM,
  async setup(host, options) {
    refuseExposedHost(host)
    for (const [index, { id }] of (options.users ?? []).entries()) {
      if (options.users?.findIndex(user => user.id === id) === index) continue
      host.report(
        new StartError('MH2103', `another user has the id "${id}" as well`, {
          at: [...host.config.at, 'users', index, 'id'],
        }),
      )
    }
    const { setUpBridge } = await import('../set-up.ts')
    await setUpBridge(host, bridgeOptions(options))
  },
})
