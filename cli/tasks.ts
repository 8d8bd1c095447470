// `mcp-host tasks`: the tasks that somebody has at a host: lists them, follows one, cancels one.

import { setTimeout as pause } from 'node:timers/promises'
import { printable } from '../client/printable.ts'
import { readBody } from '../client/read-body.ts'
import { isObject, type JsonObject, StartError } from '../core/index.ts'
import { META, MODERN_REVISION } from '../core/transport.ts'
import { openAccounts, openAuthFetch } from './client/account.ts'
import { explainFailure } from './client/connect.ts'
import { checkServerUrl } from './client/logins.ts'
import { headersOf, readReach } from './client/reach.ts'
import { interruptible } from './client/terminal.ts'
import { SERVER_OPTIONS } from './client/with-server.ts'
import { type CommandContext, usage } from './context.ts'
import { isDeeper } from './lock/lock-file.ts'
import { jsonText, serverText, tableLines } from './text.ts'
import { defineVerb, type VerbValues } from './verb.ts'
import { version } from './version.ts'

const EXTENSION = 'io.modelcontextprotocol/tasks'
/** Bytes of an answer, and levels of its JSON. */
const MAX_BODY = 16 * 2 ** 20
const MAX_LEVELS = 200
/** Milliseconds for an answer, to its end. */
const PATIENCE = 30_000

/** Asks the server one thing. Throws a StartError with what it says. */
export type AskTasks = (method: string, params: JsonObject) => Promise<JsonObject>

const bodyOf = (method: string, params: JsonObject) => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params: {
    ...params,
    _meta: {
      [META.protocolVersion]: MODERN_REVISION,
      [META.clientInfo]: { name: 'mcp-host', version },
      [META.clientCapabilities]: { extensions: { [EXTENSION]: {} } },
    },
  },
})

/** The answer, be it JSON or the last event of a stream. */
function answerIn(text: string): unknown {
  const lines = text.split('\n').filter(line => line.startsWith('data: ') && line.length > 6)
  try {
    return JSON.parse(lines.at(-1)?.slice(6) ?? text)
  } catch {
    return undefined
  }
}

function resultOf(url: string, status: number, text: string): JsonObject {
  const answer = answerIn(text)
  if (isDeeper(answer, MAX_LEVELS)) throw new StartError(`${url} answered with JSON that is too deep to be shown`)
  const { result, error } = isObject(answer) ? answer : {}
  if (isObject(result)) return result as JsonObject
  if (!isObject(error))
    throw new StartError(`${url} answered HTTP ${status}, and no JSON-RPC; check the path of the URL`)
  const { code, message } = error
  const fix = code === -32601 ? '; it has no tasks, or cannot list them' : ''
  const number = typeof code === 'number' ? code : 'without a number'
  throw new StartError(`the server answered error ${number}: ${serverText(String(message))}${fix}`)
}

/** For the server of a URL, with the login or the headers of the command line. */
export async function openTasks(
  context: CommandContext,
  given: string,
  values: VerbValues<typeof SERVER_OPTIONS>,
  signal: AbortSignal,
  patience = PATIENCE,
): Promise<AskTasks> {
  const url = checkServerUrl(given)
  const reach = readReach(context, values)
  const accounts = openAccounts(context, reach)
  const login = await accounts.recall(url, values.profile)
  const send = headersOf(context, reach, login).has('authorization')
    ? accounts.fetchFor(login)
    : await openAuthFetch(accounts, login, { interactive: 'never' })
  return async (method, params) => {
    const name = params['taskId']
    const headers = {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': MODERN_REVISION,
      'Mcp-Method': method,
      ...(typeof name === 'string' && { 'Mcp-Name': name }),
    }
    const late = AbortSignal.timeout(patience)
    try {
      const response = await send(url, {
        method: 'POST',
        headers,
        body: JSON.stringify(bodyOf(method, params)),
        signal: AbortSignal.any([signal, late]),
      })
      const { bytes, cut } = await readBody(response, MAX_BODY)
      if (cut)
        throw new StartError(`${url} answered with more than ${MAX_BODY / 2 ** 20} MB, which nothing of a task has`)
      return resultOf(url, response.status, new TextDecoder().decode(bytes))
    } catch (error) {
      if (late.aborted && !signal.aborted) throw new StartError(`${url} did not answer within ${patience / 1000} s`)
      throw explainFailure(error, login)
    }
  }
}

const OPTIONS = {
  ...SERVER_OPTIONS,
  follow: { type: 'string', value: '<id>', help: 'show one task, and each change of it, until it is over' },
  cancel: { type: 'string', value: '<id>', help: 'cancel one task' },
  json: { type: 'boolean', help: 'print JSON: a list, or a line for each change' },
} as const

type Values = VerbValues<typeof OPTIONS>

/** Tasks that are listed. */
const MOST_LISTED = 1_000
/** Milliseconds between two looks at a task, at least and at most, whatever its server says. */
const LOOK_EVERY = { least: 200, most: 10_000, standard: 2_000 }
const ENDS = ['completed', 'failed', 'cancelled']

const wordOf = (value: unknown) => (typeof value === 'string' ? value : undefined)
const cells = (task: JsonObject, names: readonly string[]) => names.map(name => wordOf(task[name]))

async function listTasks(ask: AskTasks): Promise<JsonObject[]> {
  const found: JsonObject[] = []
  for (let cursor: JsonObject[string] | undefined; ; ) {
    const page = await ask('io.mcp-host/tasks/list', cursor === undefined ? {} : { cursor })
    const { tasks, nextCursor } = page
    if (!Array.isArray(tasks)) throw new StartError('the server answered without `tasks`')
    for (const task of tasks.slice(0, MOST_LISTED - found.length)) {
      if (!isObject(task)) throw new StartError('the server answered with a task that is no object')
      found.push(task as JsonObject)
    }
    if (nextCursor === undefined || tasks.length === 0 || found.length >= MOST_LISTED) return found
    cursor = nextCursor
  }
}

function show(tasks: readonly JsonObject[], context: CommandContext) {
  if (tasks.length === 0) return context.print('no tasks; anonymous callers cannot list theirs')
  const rows = tasks.map(task => cells(task, ['taskId', 'tool', 'status', 'createdAt', 'statusMessage']))
  const head = ['task', 'tool', 'status', 'created', 'says']
  context.print(tableLines(head, rows, context.stdout.columns ?? 160).join('\n'))
}

async function follow(
  ask: AskTasks,
  taskId: string,
  { json, signal, context }: { json: boolean; signal: AbortSignal; context: CommandContext },
): Promise<void> {
  let last = ''
  for (;;) {
    const task = await ask('tasks/get', { taskId })
    const { _meta, resultType: _, ...shown } = task
    const now = JSON.stringify(shown)
    if (now !== last) {
      const line = cells(task, ['lastUpdatedAt', 'status', 'statusMessage']).flatMap(word =>
        word === undefined ? [] : serverText(word),
      )
      const over = task['result'] ?? task['error'] ?? task['inputRequests']
      context.print(json ? now : [line.join('  '), ...(over === undefined ? [] : [jsonText(over)])].join('\n'))
    }
    last = now
    if (ENDS.includes(String(task['status']))) return
    const { pollIntervalMs: given } = task
    const wanted = typeof given === 'number' ? given : LOOK_EVERY.standard
    await pause(Math.min(Math.max(wanted, LOOK_EVERY.least), LOOK_EVERY.most), undefined, { signal })
  }
}

async function tasks(values: Values, [url = '']: readonly string[], context: CommandContext): Promise<void> {
  const { follow: followed, cancel: cancelled, json = false } = values
  if (followed !== undefined && cancelled !== undefined) {
    throw usage('--follow and --cancel are two things; give one of them')
  }
  await interruptible(context, async signal => {
    const ask = await openTasks(context, url, values, signal)
    if (cancelled !== undefined) {
      await ask('tasks/cancel', { taskId: cancelled })
      return context.print(json ? '{}' : `cancelled ${printable(cancelled)}`)
    }
    if (followed !== undefined) return follow(ask, followed, { json, signal, context })
    const found = await listTasks(ask)
    if (json) return context.print(jsonText(found))
    show(found, context)
  })
}

export const tasksVerb = defineVerb({
  summary: 'the tasks that you have at a host: list, follow, cancel',
  positionals: ['URL'],
  options: OPTIONS,
  notes: 'It lists those of the login or header that it is given; any server with tasks takes --follow and --cancel.',
  run: tasks,
})
