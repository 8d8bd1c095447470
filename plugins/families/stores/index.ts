// Shared by storage plugins: required secrets, stream limits, and the slots of a store.
import { createGrantStore } from '../../../core/auth.ts'
import type { InternalHost } from '../../../core/internal.ts'
import {
  DURATION_PATTERN,
  type Duration,
  parseDuration,
  parseSize,
  SIZE_PATTERN,
  type Size,
  StartError,
} from '../../../core/plugin.ts'
import type { Bus, Store } from '../../../core/store.ts'
import { createEventStore, createSessionStore, createTaskStore, type StreamBounds } from '../../../core/transport.ts'

const EVERYWHERE = 'every node'

export function demandSecrets(
  { config: { at }, ownKeys, report }: InternalHost,
  why: string,
  where = EVERYWHERE,
): void {
  if (!ownKeys) return
  const how =
    `make a secret with \`openssl rand -base64 32\` and put it into the environment of ${where} as MCP_HOST_SECRETS, or ` +
    "into the config's `secrets`, or into a file that it names: `secrets: { file: './state/secrets' }` " +
    (where === EVERYWHERE ? `(the same file on ${where})` : '(a start makes it)')
  report(new StartError('MH1404', `${why} were made by this one; ${how}`, { at }))
}

interface StoreSettings {
  /** Bytes of the store. Default: no limit. */
  readonly maxSize?: number
  /** Bytes of all tasks. */
  readonly mostBytes?: number
  readonly bus?: Bus
}

/** Fills the slots of sessions, streams, grants and tasks. */
export function provideStores(
  host: InternalHost,
  store: Store,
  options: StreamOptions,
  { maxSize, ...tasks }: StoreSettings = {},
): void {
  host.provide('sessionStore', createSessionStore(store, { node: host.config.node, log: host.log, maxSize }))
  host.provide('eventStore', createEventStore(store, readStreamBounds(host, options)))
  host.provide('grantStore', createGrantStore(store))
  host.provide('taskStore', createTaskStore(store, { log: host.log, clock: host.clock, ...tasks }))
}

/** Clients need time to reconnect. */
const MIN_TTL = 1_000

export const STREAM_PROPERTIES = {
  ttl: {
    type: ['string', 'number'],
    pattern: DURATION_PATTERN,
    minimum: MIN_TTL,
    default: '1h',
    description: 'How long after its last event a stream can be resumed.',
  },
  maxEvents: {
    type: 'integer',
    minimum: 1,
    default: 10_000,
    description: 'Events of one stream; the oldest go first.',
  },
  maxBytes: {
    type: ['string', 'number'],
    pattern: SIZE_PATTERN,
    minimum: 1,
    default: '4mb',
    description: 'Bytes of one stream; its last event is kept whatever its size.',
  },
} as const

interface StreamOptions {
  readonly ttl: Duration
  readonly maxEvents: number
  readonly maxBytes: Size
}

export function readStreamBounds(
  { config: { at } }: Pick<InternalHost, 'config'>,
  options: StreamOptions,
): StreamBounds {
  const ttl = parseDuration(options.ttl)
  if (ttl < MIN_TTL) {
    throw new StartError('MH1405', 'it is less than 1s; no client comes back so soon', { at: [...at, 'ttl'] })
  }
  return { ttl, maxEvents: options.maxEvents, maxBytes: parseSize(options.maxBytes) }
}
