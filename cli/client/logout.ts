// `mcp-host logout`: revokes tokens where the authorization server can, and deletes them in any case.
import type { CachedLogin } from '../../client/node/index.ts'
import { printable } from '../../client/text.ts'
import { StartError } from '../../core/http/errors.ts'
import type { CommandContext } from '../context.ts'
import { defineVerb, type VerbValues } from '../verb.ts'
import { type Accounts, loginsByKey, openAccounts, openAuthFetch, readTokens } from './account.ts'
import { interruptible } from './interrupt.ts'
import { checkServerUrl, type Login } from './logins.ts'
import { PROFILE_OPTION } from './profile.ts'
import { REACH_OPTIONS, readReach } from './reach.ts'
import { readLabel } from './status.ts'

interface LogoutValues extends VerbValues<typeof REACH_OPTIONS> {
  readonly profile?: string
  readonly all?: boolean
  readonly 'forget-client'?: boolean
}

async function logOut(accounts: Accounts, login: Login, forgetClient: boolean, signal: AbortSignal): Promise<string> {
  const cached = await readTokens(accounts, login)
  const { session } = await openAuthFetch(accounts, login, { interactive: 'never' })
  const { revoked } = await session.logout({ signal, forgetClient })
  if (forgetClient) await accounts.logins.forget(login)
  const forgotten = forgetClient ? '; the client is forgotten' : ''
  if (cached?.accessToken === undefined && cached?.refreshToken === undefined)
    return `nobody was logged in at ${login.url}${forgotten}`
  const how = revoked
    ? 'the tokens are revoked'
    : 'the tokens are deleted; the authorization server could not revoke them'
  return `logged out of ${login.url}: ${how}${forgotten}`
}

/** Each token file with the login it was made by; one of another program stands for itself. */
async function findAll(accounts: Accounts): Promise<ReadonlyArray<{ cached: CachedLogin; login: Login | undefined }>> {
  const byKey = await loginsByKey(accounts)
  return (await accounts.cache.list()).map(cached => ({ cached, login: byKey.get(cached.key) }))
}

async function logOutEverywhere(accounts: Accounts, forgetClient: boolean, signal: AbortSignal): Promise<string[]> {
  const done: string[] = []
  for (const { cached, login } of await findAll(accounts)) {
    if (login && !cached.error) done.push(await logOut(accounts, login, forgetClient, signal))
    else {
      await accounts.cache.deleteTokens({ key: cached.key })
      done.push(`deleted the tokens of ${readLabel(cached).serverUrl}`)
    }
  }
  if (forgetClient) for (const login of await accounts.logins.list()) await accounts.logins.forget(login)
  return done.length > 0 ? done : ['nobody was logged in anywhere']
}

async function logout(values: LogoutValues, [given]: readonly string[], context: CommandContext): Promise<void> {
  const { profile, all = false, 'forget-client': forgetClient = false } = values
  if ((given === undefined) !== all) throw new StartError('logout needs one of: a URL, --all', { exitCode: 2 })
  const accounts = openAccounts(context, readReach(context, values))
  const lines = await interruptible(context, async signal => {
    if (given === undefined) return logOutEverywhere(accounts, forgetClient, signal)
    const login = await accounts.recall(checkServerUrl(given), profile)
    return [await logOut(accounts, login, forgetClient, signal)]
  })
  context.print(lines.map(line => printable(line)).join('\n'))
}

export const logoutVerb = defineVerb({
  summary: 'revoke and delete tokens',
  positionals: ['[URL]'],
  options: {
    ...PROFILE_OPTION,
    ...REACH_OPTIONS,
    all: { type: 'boolean', help: 'every login of this machine' },
    'forget-client': {
      type: 'boolean',
      help: 'drop the registration of the client, and what login was told, too',
    },
  },
  run: logout,
})
