// Connects to a server, runs a task, closes and reports errors, for `call` and `list`.

import { setTimeout as pause } from 'node:timers/promises'
import { withTimeout } from '../../core/http/clock.ts'
import { StartError } from '../../core/http/errors.ts'
import type { ElicitParams, ElicitResult } from '../../core/mcp/protocol.ts'
import type { Connection } from '../../remote/index.ts'
import { type CommandValues, readSeconds } from '../command.ts'
import type { CommandContext } from '../context.ts'
import { openAccounts, readTokens } from './account.ts'
import { createWarnings, type Warn } from './answers.ts'
import { connect, explainFailure } from './connect.ts'
import { createElicitor } from './elicit.ts'
import { checkServerUrl, PROFILE_OPTION } from './logins.ts'
import { createRequestIds, headersOf, REACH_OPTIONS, type RequestIds, readReach } from './reach.ts'
import { interruptible } from './terminal.ts'

export const SERVER_OPTIONS = { ...PROFILE_OPTION, ...REACH_OPTIONS } as const

export const TIMEOUT_OPTION = {
  timeout: { value: '<seconds>', help: 'Time limit, restarted by each progress notification [300]' },
} as const

const DEFAULT_TIMEOUT = 300_000

/** Milliseconds between two polls of a task; limits the interval that the server requests. */
const POLL_INTERVAL = { least: 200, most: 10_000, standard: 2_000 }

export function untilNextPoll(task: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<void> {
  const { pollIntervalMs: wanted } = task
  const interval = typeof wanted === 'number' ? wanted : POLL_INTERVAL.standard
  return pause(Math.min(Math.max(interval, POLL_INTERVAL.least), POLL_INTERVAL.most), undefined, { signal })
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

const FAREWELL = 2_000

export async function withServer<T>(
  context: CommandContext,
  given: string,
  values: CommandValues<typeof SERVER_OPTIONS & typeof TIMEOUT_OPTION>,
  work: (server: ServerWork) => Promise<T>,
): Promise<T> {
  const timeout = readSeconds('timeout', values.timeout) ?? DEFAULT_TIMEOUT
  const url = checkServerUrl(given)
  const reach = readReach(context, values)
  const accounts = openAccounts(context, reach)
  const login = await accounts.recall(url, values.profile)
  const own = headersOf(context, reach, login).has('authorization')
  const ids = createRequestIds(context)
  return interruptible(context, async interrupted => {
    const failed = new AbortController()
    const signal = AbortSignal.any([interrupted, failed.signal])
    const deadline = createDeadline(timeout, reason => failed.abort(reason))
    const ask = createElicitor(context, signal)
    const elicit: ServerWork['elicit'] = async params => {
      deadline.stop()
      try {
        return await ask(params)
      } finally {
        deadline.restart()
      }
    }
    try {
      const { restart: postpone } = deadline
      const { server, close } = await connect(accounts, login, { signal, begin: postpone, elicit, own, ids })
      try {
        return await work({ server, signal, ids, elicit, postpone, warn: createWarnings(context.say) })
      } finally {
        await withTimeout(close(), FAREWELL, () => undefined).catch(() => undefined)
      }
    } catch (error) {
      if (failed.signal.aborted) throw failed.signal.reason
      if (!interrupted.aborted) ids.tell()
      const { scope = '' } = (await readTokens(accounts, login).catch(() => undefined)) ?? {}
      throw explainFailure(error, login, scope.split(' ').filter(Boolean))
    } finally {
      deadline.stop()
    }
  })
}
