// Simulates a client's steps from the URL to a login, with the code of `createAuthFetch`.
import { parseChallengeList, readChallenge } from '../../client/challenge.ts'
import type { ClientContext } from '../../client/context.ts'
import { discoverResource, discoverServer, type ResourceInfo } from '../../client/discovery.ts'
import { AuthError } from '../../client/errors.ts'
import { createOAuthHttp, type OAuthHttp } from '../../client/http.ts'
import { createNetPolicy } from '../../client/net-policy.ts'
import { resolveOptions } from '../../client/resolve-options.ts'
import type { ServerInfo } from '../../client/stores.ts'
import { createSecrets } from '../../client/text.ts'
import { createRequest, type Finding, reportOn, request } from './request.ts'

const METHODS = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt']

const challenge = reportOn('client: challenge')
const resource = reportOn('client: resource')
const issuerOf = reportOn('client: issuer')
const registration = reportOn('client: registration')
const authentication = reportOn('client: authentication')
const renewal = reportOn('client: renewal')
const response = reportOn('client: response')
const scopesOf = reportOn('client: scopes')

/** Registration methods in order of preference (MCP authorization, "Client Registration Approaches"). */
function examineRegistration(server: ServerInfo): Finding {
  const { issuer, registrationEndpoint, clientIdMetadataDocumentSupported: documents } = server
  const methods = [
    ...(documents ? ['client id metadata documents (clientMetadataDocumentUri, login --client-metadata)'] : []),
    ...(registrationEndpoint === undefined ? [] : ['dynamic registration']),
  ]
  if (methods.length > 0) return registration.ok(`${issuer} supports ${methods.join(' and ')}`)
  const fix = 'Let its operator register a client, and set clientId (login --client-id).'
  return registration.note(`${issuer} does not support automatic registration`, fix)
}

function examineMethods({ issuer, tokenEndpointAuthMethodsSupported: listed }: ServerInfo): Finding {
  if (listed === undefined) return authentication.ok(`${issuer} lists no methods: client_secret_basic or none`)
  const supported = listed.filter(method => METHODS.includes(method))
  const others = supported.filter(method => method !== 'none').join(', ')
  if (supported.length === 0) {
    const fix = `Enable one of ${METHODS.join(', ')} there, or implement clientAuthentication.`
    return authentication.wrong(`The token endpoint of ${issuer} supports only ${listed.join(', ')}`, fix)
  }
  if (supported.includes('none')) return authentication.ok(`public clients${others === '' ? '' : `, and ${others}`}`)
  return authentication.note(`no public clients: every client needs a secret or a key (${others})`)
}

function examineRefresh({ issuer, grantTypesSupported: grants, scopesSupported }: ServerInfo): Finding {
  if (grants !== undefined && !grants.includes('refresh_token'))
    return renewal.note(
      `${issuer} issues no refresh tokens: users have to log in again`,
      'Enable the grant refresh_token there.',
    )
  const offline = scopesSupported?.includes('offline_access') ? '; offline_access is requested' : ''
  return renewal.ok(`${grants === undefined ? 'grants are not listed' : 'refresh tokens'}${offline}`)
}

function examineResponse({ issuer, issParameterSupported }: ServerInfo): Finding {
  if (issParameterSupported) return response.ok('responses name their issuer (RFC 9207)')
  const fix = 'Enable authorization_response_iss_parameter_supported there, against mix-up attacks.'
  return response.note(`responses of ${issuer} do not name their issuer`, fix)
}

function examineServer(server: ServerInfo, attempts: string): Finding[] {
  const { issuer, metadataUrl, legacy } = server
  if (legacy) {
    const found = `${issuer} publishes no metadata [looked at ${attempts}]: clients use its /authorize, /token and /register`
    return [issuerOf.note(found, 'Publish /.well-known/oauth-authorization-server there.')]
  }
  return [
    issuerOf.ok(`${issuer}, by ${metadataUrl} [looked at ${attempts}]`),
    reportOn('client: pkce').ok('S256'),
    examineRegistration(server),
    examineMethods(server),
    examineRefresh(server),
    examineResponse(server),
  ]
}

export interface Attempt {
  readonly url: string
  readonly answer: string
}

export function createRecorder(serverUrl: string) {
  const options = resolveOptions({ serverUrl, interactive: 'never' })
  const secrets = createSecrets()
  const plain = createOAuthHttp({ fetch: options.fetch, policy: createNetPolicy(serverUrl, undefined), secrets })
  const attempts: Attempt[] = []
  const http: OAuthHttp = {
    ...plain,
    async getJson(url, about) {
      try {
        const answer = await plain.getJson(url, about)
        const kind = answer.status < 300 && answer.json === undefined ? ', no JSON' : ''
        attempts.push({ url, answer: `${answer.status}${kind}` })
        return answer
      } catch (error) {
        attempts.push({ url, answer: AuthError.is(error) ? error.code : 'no answer' })
        throw error
      }
    },
  }
  const ctx: ClientContext = { options, secrets, http, emit: () => undefined, now: Date.now }
  return { ctx, tried: () => attempts.splice(0) }
}

const describeAttempts = (all: readonly Attempt[]) => all.map(({ url, answer }) => `${url} (${answer})`).join(', ')

export function toFinding(check: string, thrown: unknown, attempts: readonly Attempt[]): Finding {
  const { message } = thrown as Error
  const { fix } = AuthError.is(thrown) ? thrown : {}
  const what = fix !== undefined && message.endsWith(`; ${fix}`) ? message.slice(0, -fix.length - 2) : message
  const places = attempts.length > 1 ? ` [looked at ${describeAttempts(attempts)}]` : ''
  return reportOn(check).wrong(`${what}${places}`, fix ?? 'This is unexpected. Report it with the text above.')
}

function describeChallenge(header: string): Finding {
  const schemes = parseChallengeList(header).map(({ scheme }) => scheme)
  if (schemes.length > 0) return challenge.ok(`401 with ${[...new Set(schemes)].join(', ')}`)
  const fix = 'Send WWW-Authenticate: Bearer resource_metadata="..." (mcp-host: the plugin resource-metadata).'
  return challenge.note('401 without a challenge: clients have to guess the metadata URL', fix)
}

function describeResource(info: ResourceInfo, url: string, attempts: readonly Attempt[]): Finding[] {
  if (info.legacy) {
    const found = `no resource metadata [looked at ${describeAttempts(attempts)}]: clients use the server's origin (2025-03-26)`
    const fix = 'Publish it (mcp-host: the plugin resource-metadata). legacyFallback: false refuses such servers.'
    return [resource.note(found, fix)]
  }
  const place = info.metadataUrl === undefined ? '' : ` at ${info.metadataUrl}`
  const findings = [resource.ok(`metadata${place}; tokens are requested for ${info.resource}`)]
  if (info.resource !== url && new URL(info.resource ?? url).origin === info.resource?.replace(/\/$/, ''))
    findings.push(resource.note(`tokens are for the whole origin ${info.resource}, not only for ${url}`))
  const [first, ...others] = info.authorizationServers
  if (others.length > 0) {
    const found = `${others.length + 1} authorization servers are listed; clients use the first, ${first}`
    findings.push(issuerOf.note(found, 'Select another one with authServerSelector.'))
  }
  return findings
}

function describeScopes(info: ResourceInfo, challenged: readonly string[] | undefined): Finding {
  const requested = challenged ?? info.scopesSupported
  if (requested)
    return scopesOf.ok(`a login requests ${requested.join(' ')} (from the ${challenged ? 'challenge' : 'metadata'})`)
  const fix = 'Set resource-metadata.scopesSupported of the server, or `scopes` of the client (login --scope).'
  return scopesOf.note('neither challenge nor metadata name scopes: a login requests none', fix)
}

export async function examineAsClient(url: string): Promise<Finding[]> {
  const signal = AbortSignal.timeout(60_000)
  const { ctx, tried: attempts } = createRecorder(url)
  let info: ResourceInfo
  const findings: Finding[] = []
  let challenged: readonly string[] | undefined
  try {
    const first = await request(url, createRequest('ping')).catch(() => undefined)
    const header = first?.headers['www-authenticate'] ?? ''
    const cue = first && readChallenge({ status: first.status, headers: new Headers({ 'www-authenticate': header }) })
    if (!cue) return []
    challenged = cue.scope
    findings.push(describeChallenge(header))
    info = await discoverResource(ctx, cue.resourceMetadata, signal)
  } catch (error) {
    return [...findings, toFinding('client: resource', error, attempts())]
  }
  findings.push(...describeResource(info, url, attempts()), describeScopes(info, challenged))
  for (const listed of info.authorizationServers) {
    try {
      const server = await discoverServer(ctx, listed, info.legacy, signal)
      findings.push(...examineServer(server, describeAttempts(attempts())))
    } catch (error) {
      findings.push(toFinding('client: issuer', error, attempts()))
    }
  }
  return findings
}
