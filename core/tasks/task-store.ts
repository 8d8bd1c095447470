// The slot `taskStore`: tasks, their runs and outcomes.

/** A new task. Stores do not interpret its texts. */
export interface NewTask {
  /** Random and unique. */
  readonly id: string
  /** The account that it counts for, at most 128 characters. */
  readonly holder: string
  /** The owner, at most 128 characters. */
  readonly owner: string
  /** The queue, such as a tool of a route; the same on every node and never from a client. */
  readonly queue: string
  /** Lifetime from creation, milliseconds. */
  readonly ttl: number
  /** The work. Never changes, and is deleted at the end. */
  readonly body: string
}

/** A question of a task, with its answer. */
export interface TaskQuestion {
  /** Unique in the task. */
  readonly key: string
  readonly text: string
  readonly answer?: string
}

/** The last three are final. */
export type TaskState = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'

/** The end of a task. */
export interface TaskEnd {
  readonly state: 'completed' | 'failed' | 'cancelled'
  readonly outcome?: string
}

/** A task without its large parts. Times are milliseconds since the epoch, by the clock of the store. */
export interface TaskSummary extends Pick<NewTask, 'id' | 'holder' | 'owner' | 'queue'> {
  /** Increases with each task of the store. */
  readonly serial: number
  readonly state: TaskState
  readonly createdAt: number
  readonly updatedAt: number
  /** Expiry. */
  readonly until: number
  /** Increases with every change except renewed leases. */
  readonly version: number
  /** Increases with every claim and with `cancel`; a run with a smaller fence has lost the task. 0: never claimed. */
  readonly fence: number
  /** Number of claims from the queue. */
  readonly runs: number
  /** Unanswered questions. */
  readonly open: number
  /** The last progress message. */
  readonly note?: string
}

/** A stored task. After its end, body and questions are empty. */
export interface TaskRecord extends TaskSummary, Pick<NewTask, 'body'> {
  /** In order; at most 100. */
  readonly questions: readonly TaskQuestion[]
  readonly outcome?: string
}

/** Limits in bytes, as the store counts them. */
export interface TaskRoom {
  /** Of one holder; at most (default) a quarter of the store. */
  readonly bytesPerHolder?: number
}

/** Limits of a store. */
export interface TaskBounds extends TaskRoom {
  /** Open tasks of one holder. */
  readonly openPerHolder: number
  /** Tasks of one holder, including ended ones. */
  readonly keptPerHolder: number
  /** All tasks. */
  readonly kept: number
}

/** `holder`: the limits of this holder are reached. `full`: those of the store. */
export type TaskRefusal = 'holder' | 'full'

/** The result of `create`. */
export type TaskCreation = 'created' | TaskRefusal

/** Bytes of an outcome that is always stored, so that every task can end. */
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
  /** The same for one holder. */
  readonly runningPerHolder: number
}

/** The right to run a task; writes with an older fence fail. */
export interface TaskLease {
  readonly id: string
  readonly fence: number
}

/** The state of a queue. */
export interface QueueDepth {
  readonly queue: string
  readonly queued: number
  readonly running: number
  /** Milliseconds that the oldest queued task has waited. */
  readonly waited: number
}

/** A change of a task. */
export interface TaskNews {
  readonly id: string
  readonly queue: string
  readonly state: TaskState
}

/**
 * Stores tasks. Operations on one task are atomic, and acknowledged writes are kept. Expired tasks do not exist. Rejects with a
 * HostError `unavailable` if the store does not respond (the operation may be done) or has no room (nothing is done).
 *
 * A run holds a lease with a fence: `claim` and `claimLapsed` return it, `renew` extends it. `note`, `ask`, `release` and `end`
 * require the fence of the last claim, otherwise they return false. An expired lease is valid until another claim.
 */
export interface TaskStore {
  /** Whether other nodes use the same store; `host`: only the workers of this host. */
  readonly shared: boolean | 'host'
  /** Stores a task as the last of its holder in its queue. Idempotent for an existing id. */
  create(task: NewTask, bounds: TaskBounds): Promise<TaskCreation>
  get(id: string): Promise<TaskRecord | undefined>
  /** Costs the same for every size of a task. */
  look(id: string): Promise<TaskSummary | undefined>
  /** Tasks of a holder, newest first; `before`: with a smaller serial. */
  list(holder: string, most: number, before?: number): Promise<readonly TaskSummary[]>
  /** Claims a queued task for `lease` milliseconds, from the first queue that has one. Holders take turns in each queue. */
  claim(offers: readonly QueueOffer[], lease: number): Promise<TaskRecord | undefined>
  /** Claims a running task whose lease has expired; `runs` does not change. */
  claimLapsed(lease: number): Promise<TaskRecord | undefined>
  /** Returns the version of each task, undefined for a lost lease. */
  renew(leases: readonly TaskLease[], lease: number): Promise<ReadonlyArray<number | undefined>>
  /** Returns a task to its queue, as the first of its holder. */
  release(lease: TaskLease): Promise<boolean>
  /** Rejects with `unavailable` if there is no room, as `ask` does. */
  note(lease: TaskLease, note: string): Promise<boolean>
  /** Idempotent for an existing key. */
  ask(lease: TaskLease, question: Pick<TaskQuestion, 'key' | 'text'>): Promise<boolean>
  /**
   * Ends a task, which is kept for at least `ttl` milliseconds more. Idempotent for one fence. Without room for the outcome it
   * returns a refusal and changes nothing; at most `SMALL_OUTCOME` bytes are always stored.
   */
  end(lease: TaskLease, end: TaskEnd, ttl: number, room?: TaskRoom): Promise<boolean | TaskRefusal>
  /** Answers open questions and returns their number. Without room for all it changes nothing. */
  answer(
    id: string,
    answers: Readonly<Record<string, string>>,
    room?: AnswerRoom,
  ): Promise<number | TaskRefusal | 'task'>
  /** False if the task has ended or does not exist. */
  cancel(id: string): Promise<boolean>
  /** Queues with queued or running tasks. */
  depths(): Promise<readonly QueueDepth[]>
  /** Reports every stored change on any node; undefined if changes may have been missed. Expiry is not reported. */
  watch(tell: (news: TaskNews | undefined) => void): () => void
}

/** The limit of one holder in bytes. */
export const shareOf = (all: number, { bytesPerHolder = Number.POSITIVE_INFINITY }: TaskRoom = {}): number =>
  Math.min(bytesPerHolder, Math.floor(all / 4))

/** Whether a task has ended. */
export const hasEnded = (state: TaskState): state is TaskEnd['state'] => state !== 'queued' && state !== 'running'
