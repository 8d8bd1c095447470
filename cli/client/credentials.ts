// The secrets of a client that somebody registered by hand: from a file, the environment or a prompt. Never from argv,
// which every process of a machine can read, and never kept.
import { readFileSync } from 'node:fs'
import { AuthError } from '../../client/errors.ts'
import type { ClientAuth, ClientOAuthOptions } from '../../client/index.ts'
import { errorText, StartError } from '../../core/http/errors.ts'
import { knownSecrets } from '../known-secrets.ts'
import type { Login } from './logins.ts'
import { ask, hasPerson } from './terminal.ts'

export const SECRET_VARIABLE = 'MCP_HOST_CLIENT_SECRET'

/** What `createAuthFetch` gets. */
export type Credentials = Pick<ClientOAuthOptions, 'clientSecret' | 'privateKey' | 'clientAuthentication'>

export function readSecretFile(file: string, option: string): string {
  try {
    const text = readFileSync(file === '-' ? 0 : file, 'utf8').trim()
    knownSecrets.add(text)
    if (text !== '') return text
  } catch (cause) {
    throw new StartError(`${option}: it cannot be read: ${errorText(cause)}`, { cause, exitCode: 2 })
  }
  throw new StartError(`${option}: ${file === '-' ? 'stdin' : file} is empty`, { exitCode: 2 })
}

function readEnvironment(): string | undefined {
  const secret = process.env[SECRET_VARIABLE]
  knownSecrets.add(secret)
  return secret
}

/** For a login: whatever is there, else a question. `file` may be `-`. */
export async function findSecret(login: Login, file: string | undefined): Promise<string | undefined> {
  if (login.clientId === undefined) return undefined
  if (file !== undefined) return readSecretFile(file, '--client-secret-file')
  const fromEnvironment = readEnvironment()
  if (fromEnvironment) return fromEnvironment
  if (login.secretFile !== undefined) return readSecretFile(login.secretFile, 'the client secret of this login')
  const needed = login.secret || login.grant === 'client_credentials'
  if (!needed || login.privateKeyFile !== undefined) return undefined
  const typed = hasPerson() ? await ask(`Secret of the client ${login.clientId} (not shown): `, { hidden: true }) : ''
  knownSecrets.add(typed)
  if (typed) return typed
  const where = `set ${SECRET_VARIABLE}, or give --client-secret-file <file> (- for stdin) or --private-key-file <file>`
  throw new StartError(`the client ${login.clientId} needs its secret; ${where}`, { exitCode: 2 })
}

/** Ends a request for a token for which a secret is missing; until then nobody has to give it. */
const missing = (login: Login, cause?: unknown): ClientAuth => {
  const from = login.secretFile ?? login.privateKeyFile
  const why = cause === undefined ? 'which is kept nowhere' : `and ${from} cannot be read: ${errorText(cause)}`
  return () => {
    throw new AuthError(`a new token needs the secret of the client ${login.clientId}, ${why}`, {
      code: 'client_secret_missing',
      fix: `set ${SECRET_VARIABLE}, or log in with --client-secret-file: mcp-host login ${login.url}`,
      cause,
    })
  }
}

/** For everything after the login: asks nobody, and complains only once a secret is really needed. */
export function recallCredentials(login: Login): Credentials {
  const { privateKeyFile, secretFile, secret } = login
  try {
    if (privateKeyFile !== undefined) return { privateKey: readKeyFile(privateKeyFile) }
    if (!secret) return {}
    const fromEnvironment = readEnvironment()
    if (fromEnvironment) return { clientSecret: fromEnvironment }
    if (secretFile !== undefined) return { clientSecret: readSecretFile(secretFile, secretFile) }
  } catch (cause) {
    return { clientAuthentication: missing(login, cause) }
  }
  return { clientAuthentication: missing(login) }
}

/** A private key: PKCS#8 as PEM, or a JWK. */
export function readKeyFile(file: string): NonNullable<Credentials['privateKey']> {
  const text = readSecretFile(file, '--private-key-file')
  if (!text.startsWith('{')) return text
  try {
    return JSON.parse(text)
  } catch {
    throw new StartError(`--private-key-file: ${file} is neither a PEM nor a JWK`, { exitCode: 2 })
  }
}
