// What `call` and `list` do alike: connect to the server of a URL, do something, close, and say what went wrong.
import type { Client } from '@modelcontextprotocol/client'
import { assertInstalled } from '../../core/http/optional-packages.ts'
import type { CommandContext } from '../context.ts'
import type { VerbValues } from '../verb.ts'
import { openAccounts, readTokens } from './account.ts'
import { connect, explainFailure } from './connect.ts'
import { createElicitor } from './elicit.ts'
import { interruptible } from './interrupt.ts'
import { checkServerUrl } from './logins.ts'
import { PROFILE_OPTION } from './profile.ts'
import { headersOf, REACH_OPTIONS, readReach } from './reach.ts'
import { createRequestIds, type RequestIds } from './request-ids.ts'

/** Of the verbs that call a server. */
export const SERVER_OPTIONS = { ...PROFILE_OPTION, ...REACH_OPTIONS } as const

export interface ServerWork {
  readonly client: Client
  readonly signal: AbortSignal
  readonly ids: RequestIds
}

/** Closing is awaited for so long, milliseconds: the result is there already. */
const FAREWELL = 2_000

async function withoutHanging(closing: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const enough = new Promise<void>(resolve => {
    timer = setTimeout(resolve, FAREWELL)
  })
  await Promise.race([closing.catch(() => undefined), enough])
  clearTimeout(timer)
}

/** Runs `work` on a connection to the server, as whoever is logged in there. */
export async function withServer<T>(
  context: CommandContext,
  given: string,
  values: VerbValues<typeof SERVER_OPTIONS>,
  work: (server: ServerWork) => Promise<T>,
): Promise<T> {
  const url = checkServerUrl(given)
  assertInstalled(['@modelcontextprotocol/client'], { what: 'whoever calls or lists what a server has' })
  const reach = readReach(context, values)
  const accounts = openAccounts(context, reach)
  const login = await accounts.recall(url, values.profile)
  // Whoever shows something of their own needs no login.
  const own = headersOf(context, reach, login).has('authorization')
  const ids = createRequestIds(context)
  return interruptible(context, async interrupted => {
    const failed = new AbortController()
    const signal = AbortSignal.any([interrupted, failed.signal])
    try {
      const { client, close } = await connect(accounts, login, {
        signal,
        fail: reason => failed.abort(reason),
        elicit: createElicitor(context, signal),
        own,
        ids,
      })
      try {
        return await work({ client, signal, ids })
      } finally {
        await withoutHanging(close())
      }
    } catch (error) {
      if (failed.signal.aborted) throw failed.signal.reason
      if (!interrupted.aborted) ids.tell()
      const { scope = '' } = (await readTokens(accounts, login).catch(() => undefined)) ?? {}
      throw explainFailure(error, login, scope.split(' ').filter(Boolean))
    }
  })
}
