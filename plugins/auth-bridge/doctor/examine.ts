// `mcp-host doctor --config`, for the bridge: asks the company's provider with the operator's own credentials what a first
// sign-in would show, and nothing is changed there. No person, and no running host, is needed.
import type { Examination } from '../../../core/auth.ts'
import { createIssuerKeys } from '../../families/issuer-keys/index.ts'
import { type FilledAuthBridge, isDevelopment } from '../options.ts'
import { type Connection, createConnector } from '../upstream/connection.ts'
import { type Settings, settle } from '../upstream/settings.ts'
import { scopesOf } from '../upstream/sign-in.ts'
import { checkAuthorization } from './ask-authorization.ts'
import { checkKeys } from './ask-keys.ts'
import { checkToken } from './ask-token.ts'
import { type Findings, failed, note, ok, wrong } from './finding.ts'

const AGAIN = 'people sign in again whenever the token of the provider ends'

function checkRenewal(connection: Connection): Findings {
  const { settings, server } = connection
  const { kind, type, parameters } = settings
  const check = 'renewal'
  const grants = server.grant_types_supported
  if (grants && !grants.includes('refresh_token'))
    return [note(check, `the provider lists no grant refresh_token: ${AGAIN}`)]
  if (type === 'google' && parameters['access_type'] !== 'offline')
    return [
      wrong(
        check,
        `without access_type=offline Google gives no refresh token: ${AGAIN}`,
        'leave access_type out of `parameters`',
      ),
    ]
  if (kind.offline !== false && !scopesOf(connection).includes('offline_access')) {
    const fix = settings.scopes ? 'add offline_access to `scopes`' : 'switch on offline_access at the provider'
    return [note(check, `offline_access is not asked for: ${AGAIN}`, fix)]
  }
  return [ok(check, 'what a refresh token takes is asked for')]
}

/** These list all that they know; others leave out the scopes of APIs. Some ignore what they do not know, and say nothing. */
const LISTS_SCOPES = new Set(['oidc', 'okta', 'keycloak'])

function checkScopes(connection: Connection): Findings {
  const { settings, server } = connection
  const listed: readonly unknown[] | undefined = server.scopes_supported
  if (!listed || !LISTS_SCOPES.has(settings.type)) return []
  const unheard = scopesOf(connection).filter(scope => !listed.includes(scope))
  if (unheard.length === 0) return []
  const fix = 'correct `scopes`; the scope of an API may be right all the same'
  return [note('scopes', `the provider does not list ${unheard.join(', ')}`, fix)]
}

/** What the metadata says of what we do. */
function checkOffers(connection: Connection): Findings {
  const { settings, server } = connection
  const { authMethod } = settings
  const findings = checkScopes(connection)
  const methods = server.token_endpoint_auth_methods_supported
  if (authMethod !== undefined && methods && methods.length > 0 && !methods.includes(authMethod))
    findings.push(
      wrong(
        'client secret',
        `the provider does not list ${authMethod}, but ${methods.join(', ')}`,
        'set or leave out authMethod',
      ),
    )
  const challenges = server.code_challenge_methods_supported
  if (challenges && !challenges.includes('S256'))
    findings.push(note('provider', 'it does not list S256: codes are without PKCE there, or it leaves it out'))
  return findings
}

async function checkProvider(
  settings: Settings,
  redirectUri: string | undefined,
  log: Examination['log'],
): Promise<Findings> {
  let connection: Connection
  try {
    connection = await createConnector(settings, log, undefined)()
  } catch (error) {
    return [failed('provider', error)]
  }
  const found =
    settings.issuer === undefined ? 'endpoints are given' : `the metadata of ${settings.issuer} is of this issuer`
  const known = [
    ok('provider', found),
    ...(await checkKeys(connection)),
    ...checkOffers(connection),
    ...checkRenewal(connection),
  ]
  if (redirectUri === undefined)
    return [...known, note('redirect URI', 'not looked at: nobody knows where this host will be', 'set http.publicUrl')]
  return [
    ...known,
    ...(await checkAuthorization(connection, redirectUri)),
    ...(await checkToken(connection, redirectUri)),
  ]
}

async function checkIssuers({ trustedIssuers }: FilledAuthBridge, log: Examination['log']): Promise<Findings> {
  const found = trustedIssuers.map(async ({ issuer, jwksUri }) => {
    const times = { maxAge: 1_000, maxStale: 1_000 }
    const keys = createIssuerKeys({ issuer, jwksUri, ...times, loose: false, log })
    try {
      const fix = 'check issuer and jwksUri, and let this machine reach them'
      return (await keys.usable())
        ? ok('trusted issuer', `the keys of ${issuer} can be fetched`)
        : wrong('trusted issuer', `the keys of ${issuer} cannot be fetched: its assertions are put off`, fix)
    } finally {
      keys.close()
    }
  })
  return Promise.all(found)
}

/** `examine` of the plugin. */
export async function examine(options: FilledAuthBridge, { at, log, url }: Examination): Promise<Findings> {
  const settings = settle(options.provider, [...at, 'provider'])
  const [provider, issuers] = await Promise.all([
    isDevelopment(options)
      ? [note('provider', 'development: anyone signs in as any user', 'set an identity provider in production')]
      : checkProvider(settings, url(`${options.path}/callback`), log),
    checkIssuers(options, log),
  ])
  return [...provider, ...issuers]
}
