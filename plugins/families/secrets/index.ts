// Requires `secrets` for stores that outlive a process or are shared.
import { type PluginHost, StartError } from '../../../core/index.ts'

const EVERYWHERE = 'every node'

/** Reports missing `secrets`. `why`: what could not be read. */
export function demandSecrets({ at, ownKeys, report }: PluginHost, why: string, where = EVERYWHERE): void {
  if (!ownKeys) return
  const how =
    `make a secret with \`openssl rand -base64 32\` and put it into the environment of ${where} as MCP_HOST_SECRETS, or ` +
    "into the config's `secrets`, or into a file that it names: `secrets: { file: './state/secrets' }` " +
    (where === EVERYWHERE ? `(the same file on ${where})` : '(a start makes it)')
  report(new StartError(`${why} were made by this one; ${how}`, { at }))
}
