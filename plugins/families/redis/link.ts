// What a client of one Redis or of a Redis Cluster is for connection.ts, which says what waits and what is refused while
// there is no connection; and what both kinds have in common. Each connects again for ever.
import type { Logger } from '../../../core/index.ts'
import type { RedisCommands } from './commands.ts'
import type { Credentials } from './credentials.ts'
import type { Sentinels } from './sentinels.ts'
import type { RedisAddress, ResolvedRedis } from './settings.ts'
import { readTls } from './tls.ts'

export interface Link {
  /** Throws where nothing was connected yet. */
  readonly commands: RedisCommands
  /** Whether Redis answers, as far as the sockets tell. */
  readonly isReady: boolean
  /** Begins, and resolves once there is a client; that it is connected, `changed` tells. */
  open(): Promise<void>
  /** Resolves once something is connected; rejects when the link is closed. For commands that wait for that. */
  whenReady(): Promise<void>
  /** Gives up the socket for a new one: it is dead, or leads to what is the primary no more. */
  reset(): void
  /** Connects to the primary that is one now, unless it does or is about to. */
  moved(primary: RedisAddress): void
  /** The error without any password in its text: what answers may quote what it was sent before. */
  hide(thrown: unknown): unknown
  close(): void
}

export interface LinkSettings {
  readonly redis: ResolvedRedis
  readonly log: Logger
  /** Who knows the primary, where addresses are of Sentinels. */
  readonly sentinels: Sentinels | undefined
  /** Milliseconds that a command may block at Redis: this long the socket may be silent. 0: commands do not block. */
  readonly blocking: number
  /** Called whenever `isReady` may have changed; with why, where it failed. No password is in it. */
  changed(cause?: unknown): void
  /** From 0 to below 1; for tests. */
  readonly random?: () => number
}

const FIRST_WAIT = 50
const LONGEST_WAIT = 2_000
/** A connection is given up when it was silent for as long; how often it is asked for a sign is in connection.ts. */
const SHORTEST_SILENCE = 1_000

/** Milliseconds before the next attempt: doubled each time up to 2 s, and between half of it and all. */
export function backOff(retries: number, random: () => number = Math.random): number {
  const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.min(retries, 16))
  return Math.round(wait / 2 + (wait / 2) * random())
}

/** How long a socket may say nothing, in milliseconds. */
export const silenceOf = ({ commandTimeout }: ResolvedRedis): number => Math.max(commandTimeout, SHORTEST_SILENCE)

/** Options of a client: who connects, how long it waits, and the certificates as they are now. */
export function clientOptions({ redis, blocking }: LinkSettings, credentials: Credentials) {
  const { password, username, database, tls, commandTimeout } = redis
  const timeouts = { connectTimeout: commandTimeout, socketTimeout: silenceOf(redis) + blocking }
  const isSomebody = username !== undefined || password !== undefined
  const credentialsProvider = { type: 'async-credentials-provider' as const, credentials: () => credentials.fetch() }
  return {
    RESP: 3 as const,
    name: 'mcp-host',
    ...(isSomebody && { credentialsProvider }),
    ...(database !== 0 && { database }),
    socket: tls ? { ...timeouts, tls: true as const, ...readTls(tls) } : timeouts,
    // What cannot be sent is refused at once: whoever waits does so in connection.ts, and no longer than it should.
    disableOfflineQueue: true,
    disableClientInfo: true,
    maintNotifications: 'disabled' as const,
    // Ours ends a command that was sent too; node-redis's costs a signal each and ends only what was not.
    commandOptions: { timeout: 0 },
  }
}

export const noClient = () => new Error('The client is offline')
