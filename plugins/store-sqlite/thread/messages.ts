// Messages between the host and the thread with the file.
import type { TaskNews } from '../../../core/transport.ts'
import type { StoreBounds } from './bounds.ts'
import type { Operations } from './operations.ts'

export interface ThreadSettings {
  /** Absolute, or `:memory:`. */
  readonly file: string
  /** Names the processes that share the file. */
  readonly crew: string
  readonly ifDamaged: 'stop' | 'replace'
  readonly bounds: StoreBounds
}

/** One operation; it does not start after `deadline` (by `clock`). */
export interface Ask {
  readonly name: keyof Operations
  readonly args: readonly unknown[]
  readonly deadline: number
}

export interface Batch {
  readonly batch: number
  readonly asks: readonly Ask[]
}

/** `watch`: report changed tasks from now on. */
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

export interface Fault {
  readonly word: Word | 'bug'
  readonly text: string
}

export type Answer = { readonly value: unknown } | { readonly fault: Fault }

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
  /** Undefined: it is available again. */
  | { readonly news: 'trouble'; readonly fault: Fault | undefined }
  /** Undefined: changes may have been missed. */
  | { readonly news: 'tasks'; readonly changes: ReadonlyArray<TaskNews | undefined> }
  | { readonly news: 'size'; readonly bytes: number; readonly evicted: number }
  | { readonly news: 'closed' }

/** Monotonic milliseconds, equal in all threads. */
export const clock = (): number => Number(process.hrtime.bigint() / 1_000_000n)
