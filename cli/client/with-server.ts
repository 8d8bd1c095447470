// What `call` and `list` do alike: connect to the server of a URL, do something, close, and say what went wrong.
import type { Client } from '@modelcontextprotocol/client'
import { openAccounts, readTokens } from './account.ts'
import { connect, explainFailure } from './connect.ts'
import { createElicitor } from './elicit.ts'
import { interruptible } from './interrupt.ts'
import { checkServerUrl } from './logins.ts'

export interface ServerWork {
  readonly client: Client
  readonly signal: AbortSignal
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
  given: string,
  profile: string | undefined,
  work: (server: ServerWork) => Promise<T>,
): Promise<T> {
  const url = checkServerUrl(given)
  const accounts = openAccounts()
  const login = await accounts.recall(url, profile)
  return interruptible(async signal => {
    try {
      const { client, close } = await connect(accounts, login, { signal, elicit: createElicitor(signal) })
      try {
        return await work({ client, signal })
      } finally {
        await withoutHanging(close())
      }
    } catch (error) {
      const { scope = '' } = (await readTokens(accounts, login).catch(() => undefined)) ?? {}
      throw explainFailure(error, login, scope.split(' ').filter(Boolean))
    }
  })
}
