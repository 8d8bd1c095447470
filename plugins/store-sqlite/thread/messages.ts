// What the host and the thread that has its database tell each other.
import type { TaskNews } from '../../../core/transport.ts'
import type { StoreBounds } from './bounds.ts'
import type { Operations } from './operations.ts'

/** What the thread begins with. */
export interface ThreadSettings {
  /** Absolute; `:memory:` for a host of tests. */
  readonly file: string
  /** What the processes that may share the file have in common; nobody else has it. */
  readonly crew: string
  readonly ifDamaged: 'stop' | 'replace'
  readonly bounds: StoreBounds
}

/** One operation; it is not begun any more once the monotonic clock of the machine (`clock`) is past `deadline`. */
export interface Ask {
  readonly name: keyof Operations
  readonly args: readonly unknown[]
  readonly deadline: number
}

/** Asks of one turn of the event loop, in their order. */
export interface Batch {
  readonly batch: number
  readonly asks: readonly Ask[]
}

/** Beside asks. `watch`: changes of tasks are told from now on. */
export type Order = 'close' | 'watch'

export type Word =
  | 'locked'
  | 'full'
  | 'readonly'
  | 'damaged'
  | 'alien'
  | 'foreign'
  | 'version'
  | 'moved'
  | 'crew'
  | 'path'
  | 'disk'
  | 'late'

/** Why something could not be done; `bug` is what nobody expected. */
export interface Fault {
  readonly word: Word | 'bug'
  /** What SQLite or the system said. */
  readonly text: string
}

export type Answer = { readonly value: unknown } | { readonly fault: Fault }

/** What one transaction was. */
export interface Committed {
  readonly operations: number
  readonly seconds: number
  readonly durable: boolean
}

export type News =
  | { readonly news: 'open'; readonly replaced: string | undefined }
  | { readonly news: 'failed'; readonly fault: Fault }
  | { readonly news: 'answers'; readonly batch: number; readonly answers: readonly Answer[] }
  | { readonly news: 'committed'; readonly committed: Committed }
  /** Undefined: it works again. */
  | { readonly news: 'trouble'; readonly fault: Fault | undefined }
  /** Undefined: some may have been missed. */
  | { readonly news: 'tasks'; readonly changes: ReadonlyArray<TaskNews | undefined> }
  | { readonly news: 'size'; readonly bytes: number; readonly evicted: number }
  | { readonly news: 'closed' }

/** Milliseconds by a clock that all threads of a machine share and that is never set. */
export const clock = (): number => Number(process.hrtime.bigint() / 1_000_000n)
