// Where tasks are kept: what they are to run, who runs them, what they ask, and how they ended. The interface of the slot
// `taskStore`; memory-task-store.ts is its default.

/** A task as it begins. Its texts are the plugin's own: a store reads none of them. */
export interface NewTask {
  /** Random, and of no other task. */
  readonly id: string
  /** Whom it is counted for: at most 128 characters. */
  readonly holder: string
  /** Who may see it, in words of the plugin: at most 128 characters, and at hand without the rest. */
  readonly owner: string
  /** What it waits in line for, such as a tool of a route. The same text on every node; of the config, never of a client. */
  readonly queue: string
  /** How long it is kept, milliseconds from its creation. */
  readonly ttl: number
  /** What is to be run, for whom. Never changes, and is forgotten once the task is over. */
  readonly body: string
}

/** A question that a task asked, with the answer once there is one. */
export interface TaskQuestion {
  /** Of no other question of this task, ever. */
  readonly key: string
  readonly text: string
  readonly answer?: string
}

/** `queued`: waits for a worker. The last three are ends: nothing changes any more. */
export type TaskState = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'

/** How a task ends. */
export interface TaskEnd {
  readonly state: 'completed' | 'failed' | 'cancelled'
  /** The result, or the error. */
  readonly outcome?: string
}

/** A task without its large parts. Times are milliseconds since the epoch, by the clock of the store. */
export interface TaskSummary extends Pick<NewTask, 'id' | 'holder' | 'owner' | 'queue'> {
  /** Grows from task to task of the store. */
  readonly serial: number
  readonly state: TaskState
  readonly createdAt: number
  readonly updatedAt: number
  /** It is gone after this. */
  readonly until: number
  /** Grows with every change; a renewed lease is none. */
  readonly version: number
  /** Grows with every claim and with `cancel`: whoever holds a smaller one runs it no more. 0: nobody has run it yet. */
  readonly fence: number
  /** How often it was claimed from its queue. */
  readonly runs: number
  /** Questions without an answer. */
  readonly open: number
  /** What its run says of itself. */
  readonly note?: string
}

/** A task as it is kept. Once it is over its body is '', and its questions are forgotten: nobody runs it any more. */
export interface TaskRecord extends TaskSummary, Pick<NewTask, 'body'> {
  /** In the order in which they were asked: the first 100. */
  readonly questions: readonly TaskQuestion[]
  readonly outcome?: string
}

/** How many bytes are kept: of texts as a store counts them, with what it adds for each task. */
export interface TaskRoom {
  /** Of all tasks of one holder. Default, and the most: a quarter of what the store has for all. */
  readonly bytesPerHolder?: number
}

/** How much is kept. */
export interface TaskBounds extends TaskRoom {
  /** Tasks of one holder that are not over. */
  readonly openPerHolder: number
  /** Tasks of one holder, those that are over as well, until their time is. */
  readonly keptPerHolder: number
  /** Tasks of all. */
  readonly kept: number
}

/**
 * Why nothing more is kept. `holder`: this one has as much as it may, tasks or bytes. `full`: there are as many tasks as may be,
 * or as many bytes as the store has room for.
 */
export type TaskRefusal = 'holder' | 'full'

/** What came of a task that was to be kept. */
export type TaskCreation = 'created' | TaskRefusal

/** Bytes of an outcome that always has room, so that every task can end. */
export const SMALL_OUTCOME = 2_048

/** Of the answers to one task. */
export interface AnswerRoom extends TaskRoom {
  /** Bytes of all answers to the task, those before as well; as many as there is room for unless said. */
  readonly bytesPerTask?: number
}

/** A queue that a worker takes tasks from. */
export interface QueueOffer {
  readonly queue: string
  /** Tasks of it that run at a time, on all nodes; none is taken beyond it. */
  readonly running: number
  /** The same, of one holder. */
  readonly runningPerHolder: number
}

/** The right to run a task: what is written with an older fence is not written. */
export interface TaskLease {
  readonly id: string
  readonly fence: number
}

/** What a queue looks like. */
export interface QueueDepth {
  readonly queue: string
  readonly queued: number
  readonly running: number
  /** Milliseconds that the one has waited that waits longest; 0 where none does. */
  readonly waited: number
}

/** That a task changed. */
export interface TaskNews {
  readonly id: string
  readonly queue: string
  readonly state: TaskState
}

/**
 * Keeps tasks. Every operation on one task is whole: of two nodes that do the same at the same time, one is first, and what
 * `create` and the writes of a run told of are kept wherever the store keeps things. What is past its `until` is not there.
 * Rejects with a HostError `unavailable` where what it keeps things in does not answer or takes no more; nothing is half done
 * then. Where it did not answer it may be done.
 *
 * A run is a lease with a fence: `claim` and `claimLapsed` give one, `renew` lengthens it, and `note`, `ask`, `release` and
 * `end` are done for the fence of the last claim alone; they are false, and do nothing, for another one, for a task that has
 * ended, and for one that is not there. A lease that lapsed is still a lease until another claims the task.
 */
export interface TaskStore {
  /** Whether other nodes see the same; `host`: the workers of this host, and no other. */
  readonly shared: boolean | 'host'
  /**
   * Keeps a task, `queued` as the last of its holder in its queue, before it resolves. One whose id is there already is created,
   * and nothing is changed: where an answer was lost, it may be sent again.
   */
  create(task: NewTask, bounds: TaskBounds): Promise<TaskCreation>
  get(id: string): Promise<TaskRecord | undefined>
  /** The task without its large parts, which are not read: whose it is and how far costs the same whatever it holds. */
  look(id: string): Promise<TaskSummary | undefined>
  /** Those of a holder, newest first, at most so many; with `before`, those whose serial is less. */
  list(holder: string, most: number, before?: number): Promise<readonly TaskSummary[]>
  /**
   * Takes one queued task for `lease` milliseconds, `running` from then on; undefined where none may run. Of the offered queues
   * the first that has one; in a queue the holders come by turns, and of each the task that was created first.
   */
  claim(offers: readonly QueueOffer[], lease: number): Promise<TaskRecord | undefined>
  /** Takes one that is `running` and whose lease has lapsed, whatever its queue, as `claim` does; `runs` stays as it is. */
  claimLapsed(lease: number): Promise<TaskRecord | undefined>
  /** From now on for `lease` milliseconds. Gives the version of each task, undefined for a lease that is lost. */
  renew(leases: readonly TaskLease[], lease: number): Promise<ReadonlyArray<number | undefined>>
  /** Gives a task back: it is `queued` again, as the first of its holder. */
  release(lease: TaskLease): Promise<boolean>
  /** Says what the run says of itself. Rejects, as `ask` does, with a HostError `unavailable` where there is no room for it. */
  note(lease: TaskLease, note: string): Promise<boolean>
  /** Adds a question. True, and nothing is changed, where one of its key is there. */
  ask(lease: TaskLease, question: Pick<TaskQuestion, 'key' | 'text'>): Promise<boolean>
  /**
   * Ends a task, which is kept for at least `ttl` milliseconds more, and forgets what it was to do. True again where this fence
   * ended it. `holder` or `full` where there is no room for the outcome: nothing is changed then, and it may end with another.
   * One of at most `SMALL_OUTCOME` bytes is kept whatever else there is.
   */
  end(lease: TaskLease, end: TaskEnd, ttl: number, room?: TaskRoom): Promise<boolean | TaskRefusal>
  /**
   * Answers questions of a task that has not ended, by their keys; those without a question or with an answer change nothing. How
   * many did; all or, where there is no room for all, none: `task` where the task has as many bytes of answers as it may.
   */
  answer(
    id: string,
    answers: Readonly<Record<string, string>>,
    room?: AnswerRoom,
  ): Promise<number | TaskRefusal | 'task'>
  /** Ends a task as `cancelled`, whoever runs it. False where it has ended or is not there. */
  cancel(id: string): Promise<boolean>
  /** Queues where tasks wait or run. */
  depths(): Promise<readonly QueueDepth[]>
  /**
   * Tells of every change of every task, once it is kept, on whatever node; undefined where something may have been missed.
   * A task that is past its time is no news. Gives what ends it.
   */
  watch(tell: (news: TaskNews | undefined) => void): () => void
}

/** The bytes that one holder may have, of a store that has room for so many. */
export const shareOf = (all: number, { bytesPerHolder = Number.POSITIVE_INFINITY }: TaskRoom = {}): number =>
  Math.min(bytesPerHolder, Math.floor(all / 4))

/** Whether a task is over. */
export const hasEnded = (state: TaskState): state is TaskEnd['state'] => state !== 'queued' && state !== 'running'
