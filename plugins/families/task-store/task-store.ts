// Tasks, their runs and results, as the task store returns them.

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

export interface TaskRequest {
  /** Unique within the task. */
  readonly key: string
  readonly text: string
  readonly response?: string
}

/** The last three states are final. */
export type TaskState = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'

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
  readonly open: number
  readonly note?: string
}

/** A stored task. After its end, `body` and `requests` are empty. */
export interface TaskRecord extends TaskSummary, Pick<NewTask, 'body'> {
  /** Ordered; at most 100. */
  readonly requests: readonly TaskRequest[]
  readonly outcome?: string
}

/** Limits in bytes, as the store counts them. */
export interface ByteLimits {
  /** Limit of one holder. Default and maximum: a quarter of the store. */
  readonly bytesPerHolder?: number
}

export interface TaskLimits extends ByteLimits {
  readonly openPerHolder: number
  readonly keptPerHolder: number
  readonly kept: number
}

/** `holder`: the holder's limits are reached. `full`: the store's limits are reached. */
export type TaskRefusal = 'holder' | 'full'

/** Size of a result that is always stored, so that every task can end. Bytes. */
export const SMALL_OUTCOME = 2_048

export interface ResponseLimits extends ByteLimits {
  /** Limit for all responses to one task. */
  readonly bytesPerTask?: number
}

/** A queue that a worker serves. */
export interface QueueOffer {
  readonly queue: string
  /** Maximum running tasks on all nodes. */
  readonly running: number
  /** The same limit for each holder. */
  readonly runningPerHolder: number
}

/** The right to run a task. Writes with an older fence fail. */
export interface TaskLease {
  readonly id: string
  readonly fence: number
}

export interface QueueDepth {
  readonly queue: string
  readonly queued: number
  readonly running: number
  /** Age of the oldest queued task, milliseconds. */
  readonly waited: number
}

export interface TaskChange {
  readonly id: string
  readonly queue: string
  readonly state: TaskState
}

export const shareOf = (all: number, { bytesPerHolder = Number.POSITIVE_INFINITY }: ByteLimits = {}): number =>
  Math.min(bytesPerHolder, Math.floor(all / 4))

export const hasEnded = (state: TaskState): state is TaskEnd['state'] => state !== 'queued' && state !== 'running'
