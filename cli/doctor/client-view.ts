// Simulates a client's steps from the URL to a login, with the code of `createAuthFetch`.
import { parseChallenges, readCue } from '../../client/challenge.ts'
import type { ClientContext } from '../../client/context.ts'
import { discoverResource, discoverServer, type ResourceInfo } from '../../client/discovery.ts'
import { AuthError } from '../../client/errors.ts'
import { createOAuthHttp, type OAuthHttp } from '../../client/http.ts'
import { createNetPolicy } from '../../client/net-policy.ts'
import { resolveOptions } from '../../client/resolve-options.ts'
import type { ServerInfo } from '../../client/stores.ts'
import { createSecrets } from '../../client/text.ts'
import { type Finding, note, ok, wrong } from './ask.ts'

const METHODS = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt']

/** Registration methods in order of preference (MCP authorization, "Client Registration Approaches"). */
function examineRegistration({
  issuer,
  registrationEndpoint,
  clientIdMetadataDocumentSupported: documents,
}: ServerInfo): Finding {
  const ways = [
    documents && 'client id metadata documents (clientMetadataDocumentUri, login --client-metadata)',
    registrationEndpoint !== undefined && 'dynamic registration',
  ].filter(way => way !== false)
  if (ways.length > 0) return ok('client: registration', `${issuer} takes ${ways.join(', and ')}`)
  return note(
    'client: registration',
    `${issuer} does not register clients dynamically`,
    'ask its operator to register a client, and set clientId (login --client-id)',
  )
}

function examineMethods({ issuer, tokenEndpointAuthMethodsSupported: listed }: ServerInfo): Finding {
  const check = 'client: authentication'
  if (listed === undefined)
    return ok(check, `${issuer} lists no methods: client_secret_basic, and none for public clients`)
  const able = listed.filter(method => METHODS.includes(method))
  if (able.length === 0) {
    return wrong(
      check,
      `${issuer} accepts only ${listed.join(', ')} at its token endpoint`,
      `enable one of ${METHODS.join(', ')}, or use clientAuthentication`,
    )
  }
  if (able.includes('none'))
    return ok(check, `public clients, and ${able.filter(method => method !== 'none').join(', ') || 'no others'}`)
  return note(check, `no public clients: every client needs a secret or a key (${able.join(', ')})`)
}

function examineRefresh({ issuer, grantTypesSupported: grants, scopesSupported }: ServerInfo): Finding {
  const check = 'client: renewal'
  if (grants !== undefined && !grants.includes('refresh_token')) {
    return note(
      check,
      `${issuer} issues no refresh tokens: users log in again when a token expires`,
      'allow the grant refresh_token',
    )
  }
  const offline = scopesSupported?.includes('offline_access') ? '; offline_access is requested' : ''
  return ok(check, grants === undefined ? `grants are not listed${offline}` : `refresh tokens${offline}`)
}

function examineResponse({ issuer, issParameterSupported }: ServerInfo): Finding {
  const check = 'client: response'
  if (issParameterSupported) return ok(check, 'responses name their issuer (RFC 9207)')
  return note(
    check,
    `responses of ${issuer} do not name their issuer: a response of another server could be mistaken for them`,
    'enable authorization_response_iss_parameter_supported',
  )
}

function examineServer(server: ServerInfo, tried: string): Finding[] {
  const { issuer, metadataUrl, legacy } = server
  if (legacy) {
    return [
      note(
        'client: issuer',
        `${issuer} publishes no metadata [looked at ${tried}]: clients use /authorize, /token and /register of it`,
        'publish /.well-known/oauth-authorization-server there',
      ),
    ]
  }
  return [
    ok('client: issuer', `${issuer}, by ${metadataUrl} [looked at ${tried}]`),
    ok('client: pkce', 'S256'),
    examineRegistration(server),
    examineMethods(server),
    examineRefresh(server),
    examineResponse(server),
  ]
}

const CHECK = 'client: resource'

export interface Try {
  readonly url: string
  readonly answer: string
}

interface Watched {
  readonly ctx: ClientContext
  tried(): Try[]
}

export function createWatched(serverUrl: string): Watched {
  const options = resolveOptions({ serverUrl, interactive: 'never' })
  const secrets = createSecrets()
  const plain = createOAuthHttp({ fetch: options.fetch, policy: createNetPolicy(serverUrl, undefined), secrets })
  const tries: Try[] = []
  const http: OAuthHttp = {
    ...plain,
    async getJson(url, about) {
      try {
        const answer = await plain.getJson(url, about)
        const kind = answer.status < 300 && answer.json === undefined ? ', no JSON' : ''
        tries.push({ url, answer: `${answer.status}${kind}` })
        return answer
      } catch (error) {
        tries.push({ url, answer: AuthError.is(error) ? error.code : 'no answer' })
        throw error
      }
    },
  }
  return {
    ctx: { options, secrets, http, emit: () => undefined, now: Date.now },
    tried: () => tries.splice(0),
  }
}

const describeTries = (tries: readonly Try[]): string => tries.map(({ url, answer }) => `${url} (${answer})`).join(', ')

export function findingOf(check: string, thrown: unknown, tries: readonly Try[]): Finding {
  const error = thrown as Error
  const fix = AuthError.is(thrown) ? thrown.fix : undefined
  const what =
    fix !== undefined && error.message.endsWith(`; ${fix}`) ? error.message.slice(0, -fix.length - 2) : error.message
  const looked = tries.length > 1 ? ` [looked at ${describeTries(tries)}]` : ''
  return wrong(check, `${what}${looked}`, fix ?? 'this is unexpected: report it with the text above')
}

const REQUEST = { jsonrpc: '2.0', id: 1, method: 'ping' }

async function firstAnswer(url: string): Promise<Response | undefined> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const signal = AbortSignal.timeout(10_000)
  const body = JSON.stringify(REQUEST)
  try {
    const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
    await response.body?.cancel()
    return response
  } catch {
    return undefined
  }
}

function describeChallenge(response: Response): Finding {
  const schemes = parseChallenges(response.headers).map(({ scheme }) => scheme)
  if (schemes.length > 0) return ok('client: challenge', `401 with ${[...new Set(schemes)].join(', ')}`)
  return note(
    'client: challenge',
    '401 without a challenge: clients must guess the URL of the metadata',
    'the server should send WWW-Authenticate: Bearer resource_metadata="..." (mcp-host: the plugin resource-metadata)',
  )
}

function describeResource(info: ResourceInfo, url: string, tries: readonly Try[]): Finding[] {
  if (info.legacy) {
    return [
      note(
        CHECK,
        `no resource metadata [looked at ${describeTries(tries)}]: clients use the origin of the server as its authorization server (2025-03-26)`,
        'publish it (mcp-host: the plugin resource-metadata); legacyFallback: false refuses such servers',
      ),
    ]
  }
  const place = info.metadataUrl === undefined ? '' : ` at ${info.metadataUrl}`
  const findings = [ok(CHECK, `metadata${place}; tokens are requested for ${info.resource}`)]
  if (info.resource !== url && new URL(info.resource ?? url).origin === info.resource?.replace(/\/$/, '')) {
    findings.push(note(CHECK, `tokens are for the whole origin ${info.resource}, not for ${url} alone`))
  }
  const [first, ...others] = info.authorizationServers
  if (others.length > 0) {
    findings.push(
      note(
        'client: issuer',
        `${info.authorizationServers.length} authorization servers are listed; clients use the first, ${first}`,
        'authServerSelector picks another',
      ),
    )
  }
  return findings
}

function describeScopes(info: ResourceInfo, challenged: readonly string[] | undefined): Finding {
  const wanted = challenged ?? info.scopesSupported
  if (wanted)
    return ok(
      'client: scopes',
      `a login requests ${wanted.join(' ')} (from the ${challenged ? 'challenge' : 'metadata'})`,
    )
  return note(
    'client: scopes',
    'neither challenge nor metadata name scopes: a login requests none',
    'set resource-metadata.scopesSupported at the server, or `scopes` of the client (login --scope)',
  )
}

export async function examineAsClient(url: string): Promise<Finding[]> {
  const signal = AbortSignal.timeout(60_000)
  const { ctx, tried } = createWatched(url)
  let info: ResourceInfo
  const findings: Finding[] = []
  let challenged: readonly string[] | undefined
  try {
    const response = await firstAnswer(url)
    const cue = response && readCue(response)
    if (!cue) return []
    challenged = cue.scope
    findings.push(describeChallenge(response))
    info = await discoverResource(ctx, cue.resourceMetadata, signal)
  } catch (error) {
    return [...findings, findingOf(CHECK, error, tried())]
  }
  findings.push(...describeResource(info, url, tried()), describeScopes(info, challenged))
  for (const listed of info.authorizationServers) {
    try {
      const server = await discoverServer(ctx, listed, info.legacy, signal)
      findings.push(...examineServer(server, describeTries(tried())))
    } catch (error) {
      findings.push(findingOf('client: issuer', error, tried()))
    }
  }
  return findings
}
