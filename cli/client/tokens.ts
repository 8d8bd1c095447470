// `mcp-host status`, `logout` and `token`: the stored logins of this machine.
import type { CachedLogin } from '../../client/node/file-cache.ts'
import { printable } from '../../client/text.ts'
import { expiresAt, isExpired } from '../../client/token-store.ts'
import { StartError } from '../../core/http/errors.ts'
import { defineCommand } from '../command.ts'
import { usage } from '../context.ts'
import { tableLines } from '../render.ts'
import { isoTime, jsonText, localTime, parseObject } from '../text.ts'
import { type Accounts, loginsByKey, openAccounts, openAuthFetch, readTokens } from './account.ts'
import { HTTP_OPTIONS, readHttpOptions } from './http-flags.ts'
import { checkServerUrl, type Login, loginCommand, PROFILE_OPTION } from './stored-logins.ts'
import { interruptible } from './terminal.ts'
import { SERVER_OPTIONS } from './with-server.ts'

function readLabel({ label, file }: CachedLogin): { serverUrl: string; profile: string | undefined } {
  // Other programs can write labels in other formats.
  const { serverUrl, profile } = parseObject(label) ?? {}
  if (typeof serverUrl === 'string') return { serverUrl, profile: typeof profile === 'string' ? profile : undefined }
  return { serverUrl: label ?? file, profile: undefined }
}

type LoginStatus = ReturnType<typeof describe>

function describe(cached: CachedLogin, login: Login | undefined, now: number) {
  const { serverUrl, profile } = readLabel(cached)
  const { hasAccessToken, hasRefreshToken, error } = cached
  const end = expiresAt(cached)
  const expired = hasAccessToken && isExpired(cached, now)
  // A client credentials grant can be repeated without a user.
  const refreshable = hasRefreshToken || (hasAccessToken && login?.grant === 'client_credentials')
  return {
    server: serverUrl,
    profile: profile ?? null,
    grant: login?.grant ?? null,
    loggedIn: (hasAccessToken && !expired) || refreshable,
    issuer: cached.authorizationServer ?? null,
    clientId: cached.clientId ?? null,
    scopes: cached.scope?.split(' ').filter(Boolean) ?? [],
    /** ISO 8601; null without a token or an expiry. */
    expiresAt: end === undefined ? null : (isoTime(end) ?? null),
    expired,
    refreshable,
    tokenType: cached.tokenType ?? null,
    error: error?.message,
  }
}

function until({ loggedIn, expiresAt, expired, error }: LoginStatus): string {
  if (error !== undefined) return 'unreadable'
  if (!loggedIn) return expired ? 'ended' : 'logged out'
  if (expiresAt === null) return 'revoked'
  return expired ? 'to be renewed' : localTime(Date.parse(expiresAt))
}

function table(logins: readonly LoginStatus[], width?: number): string {
  const rows = logins.map(login => [
    login.server,
    login.profile ?? '-',
    login.issuer ?? '-',
    login.scopes.join(' ') || '-',
    until(login),
    login.refreshable ? 'yes' : 'no',
  ])
  const head = ['server', 'profile', 'issuer', 'scopes', 'until', 'refreshes']
  return tableLines(head, rows, width, '   ').join('\n')
}

const sameUrl = (a: string, b: string): boolean =>
  a === b || (URL.canParse(a) && URL.canParse(b) && new URL(a).href === new URL(b).href)

export const statusCommand = defineCommand({
  summary: 'Show saved logins; with a URL, exit with 1 if there is none',
  example: 'https://mcp.example/mcp',
  positionals: ['[URL]'],
  options: { ...PROFILE_OPTION, json: { help: 'Print JSON' } },
  async run({ profile, json }, [address], context) {
    const url = address === undefined ? undefined : checkServerUrl(address)
    const accounts = openAccounts(context)
    const all = (await findLogins(accounts)).map(({ cached, login }) => describe(cached, login, Date.now()))
    const known = all
      .filter(({ server }) => url === undefined || sameUrl(server, url))
      .filter(login => profile === undefined || login.profile === profile)
    if (json) context.print(jsonText(known))
    else if (known.length > 0) context.print(table(known, context.stdout.columns))
    else context.print(url === undefined ? 'no logins on this machine' : `no login at ${url}`)
    for (const { error } of known) if (error !== undefined) context.say(`mcp-host: ${error}`)
    return url === undefined || known.some(({ loggedIn }) => loggedIn) ? 0 : 1
  },
})

async function logOut(accounts: Accounts, login: Login, forgetClient: boolean, signal: AbortSignal): Promise<string> {
  const cached = await readTokens(accounts, login)
  const { session } = await openAuthFetch(accounts, login, { interactive: 'never' })
  const { revoked } = await session.logout({ signal, forgetClient })
  if (forgetClient) await accounts.logins.remove(login)
  const note = forgetClient ? '; the client is forgotten' : ''
  if (cached?.accessToken === undefined && cached?.refreshToken === undefined) return `no login at ${login.url}${note}`
  const result = revoked
    ? 'the tokens are revoked'
    : 'the tokens are deleted; the authorization server could not revoke them'
  return `logged out of ${login.url}: ${result}${note}`
}

async function findLogins(accounts: Accounts) {
  const byKey = await loginsByKey(accounts)
  return (await accounts.cache.list()).map(cached => ({ cached, login: byKey.get(cached.key) }))
}

async function logOutEverywhere(accounts: Accounts, forgetClient: boolean, signal: AbortSignal): Promise<string[]> {
  const done: string[] = []
  for (const { cached, login } of await findLogins(accounts)) {
    if (login && !cached.error) done.push(await logOut(accounts, login, forgetClient, signal))
    else {
      await accounts.cache.deleteTokens({ key: cached.key })
      done.push(`deleted the tokens of ${readLabel(cached).serverUrl}`)
    }
  }
  if (forgetClient) for (const login of await accounts.logins.list()) await accounts.logins.remove(login)
  return done.length > 0 ? done : ['there were no logins']
}

export const logoutCommand = defineCommand({
  summary: 'Revoke and delete saved tokens',
  example: 'https://mcp.example/mcp',
  positionals: ['[URL]'],
  options: {
    ...PROFILE_OPTION,
    ...HTTP_OPTIONS,
    all: { help: 'All saved logins' },
    'forget-client': { help: 'Also delete the client registration and the login settings' },
  },
  async run(values, [address], context) {
    const { profile, all = false, 'forget-client': forgetClient = false } = values
    if ((address === undefined) !== all) throw usage('logout needs one of: a URL, --all')
    const accounts = openAccounts(context, readHttpOptions(context, values))
    const lines = await interruptible(context, async signal => {
      if (address === undefined) return logOutEverywhere(accounts, forgetClient, signal)
      const login = await accounts.load(checkServerUrl(address), profile)
      return [await logOut(accounts, login, forgetClient, signal)]
    })
    context.print(lines.map(line => printable(line)).join('\n'))
  },
})

/** A bound token is useless without the key, which stays with the login. */
const BOUND_FIX =
  'this token is bound to a key (DPoP), so servers refuse it as a bearer token; use `mcp-host call`, `list` or `proxy`'

export const tokenCommand = defineCommand({
  summary: 'Print a valid access token, for use in scripts',
  example: 'https://mcp.example/mcp',
  positionals: ['URL'],
  options: SERVER_OPTIONS,
  async run(values, [address = ''], context) {
    const { profile } = values
    const url = checkServerUrl(address)
    const accounts = openAccounts(context, readHttpOptions(context, values))
    const login = await accounts.load(url, profile)
    const { session } = await openAuthFetch(accounts, login, { interactive: 'never' })
    const current = await interruptible(context, async signal => {
      const found = await session.token({ signal })
      if (found !== undefined || login.grant !== 'client_credentials') return found
      await session.login({ signal })
      return session.token({ signal })
    })
    const { refreshable, expiresAt, tokenType } = await session.status()
    if (current !== undefined) {
      if (tokenType?.toLowerCase() === 'dpop') context.say(BOUND_FIX)
      return context.print(current)
    }
    const why = expiresAt === undefined && !refreshable ? 'there is no login' : 'the login has ended'
    throw new StartError('MH3201', `${why} at ${login.url}; log in with: ${loginCommand({ url, profile })}`)
  },
})
