// Groups of somebody who is in more of them than fit into an Entra token (200): the token says so, and Microsoft Graph
// says which they are.
import type { Claims } from '../../../core/auth.ts'
import { isLoopback } from '../../../core/auth.ts'
import { isObject } from '../../../core/index.ts'
import { jsonOf } from './ask.ts'
import type { Connection } from './connection.ts'
import { refresh } from './refresh.ts'
import { type ProviderTokens, UpstreamError } from './upstream.ts'
import { askAs } from './userinfo.ts'

const isOverage = ({ _claim_names: names, hasgroups }: Claims) =>
  hasgroups === true || hasgroups === 'true' || (isObject(names) && names['groups'] !== undefined)

/** The metadata of each cloud names its own; a test's provider names itself. */
function graphOrigin({ server, settings }: Connection): string {
  const named = server['msgraph_host']
  const host = typeof named === 'string' && /^[a-z0-9.-]+(?::\d+)?$/i.test(named) ? named : 'graph.microsoft.com'
  return `${settings.local && isLoopback(host.replace(/:\d+$/, '')) ? 'http' : 'https'}://${host}`
}

/** An access token is for one API: for Graph where no scope of it is of another, which are written with its URI. */
const isForGraph = (scopes: readonly string[], origin: string) =>
  scopes.every(scope => !/^[a-z]+:\/\//i.test(scope) || scope.startsWith(`${origin}/`))

/** `.default` would be every permission that was ever consented to; User.Read is all that the question takes. */
async function tokenForGraph(connection: Connection, tokens: ProviderTokens, origin: string) {
  if (isForGraph(tokens.scopes, origin)) return { token: tokens.accessToken, tokens }
  const other = await refresh(connection, tokens, `${origin}/User.Read`)
  const { refreshToken } = other.tokens
  return { token: other.tokens.accessToken, tokens: { ...tokens, ...(refreshToken && { refreshToken }) } }
}

async function askGraph(connection: Connection, token: string, origin: string): Promise<string[]> {
  const response = await askAs(connection, `${origin}/v1.0/me/getMemberObjects`, token, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ securityEnabledOnly: false }),
  })
  const body = await jsonOf(response)
  const ids = isObject(body) ? body['value'] : undefined
  if (!Array.isArray(ids)) throw new UpstreamError('untrusted', 'Microsoft Graph answers without a list of groups')
  return ids.filter((id): id is string => typeof id === 'string')
}

const FIX =
  'in the Microsoft Entra admin center, App registrations, your application: grant Microsoft Graph User.Read under API permissions, ' +
  'or set Token configuration, groups claim, to "Groups assigned to the application"'

/**
 * Undefined where the token has all groups. Groups are undefined where Graph does not say them; where it cannot be reached
 * this rejects: a person is not refused for that.
 */
export async function readGroupsOverage(connection: Connection, tokens: ProviderTokens, claims: Claims) {
  if (!isOverage(claims)) return undefined
  const origin = graphOrigin(connection)
  let kept = tokens
  try {
    const graph = await tokenForGraph(connection, tokens, origin)
    kept = graph.tokens
    return { groups: await askGraph(connection, graph.token, origin), tokens: kept }
  } catch (error) {
    if (error instanceof UpstreamError && error.fault === 'unavailable') throw error
    connection.log.warn(
      { err: error, fix: FIX },
      'somebody is in too many groups for a token, and Graph does not say which',
    )
    return { groups: undefined, tokens: kept }
  }
}
