// GitHub API: user, verified e-mail address, organizations, teams and revocation.
import { type Claims, isObject } from '../../../core/plugin.ts'
import { basicCredentials, type Connection, jsonOf, through } from './connection.ts'
import { refusalError, refusalIn, unreadable } from './refusal.ts'
import { askAs, askUserinfo, checking } from './tokens.ts'
import { type ProviderTokens, UpstreamError } from './upstream.ts'

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

/** `https://api.github.com/user`, or `https://<host>/api/v3/user` on GitHub Enterprise Server. */
const userUrl = ({ server }: Connection) => (server.userinfo_endpoint ?? '').replace(/\/$/, '')

const hasNext = (response: Response) => /<[^>]*>\s*;[^,]*\brel="?next\b/i.test(response.headers.get('link') ?? '')

async function readList(connection: Connection, path: string, { accessToken }: ProviderTokens) {
  const found: Record<string, unknown>[] = []
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const url = `${userUrl(connection)}${path}?per_page=${PER_PAGE}&page=${page}`
    const response = await askAs(connection, url, accessToken, { accept: ACCEPT })
    const body = await jsonOf(response)
    if (!Array.isArray(body)) throw new UpstreamError('untrusted', `GitHub answers no list at /user${path}`)
    found.push(...body.filter(isObject))
    if (!hasNext(response)) return found
  }
  connection.log.warn(
    { code: 'MH2142', path, pages: MAX_PAGES },
    'GitHub has more of a list than is read: the rest does not count',
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
  const fix =
    'have user:email in `scopes`; of a GitHub App, give it the account permission "Email addresses", read-only'
  const addresses = await allowed(connection, fix, () => readList(connection, '/emails', tokens))
  const primary = addresses?.find(({ primary, verified }) => primary === true && verified === true)?.['email']
  return typeof primary === 'string' ? primary : undefined
}

async function readGroups(connection: Connection, tokens: ProviderTokens): Promise<string[] | undefined> {
  const fix =
    'have read:org in `scopes`, and the organization approve the application; of a GitHub App, give it the organization permission "Members", read-only'
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

export async function githubClaims(connection: Connection, tokens: ProviderTokens): Promise<Claims> {
  // The e-mail address of the public profile is unverified.
  const {
    email: _,
    email_verified: __,
    groups: ___,
    ...account
  } = await askUserinfo(connection, tokens.accessToken, undefined)
  const email = await readEmail(connection, tokens)
  const groups = await readGroups(connection, tokens)
  return { ...account, ...(email !== undefined && { email, email_verified: true }), ...(groups && { groups }) }
}

/** Revokes the whole grant; GitHub lacks RFC 7009. */
async function deleteGrant(connection: Connection, { accessToken }: ProviderTokens): Promise<void> {
  const { settings, ask } = connection
  const base = userUrl(connection).replace(/\/user$/, '')
  const response = await ask(`${base}/applications/${encodeURIComponent(settings.clientId)}/grant`, {
    method: 'DELETE',
    headers: { Authorization: basicCredentials(settings), Accept: ACCEPT, 'Content-Type': 'application/json' },
    body: JSON.stringify({ access_token: accessToken }),
  })
  if (![204, 404, 422].includes(response.status)) {
    throw new UpstreamError('misconfigured', `GitHub answers ${response.status} where a grant is to end`, {
      fix: 'check clientId and clientSecret',
    })
  }
}
