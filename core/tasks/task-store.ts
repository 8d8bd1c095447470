// The `taskStore` slot: tasks, their runs and results.

/** A new task. Stores do not interpret its texts. */
export interface NewTask {
  readonly id: string
  readonly holder: string
  readonly owner: string
  /** The queue, such as a tool of a route. Equal on every node and never chosen by a client. */
  readonly queue: string
  /** Lifetime from creation, milliseconds. */
  readonly ttl: number
  /** The input. Immutable, and deleted when the task ends. */
  readonly body: string
}

/** A question of a task, with its answer. */
export interface TaskQuestion {
  /** Unique in the task. */
  readonly key: string
  readonly text: string
  readonly answer?: string
}

/** The last three states are final. */
export type TaskState = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'

/** The end of a task. */
export interface TaskEnd {
  readonly state: 'completed' | 'failed' | 'cancelled'
  readonly outcome?: string
}

/** A task without its large fields. Times are milliseconds since the epoch, by the store's clock. */
export interface TaskSummary extends Pick<NewTask, 'id' | 'holder' | 'owner' | 'queue'> {
  /** Increases with each task of the store. */
  readonly serial: number
  readonly state: TaskState
  readonly createdAt: number
  readonly updatedAt: number
  readonly until: number
  /** Increases with every change except lease renewal. */
  readonly version: number
  /** Increases with every claim and with `cancel`. A run with a smaller fence has lost the task. 0: never claimed. */
  readonly fence: number
  readonly runs: number
  /** Number of unanswered questions. */
  readonly open: number
  readonly note?: string
}

/** A stored task. After its end, `body` and `questions` are empty. */
export interface TaskRecord extends TaskSummary, Pick<NewTask, 'body'> {
  /** Ordered; at most 100. */
  readonly questions: readonly TaskQuestion[]
  readonly outcome?: string
}

/** Limits in bytes, as the store counts them. */
export interface TaskRoom {
  /** Limit of one holder. Default and maximum: a quarter of the store. */
  readonly bytesPerHolder?: number
}

/** Limits of a store. */
export interface TaskBounds extends TaskRoom {
  readonly openPerHolder: number
  readonly keptPerHolder: number
  readonly kept: number
}

/** `holder`: the holder's limits are reached. `full`: the store's limits are reached. */
export type TaskRefusal = 'holder' | 'full'

/** The result of `create`. */
type TaskCreation = 'created' | TaskRefusal

/** Size of a result that is always stored, so that every task can end. Bytes. */
export const SMALL_OUTCOME = 2_048

/** Limits of answers. */
export interface AnswerRoom extends TaskRoom {
  /** All answers to one task. */
  readonly bytesPerTask?: number
}

/** A queue that a worker serves. */
export interface QueueOffer {
  readonly queue: string
  /** Maximum running tasks on all nodes. */
  readonly running: number
  /** The same limit for one holder. */
  readonly runningPerHolder: number
}

/** The right to run a task. Writes with an older fence fail. */
export interface TaskLease {
  readonly id: string
  readonly fence: number
}

/** The state of a queue. */
export interface QueueDepth {
  readonly queue: string
  readonly queued: number
  readonly running: number
  /** Age of the oldest queued task, milliseconds. */
  readonly waited: number
}

/** A change of a task. */
export interface TaskNews {
  readonly id: string
  readonly queue: string
  readonly state: TaskState
}

/**
 * Stores tasks. Operations on one task are atomic, and acknowledged writes are durable. Expired tasks do not exist. Rejects with
 * a HostError `unavailable` if the store does not respond (the outcome is unknown) or is full (nothing is written). A run holds a
 * lease with a fence: `claim` and `claimLapsed` return it, `renew` extends it. `note`, `ask`, `release` and `end` return false
 * without the latest fence. An expired lease stays valid until the next claim.
 */
export interface TaskStore {
  /** Whether other nodes use the same store. `host`: only the workers of this host. */
  readonly shared: boolean | 'host'
  /** Queues a task behind the holder's other tasks. Idempotent for an existing id. */
  create(task: NewTask, bounds: TaskBounds): Promise<TaskCreation>
  get(id: string): Promise<TaskRecord | undefined>
  /** Independent of the task's size. */
  look(id: string): Promise<TaskSummary | undefined>
  /** Tasks of a holder, newest first. `before`: only smaller serials. */
  list(holder: string, most: number, before?: number): Promise<readonly TaskSummary[]>
  /** Claims a queued task for `lease` milliseconds, from the first non-empty queue. Holders take turns in each queue. */
  claim(offers: readonly QueueOffer[], lease: number): Promise<TaskRecord | undefined>
  /** Claims a running task with an expired lease. `runs` does not change. */
  claimLapsed(lease: number): Promise<TaskRecord | undefined>
  /** Returns the version of each task; undefined for a lost lease. */
  renew(leases: readonly TaskLease[], lease: number): Promise<ReadonlyArray<number | undefined>>
  /** Requeues a task in front of the holder's other tasks. */
  release(lease: TaskLease): Promise<boolean>
  /** Rejects with `unavailable` if the store is full, like `ask`. */
  note(lease: TaskLease, note: string): Promise<boolean>
  /** Idempotent for an existing key. */
  ask(lease: TaskLease, question: Pick<TaskQuestion, 'key' | 'text'>): Promise<boolean>
  /**
   * Ends a task, which is kept for at least `ttl` more milliseconds. Idempotent for one fence. If the result does not fit,
   * nothing changes and the refusal is returned.
   */
  end(lease: TaskLease, end: TaskEnd, ttl: number, room?: TaskRoom): Promise<boolean | TaskRefusal>
  /** Answers open questions and returns their number. All or nothing if space is short. */
  answer(
    id: string,
    answers: Readonly<Record<string, string>>,
    room?: AnswerRoom,
  ): Promise<number | TaskRefusal | 'task'>
  /** False if the task has ended or does not exist. */
  cancel(id: string): Promise<boolean>
  depths(): Promise<readonly QueueDepth[]>
  /** Reports every stored change on any node; undefined if changes may have been missed. Expiry is not reported. */
  watch(tell: (news: TaskNews | undefined) => void): () => void
}

/** The limit of one holder in bytes. */
export const shareOf = (all: number, { bytesPerHolder = Number.POSITIVE_INFINITY }: TaskRoom = {}): number =>
  Math.min(bytesPerHolder, Math.floor(all / 4))

/** Whether a task has ended. */
export const hasEnded = (state: TaskState): state is TaskEnd['state'] => state !== 'queued' && state !== 'running'
