// What plugins say of their host's secrets: whose keys are in Redis.
import { createHash } from 'node:crypto'
import type { PluginHost } from '../../../core/index.ts'
import type { KeySpaceClaim } from './key-space.ts'

/** Tells secrets apart, and tells nothing of them: the key is derived for this alone. */
const fingerprint = (key: Buffer) => createHash('sha256').update(key).digest('base64url').slice(0, 16)

/** What `RedisConnection.claim` takes, for this host. */
export const claimOf = ({ node, keys }: PluginHost): KeySpaceClaim => ({
  node,
  fingerprints: keys('key-space').map(fingerprint),
})
