// `mcp-host tasks`: lists, follows and cancels a user's tasks on a host.

import { printable } from '../client/text.ts'
import type { JsonObject } from '../core/index.ts'
import { isObject, StartError } from '../core/plugin.ts'
import { RemoteError } from '../remote/index.ts'
import { SERVER_OPTIONS, type ServerWork, TIMEOUT_OPTION, waitForNextPoll, withServer } from './client/with-server.ts'
import { defineCommand } from './command.ts'
import { type CommandContext, usage } from './context.ts'
import { isTooDeep } from './lock/lock-file.ts'
import { tableLines } from './render.ts'
import { jsonText, serverText } from './text.ts'

const MAX_LEVELS = 200
const MAX_LISTED = 1_000
const FINAL_STATUSES = ['completed', 'failed', 'cancelled']

const formatCells = (task: JsonObject, names: readonly string[]) =>
  names.map(name => (typeof task[name] === 'string' ? task[name] : undefined))

async function listTasks(request: TaskRequest): Promise<JsonObject[]> {
  const found: JsonObject[] = []
  for (let cursor: JsonObject[string] | undefined; ; ) {
    const page = await request('io.mcp-host/tasks/list', cursor === undefined ? {} : { cursor })
    const { tasks, nextCursor } = page
    if (!Array.isArray(tasks)) throw new StartError('MH3211', 'the response of the server has no `tasks`')
    for (const task of tasks.slice(0, MAX_LISTED - found.length)) {
      if (!isObject(task)) throw new StartError('MH3211', 'the server sent a task that is not an object')
      found.push(task as JsonObject)
    }
    if (nextCursor === undefined || tasks.length === 0 || found.length >= MAX_LISTED) return found
    cursor = nextCursor
  }
}

function show(tasks: readonly JsonObject[], json: boolean, context: CommandContext) {
  if (json) return context.print(jsonText(tasks))
  if (tasks.length === 0) return context.print('no tasks; anonymous callers cannot list theirs')
  const rows = tasks.map(task => formatCells(task, ['taskId', 'tool', 'status', 'createdAt', 'statusMessage']))
  const head = ['task', 'tool', 'status', 'created', 'message']
  context.print(tableLines(head, rows, context.stdout.columns ?? 160).join('\n'))
}

async function followTask(
  request: TaskRequest,
  taskId: string,
  { json, signal, context }: { json: boolean; signal: AbortSignal; context: CommandContext },
): Promise<void> {
  let last = ''
  for (;;) {
    const task = await request('tasks/get', { taskId })
    const { _meta, resultType: _, ...lastLine } = task
    const now = JSON.stringify(lastLine)
    if (now !== last) {
      const line = formatCells(task, ['lastUpdatedAt', 'status', 'statusMessage']).flatMap(word =>
        word === undefined ? [] : serverText(word),
      )
      const isFinal = task['result'] ?? task['error'] ?? task['inputRequests']
      context.print(json ? now : [line.join('  '), ...(isFinal === undefined ? [] : [jsonText(isFinal)])].join('\n'))
    }
    last = now
    if (FINAL_STATUSES.includes(String(task['status']))) return
    await waitForNextPoll(task, signal)
  }
}

type TaskRequest = (method: string, params: JsonObject) => Promise<JsonObject>

const createRequester =
  ({ server, signal, postpone }: ServerWork): TaskRequest =>
  async (method, params) => {
    const result = await server.request(method, params, { signal, timeout: 0, maxTime: 0 })
    postpone()
    if (isTooDeep(result, MAX_LEVELS))
      throw new StartError('MH3210', 'the response of the server is nested too deeply to print')
    return result
  }

function withHint(error: unknown): unknown {
  if (!(error instanceof RemoteError) || error.code !== -32_601) return error
  return new StartError('MH3222', `the server returned error -32601: it does not support tasks, or cannot list them`, {
    cause: error,
  })
}

export const tasksCommand = defineCommand({
  summary: 'List, follow or cancel your tasks on a server',
  example: 'https://mcp.example/mcp',
  positionals: ['URL'],
  options: {
    ...SERVER_OPTIONS,
    ...TIMEOUT_OPTION,
    follow: { value: '<id>', help: 'Show one task and its changes until it ends' },
    cancel: { value: '<id>', help: 'Cancel one task' },
    json: { help: 'Print JSON: a list, or one line per change' },
  },
  notes: 'Lists the tasks of the login or header. --follow and --cancel work with every server that supports tasks.',
  async run(values, [url = ''], context) {
    const { follow: followed, cancel: cancelled, json = false } = values
    if (followed !== undefined && cancelled !== undefined) throw usage('--follow and --cancel cannot be combined')
    await withServer(context, url, values, async server => {
      const request = createRequester(server)
      try {
        if (followed !== undefined) return await followTask(request, followed, { json, signal: server.signal, context })
        if (cancelled === undefined) return show(await listTasks(request), json, context)
        await request('tasks/cancel', { taskId: cancelled })
        context.print(json ? '{}' : `cancelled ${printable(cancelled)}`)
      } catch (error) {
        throw withHint(error)
      }
    })
  },
})
