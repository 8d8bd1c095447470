// Messages between the host and the thread with the file, and the faults of SQLite and the system.

export interface ThreadSettings {
  /** An absolute path, or `:memory:`. */
  readonly file: string
  /** A name for the processes that share the file. */
  readonly crew: string
  readonly ifDamaged: 'stop' | 'replace'
  /** Maximum size of the file, bytes. */
  readonly maxSize: number
}

/** One operation. It must start before `deadline` (by `clock`). */
export interface Ask {
  readonly name: 'transact' | 'read'
  readonly args: readonly unknown[]
  readonly deadline: number
}

export interface Batch {
  readonly batch: number
  readonly asks: readonly Ask[]
}

export type Order = 'close'

type Word =
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
  /** Undefined: the file is available again. */
  | { readonly news: 'trouble'; readonly fault: Fault | undefined }
  | { readonly news: 'size'; readonly bytes: number; readonly evicted: number }
  | { readonly news: 'closed' }

/** Monotonic milliseconds, equal in all threads. */
export const clock = (): number => Number(process.hrtime.bigint() / 1_000_000n)

/** Faults by primary result code. */
const WORDS: Readonly<Record<number, Word>> = {
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

const SYSTEM: Readonly<Record<string, Word>> = {
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

export class StoreFault extends Error {
  readonly word: Word

  constructor(word: Word, text: string) {
    super(text)
    this.word = word
  }
}

const textOf = (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown))

/** Extended codes for a full disk: the shared index of the log could not grow or be written. */
const NO_ROOM: ReadonlySet<number> = new Set([4874, 5386])

export function faultOf(thrown: unknown): Fault {
  const text = textOf(thrown)
  if (thrown instanceof StoreFault) return { word: thrown.word, text }
  const { code, errcode } = thrown as { code?: unknown; errcode?: unknown }
  if (typeof errcode === 'number') {
    if (NO_ROOM.has(errcode)) return { word: 'full', text }
    return { word: WORDS[errcode & 0xff] ?? 'bug', text: `${text} (${errcode})` }
  }
  return {
    word: (typeof code === 'string' && SYSTEM[code]) || 'bug',
    text: thrown instanceof Error && !code ? `${thrown.stack}` : text,
  }
}
