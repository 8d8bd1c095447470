// The way of a client from the address to a login, step by step, with the client's own code: what it says here is what
// `createAuthFetch` does. Each fix names the option of the client or the key of the server's config.
import { parseChallenges, readCue } from '../../client/challenge.ts'
import type { ClientContext } from '../../client/context.ts'
import { discoverResource, discoverServer, type ResourceInfo } from '../../client/discovery.ts'
import { AuthError } from '../../client/errors.ts'
import { createOAuthHttp, type OAuthHttp } from '../../client/http.ts'
import { createNetPolicy } from '../../client/net-policy.ts'
import { resolveOptions } from '../../client/resolve-options.ts'
import { createSecrets } from '../../client/secrets.ts'
import { examineServer } from './client-server.ts'
import { type Finding, note, ok, wrong } from './finding.ts'

const CHECK = 'client: resource'

/** An address that was asked for a document, and what it answered. */
export interface Try {
  readonly url: string
  readonly answer: string
}

/** A client that writes down where it looks. */
interface Watched {
  readonly ctx: ClientContext
  /** What was tried since the last time. */
  tried(): Try[]
}

function createWatched(serverUrl: string): Watched {
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

export const describeTries = (tries: readonly Try[]): string =>
  tries.map(({ url, answer }) => `${url} (${answer})`).join(', ')

/** What the client throws, as a finding. */
export function findingOf(check: string, thrown: unknown, tries: readonly Try[]): Finding {
  const error = thrown as Error
  const fix = AuthError.is(thrown) ? thrown.fix : undefined
  const what =
    fix !== undefined && error.message.endsWith(`; ${fix}`) ? error.message.slice(0, -fix.length - 2) : error.message
  const looked = tries.length > 1 ? ` [looked at ${describeTries(tries)}]` : ''
  return wrong(check, `${what}${looked}`, fix ?? 'this is unexpected: report it with the text above')
}

const REQUEST = { jsonrpc: '2.0', id: 1, method: 'ping' }

/** Undefined where there is none. */
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
    '401 without a challenge: a client has to guess where the metadata is',
    'the server should send WWW-Authenticate: Bearer resource_metadata="..." (mcp-host: the plugin resource-metadata)',
  )
}

function describeResource(info: ResourceInfo, url: string, tries: readonly Try[]): Finding[] {
  if (info.legacy) {
    return [
      note(
        CHECK,
        `no resource metadata [looked at ${describeTries(tries)}]: clients take the server's own origin for its authorization server (2025-03-26)`,
        'publish it (mcp-host: the plugin resource-metadata); legacyFallback: false refuses such servers',
      ),
    ]
  }
  const place = info.metadataUrl === undefined ? '' : ` at ${info.metadataUrl}`
  const findings = [ok(CHECK, `metadata${place}; tokens are asked for ${info.resource}`)]
  if (info.resource !== url && new URL(info.resource ?? url).origin === info.resource?.replace(/\/$/, '')) {
    findings.push(note(CHECK, `tokens are for the whole origin ${info.resource}, not for ${url} alone`))
  }
  const [first, ...others] = info.authorizationServers
  if (others.length > 0) {
    findings.push(
      note(
        'client: issuer',
        `${info.authorizationServers.length} authorization servers are listed; clients take the first, ${first}`,
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
      `a login asks for ${wanted.join(' ')} (of the ${challenged ? 'challenge' : 'metadata'})`,
    )
  return note(
    'client: scopes',
    'neither challenge nor metadata name scopes: a login asks for none',
    'set resource-metadata.scopesSupported at the server, or `scopes` of the client (login --scope)',
  )
}

/** What a client meets on its way; nothing for a server that asks nobody to log in, or does not answer. */
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
