// Limits of stored streams, and their options.
import {
  DURATION_PATTERN,
  type Duration,
  type PluginHost,
  parseDuration,
  parseSize,
  SIZE_PATTERN,
  type Size,
  StartError,
} from '../../../core/index.ts'

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

export interface StreamBounds {
  /** Milliseconds after the last event. */
  readonly ttl: number
  /** The oldest are removed first. */
  readonly maxEvents: number
  /** The last message is always kept. */
  readonly maxBytes: number
}

export interface StreamOptions {
  readonly ttl: Duration
  readonly maxEvents: number
  readonly maxBytes: Size
}

export function readStreamBounds({ at }: Pick<PluginHost, 'at'>, options: StreamOptions): StreamBounds {
  const ttl = parseDuration(options.ttl)
  if (ttl < MIN_TTL) {
    throw new StartError('it is less than 1s; no client comes back so soon', { at: [...at, 'ttl'] })
  }
  return { ttl, maxEvents: options.maxEvents, maxBytes: parseSize(options.maxBytes) }
}
