// Messages between the host and the thread with the file, and the failures of SQLite and the system.

export interface ThreadSettings {
  /** An absolute path, or `:memory:`. */
  readonly file: string
  /** A name for the processes that share the file. */
  readonly hostId: string
  readonly ifDamaged: 'stop' | 'replace'
  /** Maximum size of the file, bytes. */
  readonly maxSize: number
}

/** One operation. It must start before `deadline` (by `clock`). */
export interface Operation {
  readonly name: 'transact' | 'read'
  readonly args: readonly unknown[]
  readonly deadline: number
}

export interface Batch {
  readonly batch: number
  readonly operations: readonly Operation[]
}

export type Command = 'close'

type FailureCode =
  | 'locked'
  | 'full'
  | 'readonly'
  | 'damaged'
  | 'alien'
  | 'foreign'
  | 'version'
  | 'moved'
  | 'inUse'
  | 'path'
  | 'disk'
  | 'late'

export interface Failure {
  readonly code: FailureCode | 'bug'
  readonly text: string
}

export type Answer = { readonly value: unknown } | { readonly failure: Failure }

export interface Committed {
  readonly operations: number
  readonly seconds: number
  readonly durable: boolean
}

export type ThreadEvent =
  | { readonly type: 'open'; readonly replaced: string | undefined }
  | { readonly type: 'failed'; readonly failure: Failure }
  | { readonly type: 'answers'; readonly batch: number; readonly answers: readonly Answer[] }
  | { readonly type: 'committed'; readonly committed: Committed }
  /** Undefined: the file is available again. */
  | { readonly type: 'trouble'; readonly failure: Failure | undefined }
  | { readonly type: 'size'; readonly bytes: number; readonly evicted: number }
  | { readonly type: 'closed' }

/** Monotonic milliseconds, equal in all threads. */
export const clock = (): number => Number(process.hrtime.bigint() / 1_000_000n)

const SQLITE_CODES: Readonly<Record<number, FailureCode>> = {
  3: 'path',
  5: 'locked',
  6: 'locked',
  8: 'readonly',
  10: 'disk',
  11: 'damaged',
  13: 'full',
  14: 'path',
  26: 'alien',
}

const SYSTEM_CODES: Readonly<Record<string, FailureCode>> = {
  ENOENT: 'path',
  ENOTDIR: 'path',
  EEXIST: 'path',
  EACCES: 'path',
  EPERM: 'path',
  EISDIR: 'path',
  EROFS: 'readonly',
  ENOSPC: 'full',
  EDQUOT: 'full',
}

export class StoreFailure extends Error {
  readonly code: FailureCode

  constructor(word: FailureCode, text: string) {
    super(text)
    this.code = word
  }
}

/** Extended codes for a full disk: the shared index of the log could not grow or be written. */
const DISK_FULL: ReadonlySet<number> = new Set([4874, 5386])

export function toFailure(thrown: unknown): Failure {
  const text = thrown instanceof Error ? thrown.message : String(thrown)
  if (thrown instanceof StoreFailure) return { code: thrown.code, text }
  const { code, errcode } = thrown as { code?: unknown; errcode?: unknown }
  if (typeof errcode === 'number') {
    if (DISK_FULL.has(errcode)) return { code: 'full', text }
    return { code: SQLITE_CODES[errcode & 0xff] ?? 'bug', text: `${text} (${errcode})` }
  }
  return {
    code: (typeof code === 'string' && SYSTEM_CODES[code]) || 'bug',
    text: thrown instanceof Error && !code ? `${thrown.stack}` : text,
  }
}
