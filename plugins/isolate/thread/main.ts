// The thread of a worker process: imports the module of isolated tools, then runs one call at a time.
import { AsyncLocalStorage } from 'node:async_hooks'
import { workerData } from 'node:worker_threads'
import type { CallContext, LogLevel, RuntimeItems, ToolDefinition } from '../../../core/index.ts'
import type { BuiltInContext } from '../../../core/internal.ts'
import { errorText } from '../../../core/plugin.ts'
import { createCallFetch, importModule, LOG_LEVELS } from '../../../core/transport.ts'
import {
  type FromThread,
  type HostRequest,
  MAX_NOTIFY_BYTES,
  type NotifyMethod,
  type Outcome,
  packError,
  type Task,
  type ThreadData,
  type ToThread,
  toBytes,
  unpackError,
} from '../messages.ts'

/** Maximum messages to the client that are not sent yet. Further messages are dropped. */
const MAX_UNSENT = 100

const NO_ITEMS = 'ctx.host cannot add or remove items in a tool with `isolate`. Do it in a tool without `isolate`'

interface Running {
  readonly tool: string
  readonly controller: AbortController
  hasEnded: boolean
}

const { file, port, read } = workerData as ThreadData
// Hides the port from the module of the tool.
Reflect.deleteProperty(workerData, 'port')

const running = new AsyncLocalStorage<Running>()
interface Waiting {
  readonly call: Running
  resolve(value: never): void
  reject(reason: Error): void
}

const waiting = new Map<number, Waiting>()
let current: Running | undefined
let requests: HostRequest[] = []
let requested = 0
let notified = 0

const post = (message: FromThread) => port.postMessage(message)

function notify(call: Running, what: NotifyMethod, args: readonly unknown[]) {
  if (call.hasEnded || notified - Atomics.load(read, 0) >= MAX_UNSENT) return
  post({ kind: 'tell', what, args })
  notified++
}

function settle(n: number, end: (one: Waiting) => void) {
  const one = waiting.get(n)
  waiting.delete(n)
  if (one) end(one)
}

/** Batches requests of one event loop turn. After the end of a call, the host would assign them to the next. */
function sendRequests() {
  const hasEnded = ({ n }: HostRequest) => waiting.get(n)?.call.hasEnded
  const together = requests.filter(one => !hasEnded(one))
  for (const { n } of requests.filter(hasEnded)) settle(n, one => one.reject(new Error('the call has ended')))
  requests = []
  if (together.length === 0) return
  try {
    post({ kind: 'ask', asks: together })
  } catch (cause) {
    const error = new TypeError('the parameters of a request must be data, without functions', { cause })
    for (const { n } of together) settle(n, one => one.reject(error))
  }
}

function request<T>(call: Running, what: string, args: readonly unknown[]): Promise<T> {
  const answer = new Promise<T>((resolve, reject) => {
    const n = requested++
    waiting.set(n, { call, resolve, reject })
    if (requests.push({ n, what, args }) === 1) setImmediate(sendRequests)
  })
  answer.catch(() => undefined)
  return answer
}

const refuse = () => {
  throw new Error(NO_ITEMS)
}
const refuseValue = (name: string) => {
  throw new TypeError(`ctx.${name} is a value: a tool with \`isolate\` can use only functions of ctx`)
}
const noItems: RuntimeItems<never> = { add: refuse, remove: refuse }

function contextOf({ fetchTimeout, fetchHeaders, members, ...data }: Task['data'], call: Running): CallContext {
  const { signal } = call.controller
  const { user } = data
  if (user) Object.freeze(user.claims)
  const ctx: Omit<CallContext, keyof BuiltInContext> = {
    ...data,
    user: user && Object.freeze(user),
    signal,
    progress(progress, total, message) {
      if (!Number.isFinite(progress)) throw new TypeError(`progress must be a finite number, was ${progress}`)
      notify(call, 'progress', [progress, total, message])
    },
    log(level: LogLevel, value: unknown, logger) {
      if (!LOG_LEVELS.includes(level)) {
        throw new TypeError(`log level must be one of ${LOG_LEVELS.join(', ')}; was ${level}`)
      }
      try {
        toBytes(value, MAX_NOTIFY_BYTES)
      } catch (cause) {
        throw new TypeError(`the data of ctx.log cannot be sent: ${errorText(cause)}`, { cause })
      }
      notify(call, 'log', [level, value, logger])
    },
    fetch: createCallFetch({ signal: () => signal, timeout: fetchTimeout, headers: () => fetchHeaders }),
    elicit: (params, options = {}) => request(call, 'elicit', [params, options]),
    sample: (params, options = {}) => request(call, 'sample', [params, options]),
    roots: (options = {}) => request(call, 'roots', [options]),
    ping: () => request(call, 'ping', []),
    disconnect: retry => notify(call, 'disconnect', [retry]),
    host: {
      tools: noItems,
      resources: noItems,
      prompts: noItems,
      resourceUpdated: uri => notify(call, 'resourceUpdated', [uri]),
      settled: () => request(call, 'settled', []),
    },
  }
  const called = members.functions.map(name => [name, (...args: unknown[]) => request(call, name, args)] as const)
  const whole = { ...Object.fromEntries(called), ...ctx } as CallContext
  for (const name of members.values) Object.defineProperty(whole, name, { get: () => refuseValue(name) })
  return whole
}

function end(call: Running, outcome: Outcome, spent = false) {
  if (call.hasEnded) return
  call.hasEnded = true
  if (current === call) current = undefined
  post({ kind: 'end', outcome, spent })
}

function handlerOf(exported: Readonly<Record<string, unknown>>, { name, index, tool }: Task) {
  const value = exported[name]
  const found = (index === undefined ? value : Array.isArray(value) ? value[index] : undefined) as
    | ToolDefinition
    | undefined
  if (found?.name === tool && typeof found.handler === 'function')
    return found.handler as (args: unknown, ctx: CallContext) => unknown
  const where = index === undefined ? name : `${name}[${index}]`
  throw new Error(
    `${file} does not export the tool "${tool}" as ${where} in a worker process, as it did at startup: reload or restart ` +
      'after a change, and let its exports depend on nothing but the module itself',
  )
}

function resultOf(value: unknown): Outcome {
  try {
    return { value: toBytes(value) }
  } catch (cause) {
    throw new TypeError(`its result cannot be sent to the host: ${errorText(cause)}`, { cause })
  }
}

async function run(exported: Readonly<Record<string, unknown>>, task: Task) {
  const call: Running = { tool: task.tool, controller: new AbortController(), hasEnded: false }
  current = call
  try {
    const handler = handlerOf(exported, task)
    const value = await running.run(call, () => handler(task.args, contextOf(task.data, call)))
    end(call, resultOf(value))
  } catch (error) {
    end(call, { thrown: packError(error) })
  }
}

process.on('uncaughtException', thrown => {
  const own = running.getStore()
  const call = own ?? current
  // Without a store, the error can contain data of another caller. Only the log gets it.
  const error = own ? thrown : new Error('the module threw an error outside of the call', { cause: thrown })
  if (call && !call.hasEnded) end(call, { thrown: packError(error) }, true)
  else post({ kind: 'uncaught', tool: call?.tool ?? '', error: packError(thrown) })
})

function serve(exported: Readonly<Record<string, unknown>>, message: ToThread) {
  if (message.kind === 'call') run(exported, message.task)
  else if (message.kind === 'abort') current?.controller.abort(unpackError(message.reason))
  else if (message.kind === 'answer') settle(message.n, one => one.resolve(message.value as never))
  else settle(message.n, one => one.reject(unpackError(message.error)))
}

try {
  const exported = await importModule(file)
  port.on('message', (message: ToThread) => serve(exported, message))
  post({ kind: 'ready' })
} catch (error) {
  post({ kind: 'unloadable', error: packError(error) })
}
