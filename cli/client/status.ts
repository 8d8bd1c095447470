// `mcp-host status`: the logins of this machine, without their tokens.

import type { CachedLogin } from '../../client/node/index.ts'
import { printable } from '../../client/text.ts'
import type { CommandContext } from '../context.ts'
import { isoTime } from '../iso-time.ts'
import { jsonText } from '../json-text.ts'
import { defineVerb } from '../verb.ts'
import { loginsByKey, openAccounts } from './account.ts'
import { checkServerUrl, type GrantName, type Login } from './logins.ts'
import { PROFILE_OPTION } from './profile.ts'
import { localTime } from './show-status.ts'

export interface LoginStatus {
  readonly server: string
  readonly profile: string | null
  /** Null: of another program. */
  readonly grant: GrantName | null
  readonly loggedIn: boolean
  readonly issuer: string | null
  readonly clientId: string | null
  readonly scopes: readonly string[]
  /** ISO 8601; null: it does not expire, or there is no token. */
  readonly expiresAt: string | null
  readonly expired: boolean
  /** Nobody is needed for the next token. */
  readonly refreshable: boolean
  readonly tokenType: string | null
  /** Why the token file cannot be read. */
  readonly error?: string
}

/** What a container was stored under. */
export function readLabel({ label, file }: CachedLogin): { serverUrl: string; profile: string | undefined } {
  try {
    const { serverUrl, profile } = JSON.parse(label ?? '') as Record<string, unknown>
    if (typeof serverUrl === 'string') {
      return { serverUrl, profile: typeof profile === 'string' ? profile : undefined }
    }
  } catch {
    // Another program's label.
  }
  return { serverUrl: label ?? file, profile: undefined }
}

/** `login`: what the tokens were got with; undefined: by another program. */
function describe(cached: CachedLogin, login: Login | undefined, now: number): LoginStatus {
  const { serverUrl, profile } = readLabel(cached)
  const { obtainedAt, expiresIn, hasAccessToken, hasRefreshToken, error } = cached
  const end = obtainedAt === undefined || expiresIn === undefined ? undefined : obtainedAt + expiresIn * 1000
  const expired = hasAccessToken && end !== undefined && end <= now
  // A program's own grant is simply asked again.
  const refreshable = hasRefreshToken || (hasAccessToken && login?.grant === 'client_credentials')
  return {
    server: serverUrl,
    profile: profile ?? null,
    grant: login?.grant ?? null,
    loggedIn: (hasAccessToken && !expired) || refreshable,
    issuer: cached.authorizationServer ?? null,
    clientId: cached.clientId ?? null,
    scopes: cached.scope?.split(' ').filter(Boolean) ?? [],
    expiresAt: end === undefined ? null : (isoTime(end) ?? null),
    expired,
    refreshable,
    tokenType: cached.tokenType ?? null,
    ...(error && { error: error.message }),
  }
}

function until({ loggedIn, expiresAt, expired, error }: LoginStatus): string {
  if (error !== undefined) return 'unreadable'
  if (!loggedIn) return expired ? 'ended' : 'logged out'
  if (expiresAt === null) return 'revoked'
  return expired ? 'to be renewed' : localTime(Date.parse(expiresAt))
}

/** Characters. */
const MAX_CELL = 300

function table(logins: readonly LoginStatus[]): string {
  const rows = logins.map(login => [
    login.server,
    login.profile ?? '-',
    login.issuer ?? '-',
    login.scopes.join(' ') || '-',
    until(login),
    login.refreshable ? 'yes' : 'no',
  ])
  const all = [['server', 'profile', 'issuer', 'scopes', 'until', 'renews itself'], ...rows].map(row =>
    row.map(cell => printable(cell, MAX_CELL)),
  )
  const widths =
    all[0]?.map((_, column) => all.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0)) ?? []
  return all
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('   ')
        .trimEnd(),
    )
    .join('\n')
}

const sameUrl = (one: string, other: string): boolean =>
  one === other || (URL.canParse(one) && URL.canParse(other) && new URL(one).href === new URL(other).href)

async function status(
  { profile, json }: { readonly profile?: string; readonly json?: boolean },
  [given]: readonly string[],
  context: CommandContext,
): Promise<number> {
  const url = given === undefined ? undefined : checkServerUrl(given)
  const accounts = openAccounts(context)
  const byKey = await loginsByKey(accounts)
  const all = (await accounts.cache.list()).map(cached => describe(cached, byKey.get(cached.key), Date.now()))
  const asked = all
    .filter(({ server }) => url === undefined || sameUrl(server, url))
    .filter(login => profile === undefined || login.profile === profile)
  if (json) context.print(jsonText(asked))
  else if (asked.length > 0) context.print(table(asked))
  else context.print(url === undefined ? 'nobody is logged in anywhere' : `nobody is logged in at ${url}`)
  for (const { error } of asked) if (error !== undefined) context.say(`mcp-host: ${error}`)
  return url === undefined || asked.some(({ loggedIn }) => loggedIn) ? 0 : 1
}

export const statusVerb = defineVerb({
  summary: 'show the logins of this machine; with a URL, exits 1 where nobody is logged in there',
  positionals: ['[URL]'],
  options: { ...PROFILE_OPTION, json: { type: 'boolean', help: 'print them as JSON' } },
  run: status,
})
