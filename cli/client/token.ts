// `mcp-host token`: a valid access token alone on stdout, for other programs. Never asks anybody anything.
import { StartError } from '../../core/http/errors.ts'
import type { CommandContext } from '../context.ts'
import { defineVerb, type VerbValues } from '../verb.ts'
import { openAccounts, openAuthFetch } from './account.ts'
import { interruptible } from './interrupt.ts'
import { checkServerUrl } from './logins.ts'
import { loginCommand } from './profile.ts'
import { readReach } from './reach.ts'
import { SERVER_OPTIONS } from './with-server.ts'

/** Nobody can use it who has not the key, which stays where the login is kept. */
const BOUND =
  'this token is bound to a key of this login (DPoP): as a bearer token it is refused; use `mcp-host call`, `list` or `proxy`'

async function token(
  values: VerbValues<typeof SERVER_OPTIONS>,
  [given = '']: readonly string[],
  context: CommandContext,
): Promise<void> {
  const { profile } = values
  const url = checkServerUrl(given)
  const accounts = openAccounts(context, readReach(context, values))
  const login = await accounts.recall(url, profile)
  const { session } = await openAuthFetch(accounts, login, { interactive: 'never' })
  const current = await interruptible(context, async signal => {
    const found = await session.token({ signal })
    if (found !== undefined || login.grant !== 'client_credentials') return found
    // The program's own token: nobody has to be asked.
    await session.login({ signal })
    return session.token({ signal })
  })
  const { refreshable, expiresAt, tokenType } = await session.status()
  if (current !== undefined) {
    if (tokenType?.toLowerCase() === 'dpop') context.say(BOUND)
    return context.print(current)
  }
  const why = expiresAt === undefined && !refreshable ? 'nobody is logged in' : 'the login has ended'
  throw new StartError(`${why} at ${login.url}; log in with: ${loginCommand(url, profile)}`)
}

export const tokenVerb = defineVerb({
  summary: 'print an access token, renewed where it has to be: curl -H "Authorization: Bearer $(mcp-host token URL)"',
  positionals: ['URL'],
  options: SERVER_OPTIONS,
  run: token,
})
