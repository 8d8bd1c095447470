// Reads the secrets of `secrets: { file }` and creates the file at startup. Loaded only if a config names a file.
import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import type { Problems } from './config/problems.ts'
import { StartError } from './http/errors.ts'
import type { PluginConfig } from './kernel/kernel-host.ts'
import type { Logger } from './kernel/log.ts'

export interface GivenSecrets {
  readonly list: ReadonlyArray<string | undefined>
  readonly isOfFile: boolean
}

interface SecretsContext {
  readonly directory: string
  readonly purpose: PluginConfig['purpose']
  /** A reload creates no file. */
  readonly isReload: boolean
  readonly log: Logger
  readonly problems: Problems
}

/** Placeholder if only startup creates the file. Constant, so that a reload detects no change. */
const STAND_IN = randomBytes(32).toString('base64url')

export const inEnvironment = (env: NodeJS.ProcessEnv = process.env) => /[^\s,]/.test(env['MCP_HOST_SECRETS'] ?? '')

export async function secretsOfFile(file: string, { directory, ...context }: SecretsContext): Promise<GivenSecrets> {
  if (inEnvironment()) return { list: [], isOfFile: false }
  const path = resolve(directory, file)
  const list = await secretsIn(path, context)
  return { list: list ?? [STAND_IN], isOfFile: true }
}

/** Undefined for a missing file, and for an invalid file, which is reported. */
async function secretsIn(path: string, { purpose, isReload, log, problems }: Omit<SecretsContext, 'directory'>) {
  const { checkMakeable, makeSecrets, readSecrets, SecretsFault } = await import('./config/secrets-file.ts')
  const mistake = (code: string, text: string, cause?: unknown) =>
    new StartError(code, text, { at: ['secrets', 'file'], cause })
  const warn = (text: string) => problems.report(mistake('MH1034', text), 'warning')
  try {
    const found = await readSecrets(path, warn)
    if (found) return found
    if (purpose === 'inspect') await checkMakeable(path)
    // A failing startup creates no file.
    if (purpose !== 'serve' || isReload || problems.count() > 0) return undefined
    if (await makeSecrets(path)) log.info({ code: 'MH1035', file: path }, MADE)
    return await readSecrets(path, warn)
  } catch (error) {
    if (!(error instanceof SecretsFault)) throw error
    problems.report(mistake('MH1033', error.message, error))
    return undefined
  }
}

const MADE =
  'made a file with a secret, which signs session ids: keep it, and where other machines serve the same address, give ' +
  'them a copy'
