// Shared by storage plugins: required secrets, their fingerprints, and stream limits.
import { createHash } from 'node:crypto'
import { count, duration, type InternalHost, size } from '../../../core/internal.ts'
import { type Duration, parseDuration, parseSize, type Size, StartError } from '../../../core/plugin.ts'
import type { StreamLimits } from '../../../core/transport.ts'

const EVERYWHERE = 'every node'

export function requireSecrets(
  { config: { at }, ownKeys, report }: InternalHost,
  why: string,
  where = EVERYWHERE,
): void {
  if (!ownKeys) return
  const how =
    `make a secret with \`openssl rand -base64 32\` and put it into the environment of ${where} as MCP_HOST_SECRETS, or ` +
    "into the config's `secrets`, or into a file that it names: `secrets: { file: './state/secrets' }` " +
    (where === EVERYWHERE ? `(the same file on ${where})` : '(a start makes it)')
  report(new StartError('MH1404', `${why} are temporary keys of this process; ${how}`, { at }))
}

/** The secrets of a node. Nodes without a shared secret would end the sessions of each other. */
export interface KeySpaceClaim {
  readonly node: string
  /** One fingerprint per secret, the signing one first. */
  readonly fingerprints: readonly string[]
}

/** Derives a fingerprint that reveals nothing about the secret. */
const fingerprint = (key: Buffer) => createHash('sha256').update(key).digest('base64url').slice(0, 16)

export const claimOf = ({ config: { node, keys } }: InternalHost): KeySpaceClaim => ({
  node,
  fingerprints: keys('key-space').map(fingerprint),
})

export const writeClaim = ({ node, fingerprints }: KeySpaceClaim): string => `${node} ${fingerprints.join(',')}`

export const readFingerprints = (written: string): readonly string[] => (written.split(' ')[1] ?? '').split(',')

/** Milliseconds after which a silent node is gone. */
export const MIN_LIFETIME = 15_000

/** The end of the fix for a node without a shared secret. */
export const SHARE_SECRET =
  'for each deployment; nodes of one deployment need a common secret, also during a rotation (see docs/config.md). ' +
  'A killed node counts for 15 s'

/** Clients need time to reconnect. */
const MIN_TTL = 1_000

export const STREAM_PROPERTIES = {
  ttl: duration('Time after its last event for which a stream can be resumed.', { minimum: MIN_TTL, default: '1h' }),
  maxEvents: count('Maximum events of one stream. The oldest events are removed first.', { default: 10_000 }),
  maxBytes: size('Maximum bytes of one stream. The last event is always kept.', { minimum: 1, default: '4mb' }),
} as const

interface StreamOptions {
  readonly ttl: Duration
  readonly maxEvents: number
  readonly maxBytes: Size
}

export function readStreamLimits(
  { config: { at } }: Pick<InternalHost, 'config'>,
  options: StreamOptions,
): StreamLimits {
  const ttl = parseDuration(options.ttl)
  if (ttl < MIN_TTL) {
    throw new StartError('MH1405', 'less than 1s, which is too short for clients to reconnect', { at: [...at, 'ttl'] })
  }
  return { ttl, maxEvents: options.maxEvents, maxBytes: parseSize(options.maxBytes) }
}
