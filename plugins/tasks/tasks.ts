// The options of tasks, and the client operations: create by a tool call, get, respond, cancel and list.

import { HostError, type ToolDefinition } from '../../core/index.ts'
import type { InternalHost, Services } from '../../core/internal.ts'
import {
  type AddedExtension,
  type Call,
  isObject,
  parseDuration,
  parseSize,
  StartError,
  type ToolKey,
} from '../../core/plugin.ts'
import type { QueueOffer, TaskLimits, TaskRecord, TaskStore, TaskSummary } from '../families/task-store/index.ts'
import type { FilledTasksOptions } from './options.ts'
import type { TaskPolicy } from './policy.ts'
import { accountOf, detailsOf, factsOf, isId, lineOf, newId, ownerOf, seedOf, type Work, workOf } from './records.ts'
import type { TaskSetting } from './task-key.ts'

export const TASKS_ID = 'io.modelcontextprotocol/tasks'

/** Minimum lease, milliseconds. Shorter leases lapse during a store request, longer ones leave clients waiting. */
const MIN_LEASE = 300
const MAX_LEASE = 20_000

/** Number of stored tasks for each open one. */
const KEPT_PER_OPEN = 10

/** Times are milliseconds, sizes bytes. */
export interface TaskSettings {
  readonly runs: boolean
  readonly ttl: number
  readonly pollInterval: number
  readonly lease: number
  readonly maxSize: number
  readonly concurrent: number
  readonly offered: Pick<QueueOffer, 'running' | 'runningPerHolder'>
  readonly limits: TaskLimits
}

export function settingsOf(options: FilledTasksOptions, { config: { at }, report }: InternalHost): TaskSettings {
  const lease = parseDuration(options.lease)
  if (lease < MIN_LEASE || lease > MAX_LEASE) {
    report(
      new StartError('MH2503', `lease is ${options.lease}; write 300ms to 20s, such as 15s`, { at: [...at, 'lease'] }),
    )
  }
  return {
    runs: options.role !== 'front',
    ttl: parseDuration(options.ttl),
    pollInterval: parseDuration(options.pollInterval),
    lease,
    maxSize: parseSize(options.maxSize),
    concurrent: options.concurrent,
    offered: { running: options.perTool, runningPerHolder: options.perUser },
    limits: {
      openPerHolder: options.openPerUser,
      keptPerHolder: KEPT_PER_OPEN * options.openPerUser,
      kept: options.kept,
    },
  }
}

const PAGE = 50
/** Reads per page: tasks of other addresses or inaccessible tools are skipped. */
const MAX_READS = 20
const MAX_RESPONSES = 100
/** Interval between cancellations of a task that was possibly stored, milliseconds, and their number. */
const TAKE_BACK_EVERY = 1_000
const TAKE_BACKS = 30

export interface TasksHost {
  readonly store: TaskStore
  readonly settings: TaskSettings
  readonly extension: AddedExtension
  readonly policy: TaskPolicy
  readonly makeOffer: Services['makeOffer']
  readonly queued: (queue: string, most: number) => void
}

type Run = Parameters<NonNullable<ToolKey['onCall']>>[2]
type Handler = NonNullable<Parameters<Run>[0]>

const invalid = (detail: string) => new HostError('invalidParams', { detail })

/** The same error for unknown, expired and foreign tasks. */
const unknownTask = () => invalid('the task does not exist or has expired')

const missing = (tool: string) =>
  new HostError('missingCapability', {
    detail: `"${tool}" runs as a task: it requires a client that declares the extension ${TASKS_ID}`,
    data: { requiredCapabilities: { extensions: { [TASKS_ID]: {} } } },
  })

const busy = (detail: string) => new HostError('tooManyRequests', { detail, headers: { 'Retry-After': '10' } })

const full = () => new HostError('unavailable', { detail: 'the task store is full', headers: { 'Retry-After': '10' } })

function taskIdOf(call: Call): string {
  const { taskId } = call.params
  if (typeof taskId !== 'string') throw invalid(`${call.method} requires \`taskId\`, a string`)
  return taskId
}

export const concurrencyOf = ({ concurrency = Number.POSITIVE_INFINITY }: ToolDefinition): number => concurrency

export class Tasks {
  readonly #host: TasksHost

  constructor(host: TasksHost) {
    this.#host = host
  }

  onCall(call: Call, task: TaskSetting, run: Run, tool: ToolDefinition): ReturnType<Run> {
    const { extension } = this.#host
    if (call.deferred) return run()
    const { use, before } = typeof task === 'object' ? task : { use: task, before: undefined }
    const prepare = before as ((args: unknown, ctx: unknown) => object | Promise<object>) | undefined
    if (!call.modern || !extension.settingsOf(call)) {
      if (call.modern && use === 'required') throw missing(tool.name)
      if (!prepare) return run()
      const handler = tool.handler as (args: unknown, ctx: unknown) => unknown
      const whole = async (args: unknown, ctx: unknown) => handler(await prepare(args, ctx), ctx)
      return run(whole as unknown as Handler)
    }
    if (!prepare) return this.#create(call, tool, call.params['arguments'])
    const first = async (args: unknown, ctx: unknown) => this.#create(call, tool, await prepare(args, ctx))
    return run(first as unknown as Handler)
  }

  async #create(call: Call, tool: ToolDefinition, args: unknown) {
    const { store, settings, extension, policy, queued } = this.#host
    const { queue, isOfToolset } = policy.queueOf(call, tool)
    const work = workOf(call, tool, args, isOfToolset)
    if (!isOfToolset) await this.#demandOffered(call, work)
    const body = JSON.stringify(work)
    if (Buffer.byteLength(body) > settings.maxSize) {
      const detail = `a task holds at most ${settings.maxSize} bytes of arguments and caller data`
      throw new HostError('payloadTooLarge', { detail })
    }
    const id = newId()
    queued(queue, concurrencyOf(tool))
    const { limits, ttl, pollInterval } = settings
    const created = await this.#insisting(id, () =>
      store.create({ id, holder: accountOf(call), owner: ownerOf(call), queue, ttl, body }, limits),
    )
    if (created === 'holder')
      throw busy('you have reached the limit of your tasks; wait until tasks end or expire (ttlMs)')
    if (created === 'full') throw full()
    const record = await this.#insisting(id, () => store.getSummary(id))
    if (!record) throw new HostError('unavailable', { detail: 'the task was not stored' })
    return extension.result('task', seedOf(record, pollInterval))
  }

  /** Throws if `configureSession` would not offer the tool to the task's run. */
  async #demandOffered(call: Call, work: Work) {
    const { view } = await this.#host.makeOffer(factsOf(work, call.offer.route, () => call.signal))
    if (view.tools.has(work.tool)) return
    throw invalid(
      `"${work.tool}" cannot run as a task: it requires a credential in a header, which is not stored with tasks`,
    )
  }

  /** After a failure, the task is possibly stored, but its id is unknown: it must not run. */
  async #insisting<Value>(id: string, act: () => Promise<Value>): Promise<Value> {
    try {
      return await act()
    } catch (error) {
      void this.#takeBack(id, TAKE_BACKS)
      throw error
    }
  }

  async #takeBack(id: string, attempts: number): Promise<void> {
    try {
      await this.#host.store.cancel(id)
    } catch {
      if (attempts > 1) setTimeout(() => void this.#takeBack(id, attempts - 1), TAKE_BACK_EVERY).unref()
    }
  }

  /** Finds a task. Throws `invalidParams` for tasks of other callers, and of tools that the caller cannot call. */
  async find(call: Call, id = taskIdOf(call)): Promise<TaskSummary> {
    const { store, policy } = this.#host
    const task = isId(id) ? await store.getSummary(id) : undefined
    if (!task || task.owner !== ownerOf(call) || !policy.allows(call, task)) throw unknownTask()
    return task
  }

  async #read(call: Call): Promise<TaskRecord> {
    const { id } = await this.find(call)
    const record = await this.#host.store.get(id)
    if (!record) throw unknownTask()
    return record
  }

  canSubscribe(call: Call | undefined, task: Pick<TaskRecord, 'queue'>): boolean {
    return call !== undefined && this.#host.policy.allowsNow(call, task)
  }

  details(record: TaskRecord): Record<string, unknown> {
    return detailsOf(record, this.#host.settings.pollInterval)
  }

  async get(call: Call): Promise<object> {
    return this.details(await this.#read(call))
  }

  async update(call: Call): Promise<object> {
    const { inputResponses } = call.params
    if (!isObject(inputResponses)) throw invalid('tasks/update needs `inputResponses`, an object')
    const { id, requests } = await this.#read(call)
    const open = requests.filter(({ response }) => response === undefined).slice(0, MAX_RESPONSES)
    const wanted = open.filter(({ key }) => Object.hasOwn(inputResponses, key))
    if (wanted.length === 0) return {}
    const responses = Object.fromEntries(wanted.map(({ key }) => [key, JSON.stringify(inputResponses[key])]))
    const { maxSize, limits } = this.#host.settings
    const taken = await this.#host.store.addResponses(id, responses, { ...limits, bytesPerTask: maxSize })
    if (taken === 'task')
      throw new HostError('payloadTooLarge', { detail: `all responses to a task can have at most ${maxSize} bytes` })
    if (taken === 'holder') throw busy('your tasks have reached their size limit; wait until some expire (ttlMs)')
    if (taken === 'full') throw new HostError('unavailable', { detail: 'the task store is full' })
    return {}
  }

  async cancel(call: Call): Promise<object> {
    const { id } = await this.find(call)
    await this.#host.store.cancel(id)
    return {}
  }

  /** Lists the newest tasks first; empty for anonymous callers. A short page can have a next page. */
  async list(call: Call): Promise<object> {
    const { cursor } = call.params
    if (cursor !== undefined && !(typeof cursor === 'string' && /^\d{1,15}$/.test(cursor))) {
      throw invalid('`cursor` must be the `nextCursor` of an earlier response')
    }
    if (!call.user) return { tasks: [] }
    const owner = ownerOf(call)
    const tasks: object[] = []
    let before = cursor === undefined ? undefined : Number(cursor)
    for (let reads = 0; reads < MAX_READS; reads++) {
      const found = await this.#host.store.list(accountOf(call), PAGE + 1, before)
      for (const [at, task] of found.slice(0, PAGE).entries()) {
        before = task.serial
        if (task.owner === owner && this.#host.policy.allows(call, task)) {
          tasks.push(lineOf(task, this.#host.settings.pollInterval))
        }
        if (tasks.length === PAGE) return at + 1 < found.length ? { tasks, nextCursor: String(before) } : { tasks }
      }
      if (found.length <= PAGE) return { tasks }
    }
    return { tasks, nextCursor: String(before) }
  }
}
