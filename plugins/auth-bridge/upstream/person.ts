// Reads the user from the ID token, userinfo and vendor APIs.
import { basicCredentials, claimAt, isLoopback } from '../../../core/auth.ts'
import { type Claims, isObject } from '../../../core/plugin.ts'
import { type Connection, checking, fetchAs, fetchUserinfo, jsonOf, refresh, through } from './connection.ts'
import type { Settings } from './settings.ts'
import {
  type Person,
  type ProviderTokens,
  refusalError,
  refusalIn,
  type SignedIn,
  UpstreamError,
  unreadable,
} from './upstream.ts'

const isOverage = ({ _claim_names: names, hasgroups }: Claims) =>
  hasgroups === true || hasgroups === 'true' || (isObject(names) && names['groups'] !== undefined)

function graphOrigin({ server, settings }: Connection): string {
  const named = server['msgraph_host']
  const host = typeof named === 'string' && /^[a-z0-9.-]+(?::\d+)?$/i.test(named) ? named : 'graph.microsoft.com'
  return `${settings.local && isLoopback(host.replace(/:\d+$/, '')) ? 'http' : 'https'}://${host}`
}

/** True if the access token is for Graph. A token has one audience: Graph, unless a scope has another URI. */
const isForGraph = (scopes: readonly string[], origin: string) =>
  scopes.every(scope => !/^[a-z]+:\/\//i.test(scope) || scope.startsWith(`${origin}/`))

/** `.default` would request every consented permission; User.Read is sufficient. */
async function tokenForGraph(connection: Connection, tokens: ProviderTokens, origin: string) {
  if (isForGraph(tokens.scopes, origin)) return { token: tokens.accessToken, tokens }
  const other = await refresh(connection, tokens, `${origin}/User.Read`)
  const { refreshToken } = other.tokens
  return { token: other.tokens.accessToken, tokens: { ...tokens, ...(refreshToken && { refreshToken }) } }
}

async function fetchGraph(connection: Connection, token: string, origin: string): Promise<string[]> {
  const response = await fetchAs(connection, `${origin}/v1.0/me/getMemberObjects`, token, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ securityEnabledOnly: false }),
  })
  const body = await jsonOf(response)
  const ids = isObject(body) ? body['value'] : undefined
  if (!Array.isArray(ids)) throw new UpstreamError('untrusted', 'Microsoft Graph returned no list of groups')
  return ids.filter((id): id is string => typeof id === 'string')
}

const GROUPS_FIX =
  'in the Microsoft Entra admin center, App registrations, your application: grant Microsoft Graph User.Read under API permissions, ' +
  'or set Token configuration, groups claim, to "Groups assigned to the application"'

/** Reads groups from Graph. Undefined if the token has all groups. Rejects if Graph is unavailable. */
async function readGroupsOverage(connection: Connection, tokens: ProviderTokens, claims: Claims) {
  if (!isOverage(claims)) return undefined
  const origin = graphOrigin(connection)
  let kept = tokens
  try {
    const graph = await tokenForGraph(connection, tokens, origin)
    kept = graph.tokens
    return { groups: await fetchGraph(connection, graph.token, origin), tokens: kept }
  } catch (error) {
    if (error instanceof UpstreamError && error.fault === 'unavailable') throw error
    connection.log.warn(
      { code: 'MH2146', err: error, fix: GROUPS_FIX },
      'a user is in too many groups for a token, and Microsoft Graph does not list them',
    )
    return { groups: undefined, tokens: kept }
  }
}

interface Before {
  readonly idToken?: Claims | undefined
  readonly last?: SignedIn | undefined
  /** Userinfo is required, because it is the only proof that the user can sign in. */
  readonly mustAnswer?: boolean
}

export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string' && value !== '') return value
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : undefined
}

export function firstText(claims: Claims, paths: readonly string[]): string | undefined {
  for (const path of paths) {
    const text = textOf(claimAt(claims, path))
    if (text !== undefined) return text
  }
  return undefined
}

export function groupsAt(claims: Claims, paths: readonly string[]): string[] | undefined {
  const found = paths.map(path => claimAt(claims, path) ?? undefined).filter(value => value !== undefined)
  if (found.length === 0) return undefined
  return [...new Set(found.flat().filter((group): group is string => typeof group === 'string' && group !== ''))]
}

/** Matches addresses with exactly one `@` and no ambiguous characters. */
const ADDRESS = /^[^\s@<>()",;:\\]+@[^\s@<>()",;:\\]+$/

export function addressOf(value: unknown): string | undefined {
  const address = textOf(value)?.toLowerCase()
  return address !== undefined && ADDRESS.test(address) ? address : undefined
}

function emailAt(claims: Claims, { claims: places, kind, trustEmail }: Settings): string | undefined {
  for (const path of places.email) {
    const address = addressOf(claimAt(claims, path))
    if (address === undefined) continue
    // Verification claims apply to `email` only.
    if (trustEmail || (path === 'email' && kind.verifiedEmail(claims, address))) return address
  }
  return undefined
}

/** Merges userinfo over earlier claims. An e-mail address keeps its own verification. */
function merge(base: Claims, over: Claims): Claims {
  if (!('email' in over)) return { ...base, ...over }
  const { email: _, email_verified: __, xms_edov: ___, ...rest } = base
  return { ...rest, ...over }
}

async function openidClaims(connection: Connection, tokens: ProviderTokens, before: Before): Promise<Claims> {
  const { settings, server, log } = connection
  const { idToken, last, mustAnswer = false } = before
  const base = idToken ?? last?.person.claims ?? {}
  const whole = emailAt(base, settings) !== undefined && groupsAt(base, settings.claims.groups) !== undefined
  const usesUserinfo = settings.kind.asksUserinfo && server.userinfo_endpoint !== undefined
  if (!mustAnswer && (!usesUserinfo || (idToken && whole))) return base
  try {
    return merge(base, await fetchUserinfo(connection, tokens.accessToken, textOf(base['sub'])))
  } catch (error) {
    const optional = !mustAnswer && error instanceof UpstreamError && /^(?:refused|misconfigured)$/.test(error.fault)
    if (!optional) throw error
    const fix = 'configure the provider to add email and groups to the ID token, or to allow userinfo requests'
    log.warn({ code: 'MH2144', err: error, fix }, 'userinfo does not respond: using only the ID token')
    return base
  }
}

function personOf(settings: Settings, claims: Claims, groups: readonly string[] | undefined): Person {
  const { claims: places, type } = settings
  const subject = firstText(claims, places.subject)
  if (subject === undefined) {
    throw new UpstreamError('misconfigured', `the provider returned no subject at ${places.subject.join(' or ')}`, {
      fix: `set provider.claims.subject to the user id claim of ${type} calls the id of a person; never an e-mail address`,
    })
  }
  const name = firstText(claims, places.name)
  const email = emailAt(claims, settings)
  return { subject, ...(name !== undefined && { name }), ...(email !== undefined && { email }), groups, claims }
}

export async function readPerson(connection: Connection, tokens: ProviderTokens, before: Before): Promise<SignedIn> {
  const { settings } = connection
  const { kind, type, claims: places } = settings
  const claims = kind.openid
    ? await openidClaims(connection, tokens, before)
    : type === 'github'
      ? await githubClaims(connection, tokens)
      : await fetchUserinfo(connection, tokens.accessToken, undefined)
  const overage = type === 'entra' ? await readGroupsOverage(connection, tokens, claims) : undefined
  const groups = overage ? overage.groups : groupsAt(claims, places.groups)
  return { person: personOf(settings, claims, groups), tokens: overage?.tokens ?? tokens }
}

export async function revoke(connection: Connection, tokens: ProviderTokens): Promise<void> {
  const { oauth, server, client, authenticate, settings } = connection
  if (settings.type === 'github') return deleteGrant(connection, tokens)
  if (server.revocation_endpoint === undefined) return
  const { refreshToken, accessToken } = tokens
  const token = refreshToken ?? accessToken
  const hint = refreshToken === undefined ? 'access_token' : 'refresh_token'
  const response = await checking('a revocation', () =>
    oauth.revocationRequest(server, client, authenticate, token, {
      ...through(connection),
      additionalParameters: { token_type_hint: hint },
    }),
  )
  if (response.status === 200 || response.status === 204) return
  const what = 'the revocation endpoint'
  const refusal = refusalIn(await jsonOf(response))
  if (!refusal) throw unreadable(what, response.status)
  // Google sends this for an expired token, others for a token type that they cannot revoke.
  if (refusal.code === 'invalid_token' || refusal.code === 'unsupported_token_type') return
  throw refusalError(refusal, { type: settings.type, what, secrets: [token, settings.clientSecret] })
}

const ACCEPT = 'application/vnd.github+json'
const PER_PAGE = 100
const MAX_PAGES = 10

/** Returns `https://api.github.com/user`, or `https://<host>/api/v3/user` on GitHub Enterprise Server. */
const userUrl = ({ server }: Connection) => (server.userinfo_endpoint ?? '').replace(/\/$/, '')

const hasNext = (response: Response) => /<[^>]*>\s*;[^,]*\brel="?next\b/i.test(response.headers.get('link') ?? '')

async function readList(connection: Connection, path: string, { accessToken }: ProviderTokens) {
  const found: Record<string, unknown>[] = []
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const url = `${userUrl(connection)}${path}?per_page=${PER_PAGE}&page=${page}`
    const response = await fetchAs(connection, url, accessToken, { accept: ACCEPT })
    const body = await jsonOf(response)
    if (!Array.isArray(body)) throw new UpstreamError('untrusted', `GitHub returned no list at /user${path}`)
    found.push(...body.filter(isObject))
    if (!hasNext(response)) return found
  }
  connection.log.warn(
    { code: 'MH2142', path, pages: MAX_PAGES },
    'a GitHub list exceeds the limit: the remaining entries are ignored',
  )
  return found
}

async function allowed<Value>(
  { log }: Connection,
  fix: string,
  read: () => Promise<Value>,
): Promise<Value | undefined> {
  try {
    return await read()
  } catch (error) {
    const denied = error instanceof UpstreamError && (error.fault === 'refused' || error.fault === 'misconfigured')
    if (!denied) throw error
    log.warn({ code: 'MH2143', err: error, fix }, 'GitHub returned incomplete data of a user who signed in')
    return undefined
  }
}

async function readEmail(connection: Connection, tokens: ProviderTokens): Promise<string | undefined> {
  const fix = 'add user:email to `scopes`; for a GitHub App, add the account permission "Email addresses", read-only'
  const addresses = await allowed(connection, fix, () => readList(connection, '/emails', tokens))
  const primary = addresses?.find(({ primary, verified }) => primary === true && verified === true)?.['email']
  return typeof primary === 'string' ? primary : undefined
}

async function readGroups(connection: Connection, tokens: ProviderTokens): Promise<string[] | undefined> {
  const fix =
    'add read:org to `scopes`, and let the organization approve the application; for a GitHub App, add the organization permission "Members", read-only'
  return allowed(connection, fix, async () => {
    const orgs = await readList(connection, '/orgs', tokens)
    const teams = await readList(connection, '/teams', tokens)
    return [
      ...orgs.flatMap(({ login }) => (typeof login === 'string' ? login : [])),
      ...teams.flatMap(({ slug, organization }) => {
        const org = isObject(organization) ? organization['login'] : undefined
        return typeof slug === 'string' && typeof org === 'string' ? `${org}/${slug}` : []
      }),
    ]
  })
}

async function githubClaims(connection: Connection, tokens: ProviderTokens): Promise<Claims> {
  // The e-mail address of the public profile is unverified.
  const {
    email: _,
    email_verified: __,
    groups: ___,
    ...account
  } = await fetchUserinfo(connection, tokens.accessToken, undefined)
  const email = await readEmail(connection, tokens)
  const groups = await readGroups(connection, tokens)
  return { ...account, ...(email !== undefined && { email, email_verified: true }), ...(groups && { groups }) }
}

/** Revokes the whole grant; GitHub lacks RFC 7009. */
async function deleteGrant(connection: Connection, { accessToken }: ProviderTokens): Promise<void> {
  const { settings, fetch } = connection
  const { clientId, clientSecret = '' } = settings
  const base = userUrl(connection).replace(/\/user$/, '')
  const response = await fetch(`${base}/applications/${encodeURIComponent(clientId)}/grant`, {
    method: 'DELETE',
    headers: {
      Authorization: basicCredentials(clientId, clientSecret),
      Accept: ACCEPT,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ access_token: accessToken }),
  })
  if (![204, 404, 422].includes(response.status)) {
    throw new UpstreamError('misconfigured', `GitHub answers ${response.status} where a grant is to end`, {
      fix: 'check clientId and clientSecret',
    })
  }
}
