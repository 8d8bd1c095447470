// The two ends of a line, and whom it serves.
import type { Readable, Writable } from 'node:stream'
import type { McpRoute, User } from '../../core/index.ts'

export interface StdioEnds {
  /** What the client sends. */
  readonly input: Readable
  /** What it reads; protocol lines and nothing else. */
  readonly output: Writable
}

/** Whom a line serves, and where. */
export interface Caller {
  readonly route: McpRoute
  readonly params: Readonly<Record<string, string>>
  readonly user: User | undefined
  readonly maxConcurrent: number
}
