// Connects to a server, runs a task, closes and reports errors, for `call` and `list`.

import { setTimeout as pause } from 'node:timers/promises'
import { withTimeout } from '../../core/http/clock.ts'
import { StartError } from '../../core/http/errors.ts'
import type { ElicitParams, ElicitResult } from '../../core/mcp/wire/protocol.ts'
import type { Connection } from '../../remote/index.ts'
import { type CommandValues, readSeconds } from '../command.ts'
import type { CommandContext } from '../context.ts'
import { openAccounts, readTokens } from './account.ts'
import { connect, explainFailure } from './connect.ts'
import { createElicitor } from './elicit.ts'
import { createHeaders, createRequestIds, HTTP_OPTIONS, type RequestIds, readHttpOptions } from './http-flags.ts'
import { createWarnings, type Warn } from './responses.ts'
import { checkServerUrl, PROFILE_OPTION } from './stored-logins.ts'
import { interruptible } from './terminal.ts'

export const SERVER_OPTIONS = { ...PROFILE_OPTION, ...HTTP_OPTIONS } as const

export const TIMEOUT_OPTION = {
  timeout: { value: '<seconds>', help: 'Time limit, restarted by each progress notification [300]' },
} as const

const DEFAULT_TIMEOUT = 300_000

/** Milliseconds between two polls of a task; limits the interval that the server requests. */
const POLL_INTERVAL = { min: 200, max: 10_000, default: 2_000 }

export function waitForNextPoll(task: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<void> {
  const { pollIntervalMs: requested } = task
  const interval = typeof requested === 'number' ? requested : POLL_INTERVAL.default
  return pause(Math.min(Math.max(interval, POLL_INTERVAL.min), POLL_INTERVAL.max), undefined, { signal })
}

export interface ServerWork {
  readonly server: Connection
  readonly signal: AbortSignal
  readonly ids: RequestIds
  readonly elicit: (params: ElicitParams) => Promise<ElicitResult>
  readonly postpone: () => void
  readonly warn: Warn
}

function createDeadline(timeout: number, expire: (reason: StartError) => void) {
  const text = `no response within ${timeout / 1_000} s; to wait longer, use --timeout <seconds>`
  let timer: NodeJS.Timeout | undefined
  const stop = () => clearTimeout(timer)
  function restart(): void {
    stop()
    timer = setTimeout(() => expire(new StartError('MH3205', text)), timeout)
  }
  return { stop, restart }
}

const CLOSE_TIMEOUT = 2_000

export async function withServer<T>(
  context: CommandContext,
  address: string,
  values: CommandValues<typeof SERVER_OPTIONS & typeof TIMEOUT_OPTION>,
  work: (server: ServerWork) => Promise<T>,
): Promise<T> {
  const timeout = readSeconds('timeout', values.timeout) ?? DEFAULT_TIMEOUT
  const url = checkServerUrl(address)
  const http = readHttpOptions(context, values)
  const accounts = openAccounts(context, http)
  const login = await accounts.load(url, values.profile)
  const own = createHeaders(context, http, login).has('authorization')
  const ids = createRequestIds(context)
  return interruptible(context, async interrupted => {
    const failed = new AbortController()
    const signal = AbortSignal.any([interrupted, failed.signal])
    const deadline = createDeadline(timeout, reason => failed.abort(reason))
    const elicitor = createElicitor(context, signal)
    const elicit: ServerWork['elicit'] = async params => {
      deadline.stop()
      try {
        return await elicitor(params)
      } finally {
        deadline.restart()
      }
    }
    try {
      const { restart: postpone } = deadline
      const { server, close } = await connect(accounts, login, { signal, onConnect: postpone, elicit, own, ids })
      try {
        return await work({ server, signal, ids, elicit, postpone, warn: createWarnings(context.say) })
      } finally {
        await withTimeout(close(), CLOSE_TIMEOUT, () => undefined).catch(() => undefined)
      }
    } catch (error) {
      if (failed.signal.aborted) throw failed.signal.reason
      if (!interrupted.aborted) ids.print()
      const { scope = '' } = (await readTokens(accounts, login).catch(() => undefined)) ?? {}
      throw explainFailure(error, login, { granted: scope.split(' ').filter(Boolean), own })
    } finally {
      deadline.stop()
    }
  })
}
