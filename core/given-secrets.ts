// The secrets of a config's `secrets: { file }`, as a list, before the host is built: they are read, and at a start made. For
// create-host.ts, which loads this where a config names a file.
import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import type { Problems } from './config/problems.ts'
import { StartError } from './http/errors.ts'
import type { KernelHost } from './kernel/kernel-host.ts'
import type { Logger } from './kernel/log.ts'

/** What `createSecrets` takes, and where it is from. */
export interface GivenSecrets {
  readonly list: ReadonlyArray<string | undefined>
  /** Whether they are those of a file that the config names. */
  readonly isOfFile: boolean
}

export interface SecretsContext {
  /** The config's paths are relative to it. */
  readonly directory: string
  readonly purpose: KernelHost['purpose']
  /** A running host reads its config anew: what a start would make is left for one. */
  readonly isReload: boolean
  readonly log: Logger
  readonly problems: Problems
}

/** In the place of the secret that a start would make: the same at each look, as that would be. */
const STAND_IN = randomBytes(32).toString('base64url')

/** Whether MCP_HOST_SECRETS holds one: it comes before a file. */
export const inEnvironment = (env: NodeJS.ProcessEnv = process.env) => /[^\s,]/.test(env['MCP_HOST_SECRETS'] ?? '')

/** Where MCP_HOST_SECRETS holds one, the file is left alone. What is wrong with it is reported. */
export async function secretsOfFile(file: string, { directory, ...context }: SecretsContext): Promise<GivenSecrets> {
  if (inEnvironment()) return { list: [], isOfFile: false }
  const path = resolve(directory, file)
  const list = await secretsIn(path, context)
  return { list: list ?? [STAND_IN], isOfFile: true }
}

/** Undefined where there are none yet, or where something is wrong, which is reported. */
async function secretsIn(path: string, { purpose, isReload, log, problems }: Omit<SecretsContext, 'directory'>) {
  const { checkMakeable, makeSecrets, readSecrets, SecretsFault } = await import('./config/secrets-file.ts')
  const mistake = (text: string, cause?: unknown) => new StartError(text, { at: ['secrets', 'file'], cause })
  const warn = (text: string) => problems.report(mistake(text), 'warning')
  try {
    const found = await readSecrets(path, warn)
    if (found) return found
    if (purpose === 'inspect') await checkMakeable(path)
    // A start that fails for another reason leaves nothing behind.
    if (purpose !== 'serve' || isReload || problems.count() > 0) return undefined
    if (await makeSecrets(path)) log.info({ file: path }, MADE)
    return await readSecrets(path, warn)
  } catch (error) {
    if (!(error instanceof SecretsFault)) throw error
    problems.report(mistake(error.message, error))
    return undefined
  }
}

const MADE =
  'made a file with a secret, which signs session ids: keep it, and where other machines serve the same address, give ' +
  'them a copy'
