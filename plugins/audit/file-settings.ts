// What the file of an audit is given, and what it says of lines that are added.
import type { Logger } from '../../core/index.ts'
import type { Signer } from './chain.ts'

export interface FileSettings {
  /** Absolute. */
  readonly path: string
  /** What new lines are signed with comes first; the others verify what older keys signed. */
  readonly signers: readonly Signer[]
  readonly node: string
  readonly log: Logger
  /** Bytes. */
  readonly rotateAt: number
  /** Milliseconds; Infinity: never. */
  readonly rotateAfter: number
  /** Files that are kept beside the one that is written; Infinity: all. */
  readonly keep: number
  /** Sees to it that the lock is there, which may have gone with its folder; rejects where another process has it. */
  hold?(): Promise<void>
}

export interface Appended {
  /** So many of the entries are whole on disk. */
  readonly written: number
  /** Why not all of them are. */
  readonly failure?: unknown
}
