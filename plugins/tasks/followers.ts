// Notifies subscribers of `taskIds` about changes of tasks.

import { HostError } from '../../core/index.ts'
import type { Call, Clock, Honoured, Logger, Timer } from '../../core/plugin.ts'
import { isUnavailable } from '../../core/transport.ts'
import {
  hasEnded,
  type TaskChange,
  type TaskRecord,
  type TaskStore,
  type TaskSummary,
} from '../families/task-store/index.ts'
import { isId, taskLost } from './records.ts'
import type { Tasks } from './tasks.ts'

const MAX_FOLLOWED = 100

type Notify = Parameters<Honoured['begin']>[0]

interface Followed {
  readonly notified: Map<Notify, number>
  /** The holder of the task. Tasks of one holder are checked one at a time. */
  readonly holder: string
  last?: TaskSummary
  /** Checks the task after its expiry, which the store does not announce. */
  timer?: Timer
}

/** Maximum timer delay, milliseconds. */
const MAX_DELAY = 2 ** 31 - 1
/** Milliseconds: tolerance for the clock of the store, and minimum interval between checks. */
const LATER = 250

export class Followers {
  readonly #log: Logger
  readonly #clock: Clock
  readonly #store: TaskStore
  readonly #tasks: Tasks
  readonly #followed = new Map<string, Followed>()
  /** Calls by subscriber, because access is decided for each notification. */
  readonly #calls = new WeakMap<Notify, Call>()
  readonly #waiting = new Map<string, Set<string>>()

  constructor(store: TaskStore, tasks: Tasks, { log, clock }: { readonly log: Logger; readonly clock: Clock }) {
    this.#log = log
    this.#clock = clock
    this.#store = store
    this.#tasks = tasks
  }

  get size(): number {
    return this.#followed.size
  }

  handle(change: TaskChange | undefined) {
    if (change) this.#check(change.id)
    else for (const id of this.#followed.keys()) this.#check(id)
  }

  async filter(wanted: unknown, call: Call): Promise<Honoured | undefined> {
    if (!Array.isArray(wanted) || wanted.length > MAX_FOLLOWED || wanted.some(id => typeof id !== 'string')) {
      throw new HostError('invalidParams', {
        detail: `\`notifications.taskIds\` must be a list of at most ${MAX_FOLLOWED} strings`,
      })
    }
    const ids = [...new Set(wanted as string[])].filter(isId)
    const own: TaskSummary[] = []
    for (const id of ids) {
      if (call.cancelled) return undefined
      const found = await this.#tasks.find(call, id).catch(ifUnknown)
      if (found) own.push(found)
    }
    if (own.length === 0) return undefined
    const begin: Honoured['begin'] = notify => {
      this.#calls.set(notify, call)
      return this.#start(own, notify)
    }
    return { acknowledged: own.map(({ id }) => id), begin }
  }

  #start(tasks: readonly TaskSummary[], notify: Notify): () => void {
    for (const { id, holder } of tasks) {
      const followed = this.#followed.get(id) ?? { notified: new Map(), holder }
      this.#followed.set(id, followed)
      followed.notified.set(notify, 0)
      this.#check(id)
    }
    return () => {
      for (const { id } of tasks) {
        const followed = this.#followed.get(id)
        followed?.notified.delete(notify)
        if (followed?.notified.size !== 0) continue
        this.#clock.clear(followed.timer)
        this.#followed.delete(id)
      }
    }
  }

  /** Checks one task of a holder at a time; changes during a check are checked next. */
  #check(id: string) {
    const holder = this.#followed.get(id)?.holder
    if (holder === undefined) return
    const waiting = this.#waiting.get(holder)
    if (waiting) {
      waiting.add(id)
      return
    }
    const ids = new Set([id])
    this.#waiting.set(holder, ids)
    void this.#checkAll(holder, ids)
  }

  async #checkAll(holder: string, ids: Set<string>): Promise<void> {
    for (const id of ids) {
      ids.delete(id)
      const followed = this.#followed.get(id)
      if (followed) await this.#notify(id, followed).catch(err => this.#logFailure(id, err))
    }
    this.#waiting.delete(holder)
  }

  /** Unavailable stores announce their return. Other errors mean invalid data or data of a newer version. */
  #logFailure(id: string, err: unknown) {
    if (isUnavailable(err)) return
    this.#log.error({ code: 'MH2511', err, task: id.slice(0, 6) }, 'could not notify the subscribers of a task')
  }

  async #notify(id: string, followed: Followed): Promise<void> {
    const found = (await this.#store.getSummary(id)) ?? lost(followed.last, this.#clock.now())
    if (!found) return
    const isLate = ({ version }: TaskSummary) => [...followed.notified.values()].some(sent => sent < version)
    const record = isLate(found) ? await this.#whole(found) : undefined
    if (record === 'missing') return this.#check(id)
    followed.last = record ? { ...found, state: record.state, version: record.version } : found
    this.#checkLater(id, followed, found)
    if (!record) return
    const params = this.#tasks.details(record)
    for (const [notify, version] of [...followed.notified]) {
      if (version >= record.version || !followed.notified.has(notify)) continue
      if (!this.#tasks.canSubscribe(this.#calls.get(notify), record)) continue
      followed.notified.set(notify, record.version)
      notify('notifications/tasks', params)
    }
  }

  async #whole(found: TaskSummary): Promise<TaskRecord | 'missing'> {
    if ('body' in found) return found as TaskRecord
    const { state, open } = found
    const isPlain = state === 'cancelled' || (!hasEnded(state) && open === 0)
    if (isPlain) return { ...found, body: '', requests: [] }
    return (await this.#store.get(found.id)) ?? 'missing'
  }

  #checkLater(id: string, followed: Followed, { state, until }: TaskSummary) {
    this.#clock.clear(followed.timer)
    if (hasEnded(state) || followed.notified.size === 0) return
    const wait = Math.min(Math.max(until - this.#clock.now(), 0) + LATER, MAX_DELAY)
    followed.timer = this.#clock.setTimeout(() => this.#check(id), wait).unref()
  }
}

function lost(last: TaskSummary | undefined, now: number): TaskRecord | undefined {
  if (!last || hasEnded(last.state)) return undefined
  return { ...last, body: '', requests: [], ...taskLost(), updatedAt: now, version: last.version + 1 }
}

function ifUnknown(error: unknown): undefined {
  if (HostError.is(error) && error.kind === 'invalidParams') return undefined
  throw error
}
