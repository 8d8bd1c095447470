// Secrets of pre-registered clients from a file, the environment or a prompt. Never from argv (visible to other processes), never
// stored.
import { resolve } from 'node:path'
import { AuthError } from '../../client/errors.ts'
import type { ClientOAuthOptions } from '../../client/index.ts'
import type { ClientAuth } from '../../client/options.ts'
import { errorText } from '../../core/http/errors.ts'
import { type CommandContext, readSource, readText, usage } from '../context.ts'
import type { Login } from './stored-logins.ts'
import { isInteractive, prompt } from './terminal.ts'

export const SECRET_VARIABLE = 'MCP_HOST_CLIENT_SECRET'
const SECRET_FILE = '--client-secret-file'

export type Credentials = Pick<ClientOAuthOptions, 'clientSecret' | 'privateKey' | 'clientAuthentication'>

function parseSecret(text: string, { secrets }: CommandContext, what: string): string {
  const secret = text.trim()
  secrets.add(secret)
  if (secret !== '') return secret
  throw usage(`${what} is empty`)
}

const readSecretFile = (context: CommandContext, file: string, what: string): string =>
  parseSecret(readText(resolve(context.cwd, file), what), context, `${what}: ${file}`)

function readEnvironment({ env, secrets }: CommandContext): string | undefined {
  const secret = env[SECRET_VARIABLE]
  secrets.add(secret)
  return secret
}

export async function findSecret(
  context: CommandContext,
  login: Login,
  file: string | undefined,
): Promise<string | undefined> {
  if (login.clientId === undefined) return undefined
  if (file === '-') return parseSecret(await readSource(context, file, SECRET_FILE), context, `${SECRET_FILE}: stdin`)
  if (file !== undefined) return readSecretFile(context, file, SECRET_FILE)
  const fromEnvironment = readEnvironment(context)
  if (fromEnvironment) return fromEnvironment
  if (login.secretFile !== undefined)
    return readSecretFile(context, login.secretFile, 'the client secret of this login')
  const isNeeded = login.secret || login.grant === 'client_credentials'
  if (!isNeeded || login.privateKeyFile !== undefined) return undefined
  const question = `Secret of the client ${login.clientId} (not shown): `
  const entered = isInteractive(context) ? await prompt(context, question, { hidden: true }) : ''
  context.secrets.add(entered)
  if (entered) return entered
  const where = `set ${SECRET_VARIABLE}, or give --client-secret-file <file> (- for stdin) or --private-key-file <file>`
  throw usage(`the client ${login.clientId} needs its secret; ${where}`)
}

const missingError = (login: Login, cause?: unknown): ClientAuth => {
  const source = login.secretFile ?? login.privateKeyFile
  const why = cause === undefined ? 'which is not saved' : `and ${source} cannot be read: ${errorText(cause)}`
  return () => {
    throw new AuthError(`a new token needs the secret of the client ${login.clientId}, ${why}`, {
      code: 'client_secret_missing',
      fix: `set ${SECRET_VARIABLE}, or log in with --client-secret-file: mcp-host login ${login.url}`,
      cause,
    })
  }
}

/** Reads the credentials after the login without a prompt. Fails only when a secret is required. */
export function loadCredentials(context: CommandContext, login: Login): Credentials {
  const { privateKeyFile, secretFile, secret } = login
  try {
    if (privateKeyFile !== undefined) return { privateKey: readKeyFile(context, privateKeyFile) }
    if (!secret) return {}
    const fromEnvironment = readEnvironment(context)
    if (fromEnvironment) return { clientSecret: fromEnvironment }
    if (secretFile !== undefined) return { clientSecret: readSecretFile(context, secretFile, secretFile) }
  } catch (cause) {
    return { clientAuthentication: missingError(login, cause) }
  }
  return { clientAuthentication: missingError(login) }
}

export function readKeyFile(context: CommandContext, file: string): NonNullable<Credentials['privateKey']> {
  const text = readSecretFile(context, file, '--private-key-file')
  if (!text.startsWith('{')) return text
  try {
    return JSON.parse(text)
  } catch {
    throw usage(`--private-key-file: ${file} is neither a PEM nor a JWK`)
  }
}
