// Tells those who listen for tasks how they are, whenever that changes: the same as `tasks/get` would have answered then.
import { type Call, type Clock, type Honoured, HostError, type Logger, type Timer } from '../../core/index.ts'
import {
  hasEnded,
  isUnavailable,
  type TaskNews,
  type TaskRecord,
  type TaskStore,
  type TaskSummary,
} from '../../core/transport.ts'
import { taskLost } from './shown.ts'
import type { Tasks } from './tasks.ts'
import { isId } from './work.ts'

/** Tasks that one subscription names. */
const MOST_FOLLOWED = 100

type Notify = Parameters<Honoured['begin']>[0]

interface Followed {
  /** The last version that each was told. */
  readonly told: Map<Notify, number>
  /** Whom it is counted for: of those of one holder one is looked at at a time. */
  readonly holder: string
  /** As it was when it was looked at last. */
  last?: TaskSummary
  /** Looks again once its time is over: that is no news of the store's. */
  timer?: Timer
}

/** The longest that a timer waits, milliseconds. */
const LONGEST_WAIT = 2 ** 31 - 1
/** Clocks of stores differ from ours: so much after its time a task is looked at, milliseconds, and at least so far apart. */
const LATER = 250

export class Followers {
  readonly #log: Logger
  readonly #clock: Clock
  readonly #store: TaskStore
  readonly #tasks: Tasks
  readonly #followed = new Map<string, Followed>()
  /** Who listens: what they may hear is decided each time. */
  readonly #calls = new WeakMap<Notify, Call>()
  /** Of each holder the tasks that are to be looked at, while there are any. */
  readonly #waiting = new Map<string, Set<string>>()

  constructor(store: TaskStore, tasks: Tasks, { log, clock }: { readonly log: Logger; readonly clock: Clock }) {
    this.#log = log
    this.#clock = clock
    this.#store = store
    this.#tasks = tasks
  }

  /** How many tasks somebody listens for. */
  get size(): number {
    return this.#followed.size
  }

  hear(news: TaskNews | undefined) {
    if (news) this.#look(news.id)
    else for (const id of this.#followed.keys()) this.#look(id)
  }

  /** The filter `taskIds` of `subscriptions/listen`. */
  async filter(wanted: unknown, call: Call): Promise<Honoured | undefined> {
    if (!Array.isArray(wanted) || wanted.length > MOST_FOLLOWED || wanted.some(id => typeof id !== 'string')) {
      throw new HostError('invalidParams', {
        detail: `\`notifications.taskIds\` must be at most ${MOST_FOLLOWED} texts`,
      })
    }
    const ids = [...new Set(wanted as string[])].filter(isId)
    const own: TaskSummary[] = []
    for (const id of ids) {
      // Nobody is there to be told any more.
      if (call.cancelled) return undefined
      const found = await this.#tasks.find(call, id).catch(ifUnknown)
      if (found) own.push(found)
    }
    if (own.length === 0) return undefined
    const begin: Honoured['begin'] = notify => {
      this.#calls.set(notify, call)
      return this.#begin(own, notify)
    }
    return { acknowledged: own.map(({ id }) => id), begin }
  }

  #begin(tasks: readonly TaskSummary[], notify: Notify): () => void {
    for (const { id, holder } of tasks) {
      const followed = this.#followed.get(id) ?? { told: new Map(), holder }
      this.#followed.set(id, followed)
      followed.told.set(notify, 0)
      // What happened before is told as well: a task may be over by now.
      this.#look(id)
    }
    return () => {
      for (const { id } of tasks) {
        const followed = this.#followed.get(id)
        followed?.told.delete(notify)
        if (followed?.told.size !== 0) continue
        this.#clock.clear(followed.timer)
        this.#followed.delete(id)
      }
    }
  }

  /** One of a holder's at a time; what happens to a task meanwhile is looked at after it. */
  #look(id: string) {
    const holder = this.#followed.get(id)?.holder
    if (holder === undefined) return
    const waiting = this.#waiting.get(holder)
    if (waiting) {
      waiting.add(id)
      return
    }
    const ids = new Set([id])
    this.#waiting.set(holder, ids)
    void this.#lookAll(holder, ids)
  }

  async #lookAll(holder: string, ids: Set<string>): Promise<void> {
    for (const id of ids) {
      ids.delete(id)
      const followed = this.#followed.get(id)
      if (followed) await this.#tell(id, followed).catch(err => this.#couldNotTell(id, err))
    }
    this.#waiting.delete(holder)
  }

  /** A store that is away says so when it is back; what cannot be read may be another version's, or broken where it is kept. */
  #couldNotTell(id: string, err: unknown) {
    if (isUnavailable(err)) return
    this.#log.error({ err, task: id.slice(0, 6) }, 'those who listen for a task could not be told')
  }

  async #tell(id: string, followed: Followed): Promise<void> {
    const found = (await this.#store.look(id)) ?? lost(followed.last, this.#clock.now())
    if (!found) return
    const isLate = ({ version }: TaskSummary) => [...followed.told.values()].some(told => told < version)
    const record = isLate(found) ? await this.#whole(found) : undefined
    if (record === 'gone') return this.#look(id)
    followed.last = record ? { ...found, state: record.state, version: record.version } : found
    this.#lookLater(id, followed, found)
    if (!record) return
    const params = this.#tasks.details(record)
    for (const [notify, version] of [...followed.told]) {
      if (version >= record.version || !followed.told.has(notify)) continue
      if (!this.#tasks.mayHear(this.#calls.get(notify), record)) continue
      followed.told.set(notify, record.version)
      notify('notifications/tasks', params)
    }
  }

  /** What a task holds is read where it is to be told: a result, an error, questions. */
  async #whole(found: TaskSummary): Promise<TaskRecord | 'gone'> {
    if ('body' in found) return found as TaskRecord
    const { state, open } = found
    const isPlain = state === 'cancelled' || (!hasEnded(state) && open === 0)
    if (isPlain) return { ...found, body: '', questions: [] }
    return (await this.#store.get(found.id)) ?? 'gone'
  }

  #lookLater(id: string, followed: Followed, { state, until }: TaskSummary) {
    this.#clock.clear(followed.timer)
    if (hasEnded(state) || followed.told.size === 0) return
    const wait = Math.min(Math.max(until - this.#clock.now(), 0) + LATER, LONGEST_WAIT)
    followed.timer = this.#clock.setTimeout(() => this.#look(id), wait).unref()
  }
}

/** What is told of a task that is not there any more; undefined where nothing is left to tell. */
function lost(last: TaskSummary | undefined, now: number): TaskRecord | undefined {
  if (!last || hasEnded(last.state)) return undefined
  return { ...last, body: '', questions: [], ...taskLost(), updatedAt: now, version: last.version + 1 }
}

function ifUnknown(error: unknown): undefined {
  if (HostError.is(error) && error.kind === 'invalidParams') return undefined
  throw error
}
