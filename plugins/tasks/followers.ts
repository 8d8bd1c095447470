// Tells those who listen for tasks how they are, whenever that changes: the same as `tasks/get` would have answered then.
import { type Call, type Honoured, HostError, type Logger } from '../../core/index.ts'
import { hasEnded, type TaskNews, type TaskRecord, type TaskStore } from '../../core/transport.ts'
import { taskLost } from './shown.ts'
import type { Tasks } from './tasks.ts'
import { isId } from './work.ts'

/** Tasks that one subscription names. */
const MOST_FOLLOWED = 100

type Notify = Parameters<Honoured['begin']>[0]

interface Followed {
  /** The last version that each was told. */
  readonly told: Map<Notify, number>
  looking: boolean
  again: boolean
  /** As it was when it was looked at last. */
  last?: TaskRecord
  /** Looks again once its time is over: that is no news of the store's. */
  timer?: NodeJS.Timeout
}

/** The longest that a timer waits, milliseconds. */
const LONGEST_WAIT = 2 ** 31 - 1
/** Clocks of stores differ from ours: so much after its time a task is looked at, milliseconds, and at least so far apart. */
const LATER = 250

export class Followers {
  readonly #store: TaskStore
  readonly #tasks: Tasks
  readonly #log: Logger
  readonly #followed = new Map<string, Followed>()
  /** Who listens: what they may hear is decided each time. */
  readonly #calls = new WeakMap<Notify, Call>()

  constructor(store: TaskStore, tasks: Tasks, log: Logger) {
    this.#store = store
    this.#tasks = tasks
    this.#log = log
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
    const found = await Promise.all(ids.map(id => this.#tasks.find(call, id).then(() => id, ifUnknown)))
    const own = found.filter(id => id !== undefined)
    if (own.length === 0) return undefined
    const begin: Honoured['begin'] = notify => {
      this.#calls.set(notify, call)
      return this.#begin(own, notify)
    }
    return { acknowledged: own, begin }
  }

  #begin(ids: readonly string[], notify: Notify): () => void {
    for (const id of ids) {
      const followed = this.#followed.get(id) ?? { told: new Map(), looking: false, again: false }
      this.#followed.set(id, followed)
      followed.told.set(notify, 0)
      // What happened before is told as well: a task may be over by now.
      this.#look(id)
    }
    return () => {
      for (const id of ids) {
        const followed = this.#followed.get(id)
        followed?.told.delete(notify)
        if (followed?.told.size !== 0) continue
        clearTimeout(followed.timer)
        this.#followed.delete(id)
      }
    }
  }

  /** One look at a time; what happens meanwhile is looked at after it. */
  #look(id: string) {
    const followed = this.#followed.get(id)
    if (!followed) return
    followed.again = true
    if (followed.looking) return
    followed.looking = true
    void this.#tell(id, followed)
      // What cannot be read is told to nobody: it may be another version's, or broken where it is kept.
      .catch(err => this.#log.error({ err, task: id.slice(0, 6) }, 'those who listen for a task could not be told'))
      .finally(() => {
        followed.looking = false
      })
  }

  async #tell(id: string, followed: Followed): Promise<void> {
    while (followed.again) {
      followed.again = false
      const found = await this.#store.get(id).catch(() => 'away' as const)
      // A store that is away says so when it is back.
      if (found === 'away') return
      const record = found ?? lost(followed.last)
      if (!record) return
      followed.last = remember(record)
      this.#lookLater(id, followed, record)
      const late = [...followed.told].filter(([, version]) => version < record.version)
      if (late.length === 0) continue
      const params = this.#tasks.details(record)
      for (const [notify] of late) {
        if (!followed.told.has(notify) || !this.#tasks.mayHear(this.#calls.get(notify), record)) continue
        followed.told.set(notify, record.version)
        notify('notifications/tasks', params)
      }
    }
  }

  #lookLater(id: string, followed: Followed, { state, until }: TaskRecord) {
    clearTimeout(followed.timer)
    if (hasEnded(state) || followed.told.size === 0) return
    const wait = Math.min(Math.max(until - Date.now(), 0) + LATER, LONGEST_WAIT)
    followed.timer = setTimeout(() => this.#look(id), wait).unref()
  }
}

/** Without its large parts. */
function remember({ outcome: _, ...record }: TaskRecord): TaskRecord {
  return { ...record, body: '', questions: [] }
}

/** What is told of a task that is not there any more; undefined where nothing is left to tell. */
function lost(last: TaskRecord | undefined): TaskRecord | undefined {
  if (!last || hasEnded(last.state)) return undefined
  return { ...last, ...taskLost(), updatedAt: Date.now(), version: last.version + 1 }
}

function ifUnknown(error: unknown): undefined {
  if (HostError.is(error) && error.kind === 'invalidParams') return undefined
  throw error
}
