// What a thread of isolated tools begins with: imports their module as the host imported it, then runs one call at a time.
import { AsyncLocalStorage } from 'node:async_hooks'
import { readlinkSync } from 'node:fs'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { workerData } from 'node:worker_threads'
import { importModule } from '../../config/import-module.ts'
import { freezeUser } from '../../kernel/user.ts'
import { type CallContext, kindOf, type ToolDefinition } from '../../mcp/define.ts'
import { LOOK } from '../held.ts'
import type { FromThread, ThreadData, ToThread } from '../messages.ts'
import { packError } from '../pack-error.ts'
import { createRunning, type Running } from '../running-call.ts'

type CallMessage = Extract<ToThread, { kind: 'call' }>

const { port, file, memory, read } = workerData as ThreadData
// A tool's module has no business with it.
Reflect.deleteProperty(workerData, 'port')

const post = (message: FromThread) => port.postMessage(message)
const running = new AsyncLocalStorage<Running>()
let current: Running | undefined

/** Bytes that the thread holds; `collect`: what is garbage is thrown away before. */
function held(collect: boolean): number {
  if (collect) collectGarbage()
  const { used_heap_size, external_memory } = getHeapStatistics()
  return used_heap_size + external_memory
}

/** What it keeps when a call is over: garbage is looked for only where there is much. */
function kept(): number {
  const all = held(false)
  return all > memory ? held(true) : all
}

/** V8 shows it to contexts that are made while its flag is set: one for the process, so another thread may clear it amid this. */
function findCollector(): () => void {
  for (let tries = 0; tries < 100; tries++) {
    setFlagsFromString('--expose-gc')
    const collect: unknown = runInNewContext('globalThis.gc')
    setFlagsFromString('--no-expose-gc')
    if (typeof collect === 'function') return collect as () => void
  }
  // Then garbage counts, too.
  return () => undefined
}

const collectGarbage = findCollector()

/** Garbage is looked for only where there is much. */
const isTooMuch = () => held(false) > memory && held(true) > memory

/** Called by the inspector, which interrupts what runs: what holds too much goes no further, and the host ends it. */
function look() {
  if (!current || !isTooMuch()) return
  post({ kind: 'over', id: current.id })
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}
Object.defineProperty(globalThis, LOOK, { value: look })

/** The number that Linux has for this thread. */
function taskNumber(): string | undefined {
  try {
    return /\/task\/(\d+)$/.exec(readlinkSync('/proc/thread-self'))?.[1]
  } catch {
    return undefined
  }
}

process.on('uncaughtException', thrown => {
  const call = running.getStore() ?? current
  post({ kind: 'uncaught', id: call?.id, tool: call?.tool ?? '', error: packError(thrown) })
})

function findTool(exported: Readonly<Record<string, unknown>>, { name, index, tool }: CallMessage['at']) {
  const value = exported[name]
  const found = index === undefined ? value : Array.isArray(value) ? value[index] : undefined
  if (kindOf(found) === 'tool' && (found as ToolDefinition).name === tool) return found as ToolDefinition
  const where = index === undefined ? name : `${name}[${index}]`
  throw new Error(
    `${file} does not export the tool "${tool}" as ${where} in a thread, as it did at start: reload or restart ` +
      'after a change, and let what it exports depend on nothing but the module itself',
  )
}

async function run(exported: Readonly<Record<string, unknown>>, { id, at, args, data }: CallMessage) {
  const user = data.user && freezeUser(data.user)
  const call = createRunning({ ...data, user }, { id, tool: at.tool, post, read })
  current = call
  try {
    const tool = findTool(exported, at)
    const handler = tool.handler as (args: unknown, ctx: CallContext) => unknown
    const value = await running.run(call, () => handler(args, call.ctx))
    call.answer(value, kept())
  } catch (error) {
    post({ kind: 'thrown', id, error: packError(error), held: kept() })
  } finally {
    call.over()
    if (current === call) current = undefined
  }
}

try {
  const exported = await importModule(file)
  port.on('message', (message: ToThread) => {
    if (message.kind === 'call') run(exported, message)
    else current?.hear(message)
  })
  post({ kind: 'ready', task: taskNumber() })
} catch (error) {
  post({ kind: 'unloadable', error: packError(error) })
}
