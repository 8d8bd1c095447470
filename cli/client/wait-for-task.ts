// Waits for the result of a call that became a task (io.modelcontextprotocol/tasks): polls it, shows its progress, and answers
// what it requests.
import { setTimeout as pause } from 'node:timers/promises'
import type { CallToolResult, Client, ElicitRequest, ElicitResult } from '@modelcontextprotocol/client'
import { isObject, printable } from '../../client/text.ts'
import { StartError } from '../../core/http/errors.ts'
import { NO_TIMEOUT } from './connect.ts'

type Members = Readonly<Record<string, unknown>>

/** Milliseconds between two polls, whatever the server says. */
const POLL_INTERVAL = { least: 200, most: 10_000, standard: 2_000 }
/** Time limit for the `tasks/cancel` request after Ctrl-C or a time-out, in milliseconds. */
const PATIENCE = 2_000
/** Characters of what a server says of an error. */
const MAX_WORDS = 4_000

const ANY = { '~standard': { version: 1, vendor: 'mcp-host', validate: (value: unknown) => ({ value }) } } as const

export interface TaskWait {
  readonly signal: AbortSignal
  readonly elicit: (params: ElicitRequest['params']) => Promise<ElicitResult>
  /** Called when the state of the task changes. */
  readonly changed: (message: string) => void
}

export async function waitForTask(
  client: Client,
  created: Members & { readonly taskId: string },
  { signal, elicit, changed }: TaskWait,
): Promise<CallToolResult> {
  const { taskId } = created
  async function ask(method: string, params: Members, options = { signal, timeout: NO_TIMEOUT }): Promise<Members> {
    const about = { ...options, headers: { 'Mcp-Name': taskId } }
    const answer = await client.request({ method, params: { taskId, ...params } }, ANY, about)
    return isObject(answer) ? answer : {}
  }

  /** Each request once: the task may still show one that was answered. */
  const answered = new Set<string>()
  async function respond(requests: unknown): Promise<void> {
    const responses: Record<string, ElicitResult> = {}
    for (const [key, request] of Object.entries(isObject(requests) ? requests : {})) {
      if (answered.has(key)) continue
      answered.add(key)
      if (!isObject(request) || request['method'] !== 'elicitation/create')
        throw new StartError(
          `the task requests ${printable(String(isObject(request) && request['method']), MAX_WORDS)}, which this client does not support`,
        )
      responses[key] = await elicit(request['params'] as ElicitRequest['params'])
    }
    if (Object.keys(responses).length > 0) await ask('tasks/update', { inputResponses: responses })
  }

  try {
    let shown = ''
    for (let task: Members = created; ; task = await ask('tasks/get', {})) {
      const { status, statusMessage, pollIntervalMs, error, result } = task
      if (status === 'completed' && isObject(result)) return { content: [], ...result }
      if (status === 'failed') {
        const { code, message } = isObject(error) ? error : {}
        throw new StartError(`the task failed with error ${Number(code)}: ${printable(String(message), MAX_WORDS)}`)
      }
      if (status === 'cancelled' || status === 'completed')
        throw new StartError(`the task is ${status} and has no result`)
      const now = `${status}${typeof statusMessage === 'string' ? `  ${statusMessage}` : ''}`
      if (now !== shown) changed(now)
      shown = now
      if (status === 'input_required') await respond(task['inputRequests'])
      const wanted = typeof pollIntervalMs === 'number' ? pollIntervalMs : POLL_INTERVAL.standard
      await pause(Math.min(Math.max(wanted, POLL_INTERVAL.least), POLL_INTERVAL.most), undefined, { signal })
    }
  } catch (error) {
    if (signal.aborted) {
      await ask('tasks/cancel', {}, { signal: AbortSignal.timeout(PATIENCE), timeout: PATIENCE }).catch(() => undefined)
    }
    throw error
  }
}
