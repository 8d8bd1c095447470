// Secrets of pre-registered clients from a file, the environment or a prompt. Never from argv (visible to other processes), never
// stored.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { AuthError } from '../../client/errors.ts'
import type { ClientOAuthOptions } from '../../client/index.ts'
import type { ClientAuth } from '../../client/options.ts'
import { errorText } from '../../core/http/errors.ts'
import { utf8Text } from '../../core/http/utf8-text.ts'
import { type CommandContext, readStdin, usage } from '../context.ts'
import type { Login } from './logins.ts'
import { ask, hasPerson } from './terminal.ts'

export const SECRET_VARIABLE = 'MCP_HOST_CLIENT_SECRET'

export type Credentials = Pick<ClientOAuthOptions, 'clientSecret' | 'privateKey' | 'clientAuthentication'>

function readSecretFile({ cwd, secrets }: CommandContext, file: string, option: string): string {
  try {
    const text = utf8Text(readFileSync(resolve(cwd, file), 'utf8')).trim()
    secrets.add(text)
    if (text !== '') return text
  } catch (cause) {
    throw usage(`${option}: it cannot be read: ${errorText(cause)}`, cause)
  }
  throw usage(`${option}: ${file} is empty`)
}

async function readSecretStdin(context: CommandContext, option: string): Promise<string> {
  const text = (await readStdin(context)).trim()
  context.secrets.add(text)
  if (text !== '') return text
  throw usage(`${option}: stdin is empty`)
}

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
  if (file === '-') return readSecretStdin(context, '--client-secret-file')
  if (file !== undefined) return readSecretFile(context, file, '--client-secret-file')
  const fromEnvironment = readEnvironment(context)
  if (fromEnvironment) return fromEnvironment
  if (login.secretFile !== undefined)
    return readSecretFile(context, login.secretFile, 'the client secret of this login')
  const needed = login.secret || login.grant === 'client_credentials'
  if (!needed || login.privateKeyFile !== undefined) return undefined
  const question = `Secret of the client ${login.clientId} (not shown): `
  const typed = hasPerson(context) ? await ask(context, question, { hidden: true }) : ''
  context.secrets.add(typed)
  if (typed) return typed
  const where = `set ${SECRET_VARIABLE}, or give --client-secret-file <file> (- for stdin) or --private-key-file <file>`
  throw usage(`the client ${login.clientId} needs its secret; ${where}`)
}

const missing = (login: Login, cause?: unknown): ClientAuth => {
  const from = login.secretFile ?? login.privateKeyFile
  const why = cause === undefined ? 'which is not saved' : `and ${from} cannot be read: ${errorText(cause)}`
  return () => {
    throw new AuthError(`a new token needs the secret of the client ${login.clientId}, ${why}`, {
      code: 'client_secret_missing',
      fix: `set ${SECRET_VARIABLE}, or log in with --client-secret-file: mcp-host login ${login.url}`,
      cause,
    })
  }
}

/** Reads the credentials after the login without a prompt. Fails only when a secret is required. */
export function recallCredentials(context: CommandContext, login: Login): Credentials {
  const { privateKeyFile, secretFile, secret } = login
  try {
    if (privateKeyFile !== undefined) return { privateKey: readKeyFile(context, privateKeyFile) }
    if (!secret) return {}
    const fromEnvironment = readEnvironment(context)
    if (fromEnvironment) return { clientSecret: fromEnvironment }
    if (secretFile !== undefined) return { clientSecret: readSecretFile(context, secretFile, secretFile) }
  } catch (cause) {
    return { clientAuthentication: missing(login, cause) }
  }
  return { clientAuthentication: missing(login) }
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
