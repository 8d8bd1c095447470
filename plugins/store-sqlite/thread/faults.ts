// Maps errors of SQLite and the system to faults.
import type { Fault, Word } from './messages.ts'

/** By primary result code. */
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

/** Extended codes of a full disk: the shared index of the log could not grow or be written. */
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
