// What plugins demand that keep something for longer than a process lives, or for others: keys that were not made by it alone.
import { type PluginHost, StartError } from '../../../core/index.ts'

const EVERYWHERE = 'every node'

/** Reports that the config needs `secrets`, where there are none. `why`: what else could not be read. */
export function demandSecrets({ at, ownKeys, report }: PluginHost, why: string, where = EVERYWHERE): void {
  if (!ownKeys) return
  const how =
    `make a secret with \`openssl rand -base64 32\` and put it into the environment of ${where} as MCP_HOST_SECRETS, or ` +
    "into the config's `secrets`, or into a file that it names: `secrets: { file: './state/secrets' }` " +
    (where === EVERYWHERE ? `(the same file on ${where})` : '(a start makes it)')
  report(new StartError(`${why} were made by this one; ${how}`, { at }))
}
