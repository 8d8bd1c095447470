// What plugins say of their host's secrets: that there must be some, the same on every node, and whose keys are in Redis.
import { createHash } from 'node:crypto'
import { type PluginHost, StartError } from '../../../core/index.ts'
import type { KeySpaceClaim } from './key-space.ts'

/** Reports that every node needs the same `secrets`, where there are none. `why`: what else could not be read by the others. */
export function demandSecrets({ at, ownKeys, report }: PluginHost, why: string) {
  if (!ownKeys) return
  const how =
    'make a secret with `openssl rand -base64 32` and put it into the environment of every node as MCP_HOST_SECRETS, or ' +
    "into the config's `secrets`"
  report(new StartError(`${why} were made by this one; ${how}`, { at }))
}

/** Tells secrets apart, and tells nothing of them: the key is derived for this alone. */
const fingerprint = (key: Buffer) => createHash('sha256').update(key).digest('base64url').slice(0, 16)

/** What `RedisConnection.claim` takes, for this host. */
export const claimOf = ({ node, keys }: PluginHost): KeySpaceClaim => ({
  node,
  fingerprints: keys('key-space').map(fingerprint),
})
