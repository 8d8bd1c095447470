// The stored options of logins, one file each, without secrets.
import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { ClientOAuthOptions } from '../../client/index.ts'
import {
  ensurePrivateDirectory,
  privateDirectoryExists,
  readPrivateFile,
  removePrivateFile,
  writePrivateFile,
} from '../../client/node/private-files.ts'
import { StartError } from '../../core/http/errors.ts'
import type { CommandOptionTable } from '../command.ts'
import { usage } from '../context.ts'
import { shellWord } from '../text.ts'

export const homeDirectory = (env: NodeJS.ProcessEnv): string =>
  env[process.platform === 'win32' ? 'USERPROFILE' : 'HOME'] || homedir()

/** The directory of token files: `tokens` in `MCP_HOST_HOME`, otherwise in `mcp-host` of the user's configuration directory. */
export function tokenDirectory(env: NodeJS.ProcessEnv): string {
  const configuration = env['XDG_CONFIG_HOME'] || join(homeDirectory(env), '.config')
  return join(env['MCP_HOST_HOME'] || join(configuration, 'mcp-host'), 'tokens')
}

export const PROFILE_OPTION = {
  profile: { value: '<name>', help: 'Name of one of several logins on the same server' },
} as const satisfies CommandOptionTable

/** The command that logs in. `scopes`: those that the login adds. */
export function loginCommand({ url, profile }: Pick<Login, 'url' | 'profile'>, scopes: readonly string[] = []): string {
  const command = `mcp-host login ${shellWord(url)}${profile === undefined ? '' : ` --profile ${shellWord(profile)}`}`
  return [command, ...scopes.map(shellWord)].join(' --add-scope ')
}

export type GrantName = 'authorization_code' | 'device' | 'client_credentials'

export type ServerSettings = Pick<
  ClientOAuthOptions,
  | 'resourceIndicator'
  | 'resourceMatch'
  | 'issuerMatch'
  | 'trustedIssuers'
  | 'assumePkceS256'
  | 'tokenEndpoint'
  | 'additionalAuthorizationParameters'
  | 'networkPolicy'
>

export interface Login {
  readonly v: 1
  /** The URL as first entered, because the names of token files depend on it. */
  readonly url: string
  readonly profile?: string | undefined
  readonly grant: GrantName
  readonly clientId?: string | undefined
  /** The issuer where the client is registered. No other issuer receives its secret. */
  readonly clientIssuer?: string | undefined
  readonly clientMetadataDocumentUri?: string | undefined
  readonly scopes?: readonly string[] | undefined
  readonly addedScopes?: readonly string[] | undefined
  readonly headerFiles?: readonly string[] | undefined
  readonly proxy?: string | undefined
  readonly ways?: ServerSettings | undefined
  readonly redirectHost?: string | undefined
  readonly redirectPort?: number | undefined
  readonly redirectPath?: string | undefined
  readonly secret?: boolean | undefined
  readonly secretFile?: string | undefined
  readonly privateKeyFile?: string | undefined
}

const EXTENSION = '.login.json'

const LOOPBACK = /^(?:(?:[\w-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?=[:/]|$)/i
const HOST = /^(?:[\w-]+(?:\.[\w-]+)+(?::\d{1,5})?|[\w-]+:\d{1,5})(?=\/|$)/

/**
 * Normalises the URL of an MCP server. Default scheme: http on loopback addresses, otherwise https. Throws a StartError (exit
 * code 2).
 */
export function checkServerUrl(given: string): string {
  const scheme = LOOPBACK.test(given) ? 'http://' : HOST.test(given) ? 'https://' : ''
  const url = `${scheme}${given}`
  if (/^https?:\/\//i.test(url) && URL.canParse(url)) return url
  throw usage(
    `"${given}" is not an http or https URL; give the complete URL of the server, such as https://example.com/mcp`,
  )
}

const fileName = ({ url, profile }: Pick<Login, 'url' | 'profile'>): string =>
  createHash('sha256')
    .update(JSON.stringify([new URL(url).href, profile ?? '']))
    .digest('base64url')

function parse(text: string, path: string): Login {
  try {
    const login = JSON.parse(text) as Login
    if (login.v === 1 && typeof login.url === 'string') return login
  } catch {
    // Reported below.
  }
  throw new StartError('MH3209', `${path} is not a login file of this version; delete it and log in again`)
}

export function createLogins(directory: string) {
  const pathOf = (login: Pick<Login, 'url' | 'profile'>) => join(directory, fileName(login) + EXTENSION)

  async function read(path: string): Promise<Login | undefined> {
    const content = await readPrivateFile(path)
    return content && parse(content.toString(), path)
  }

  return {
    async find(url: string, profile: string | undefined): Promise<Login | undefined> {
      return (await privateDirectoryExists(directory)) ? read(pathOf({ url, profile })) : undefined
    },
    async save(login: Login): Promise<void> {
      await ensurePrivateDirectory(directory)
      await writePrivateFile(pathOf(login), `${JSON.stringify(login, undefined, 2)}\n`)
    },
    async remove(login: Pick<Login, 'url' | 'profile'>): Promise<void> {
      if (await privateDirectoryExists(directory)) await removePrivateFile(pathOf(login))
    },
    async list(): Promise<Login[]> {
      if (!(await privateDirectoryExists(directory))) return []
      const names = (await readdir(directory)).filter(name => name.endsWith(EXTENSION)).sort()
      const logins = await Promise.all(names.map(name => read(join(directory, name))))
      return logins.filter(login => login !== undefined)
    },
  }
}
