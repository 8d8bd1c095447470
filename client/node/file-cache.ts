// Token cache in a directory: one encrypted file and one lock per container, safe across processes and crashes.
import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { AuthError } from '../errors.ts'
import { given } from '../text.ts'
import type { CacheContext, LoginLease, TokenCache, TokenContainer } from '../token-cache.ts'
import { fileLockFreed, tryFileLock, withFileLock } from './file-lock.ts'
import {
  ensurePrivateDirectory,
  privateDirectoryExists,
  readPrivateFile,
  removeLeftovers,
  removePrivateFile,
  writePrivateFile,
} from './private-files.ts'
import { createTokenKey, LOG_IN_AGAIN } from './token-key.ts'

const EXTENSION = '.tokens'

interface FileTokenCacheOptions {
  /** 32 bytes, or base64 or hex. Default: `MCP_HOST_TOKEN_KEY`, otherwise the file `token.key` in the directory. */
  readonly key?: Uint8Array | string | undefined
}

/** Contents of one file without secrets. */
export interface CachedLogin
  extends Pick<
    TokenContainer,
    'authorizationServer' | 'resource' | 'clientId' | 'scope' | 'tokenType' | 'obtainedAt' | 'expiresIn'
  > {
  readonly key: string
  readonly label: string | undefined
  readonly file: string
  readonly hasAccessToken: boolean
  readonly hasRefreshToken: boolean
  /** Reason if the file cannot be read. */
  readonly error?: AuthError
}

export interface FileTokenCache extends TokenCache {
  readonly directory: string
  getTokens(context: CacheContext): Promise<TokenContainer | undefined>
  /** Resolves once the data is on disk. */
  storeTokens(tokens: TokenContainer, context: CacheContext): Promise<void>
  deleteTokens(context: CacheContext): Promise<void>
  withLock<T>(context: CacheContext, work: () => Promise<T>): Promise<T>
  leaseLogin(context: CacheContext): Promise<LoginLease>
  /** Lists all files by key; unreadable files have an error. */
  list(): Promise<CachedLogin[]>
}

interface Content {
  readonly label?: string | undefined
  readonly tokens: TokenContainer
}

/**
 * Creates a token cache in `directory` (mode 0700). Rejects links, and files that other users own or can read. Methods
 * reject with `cache_failed`. Throws `invalid_options` for an invalid key.
 */
export function createFileTokenCache(directory: string, { key }: FileTokenCacheOptions = {}): FileTokenCache {
  const home = resolve(directory)
  const tokenKey = createTokenKey(home, key)
  let tidied: Promise<void> | undefined

  const pathOf = (context: CacheContext, extension: string) => join(home, checkName(context.key) + extension)

  async function prepare(): Promise<void> {
    await ensurePrivateDirectory(home)
    tidied ??= removeLeftovers(home).catch(error => {
      tidied = undefined
      throw error
    })
    await tidied
  }

  async function read(name: string): Promise<Content | undefined> {
    if (!(await privateDirectoryExists(home))) return undefined
    const file = join(home, name + EXTENSION)
    const sealed = await readPrivateFile(file)
    if (!sealed) return undefined
    const box = await tokenKey.toOpen(file)
    return parse(box.open(sealed.toString('latin1'), name, file).toString(), file)
  }

  async function describe(name: string): Promise<CachedLogin | undefined> {
    const file = join(home, name + EXTENSION)
    try {
      const content = await read(name)
      return content && withoutSecrets(name, file, content)
    } catch (error) {
      if (!AuthError.is(error)) throw error
      return { key: name, label: undefined, file, hasAccessToken: false, hasRefreshToken: false, error }
    }
  }

  return {
    directory: home,
    getTokens: async context => (await read(checkName(context.key)))?.tokens,
    async storeTokens(tokens, context) {
      const file = pathOf(context, EXTENSION)
      await prepare()
      const content: Content = { label: context.label, tokens }
      const box = await tokenKey.toSeal()
      await writePrivateFile(file, box.seal(Buffer.from(JSON.stringify(content)), context.key))
    },
    async deleteTokens(context) {
      const file = pathOf(context, EXTENSION)
      if (await privateDirectoryExists(home)) await removePrivateFile(file)
    },
    async withLock(context, work) {
      const path = pathOf(context, '.refresh.lock')
      await prepare()
      return withFileLock(path, work, { signal: context.signal })
    },
    async leaseLogin(context) {
      const path = pathOf(context, '.login.lock')
      await prepare()
      const lock = await tryFileLock(path)
      if (lock) return { held: true, release: () => lock.release() }
      return { held: false, wait: signal => fileLockFreed(path, { signal }) }
    },
    async list() {
      if (!(await privateDirectoryExists(home))) return []
      const names = (await readdir(home)).filter(name => name.endsWith(EXTENSION)).sort()
      const logins = await Promise.all(names.map(name => describe(name.slice(0, -EXTENSION.length))))
      return logins.filter(login => login !== undefined)
    },
  }
}

function checkName(key: string): string {
  if (/^[\w-]{1,128}$/.test(key)) return key
  throw new AuthError('the key of a token container cannot be a file name', {
    code: 'invalid_options',
    fix: 'use 1 to 128 of A-Z, a-z, 0-9, _ and -, such as a hash as base64url',
  })
}

function parse(text: string, file: string): Content {
  const content = JSON.parse(text) as Content
  if (content.tokens?.v === 1) return content
  throw new AuthError(`the token file ${file} is from a version that this one does not know`, {
    code: 'cache_failed',
    fix: `use that version, or ${LOG_IN_AGAIN}`,
  })
}

function withoutSecrets(key: string, file: string, { label, tokens }: Content): CachedLogin {
  const { registration, resource, scope, tokenType, obtainedAt, expiresIn } = tokens
  const { authorizationServer = registration?.issuer, clientId = registration?.clientId } = tokens
  return {
    ...{ key, label, file },
    ...given({ authorizationServer, clientId, resource, scope, tokenType, obtainedAt, expiresIn }),
    hasAccessToken: tokens.accessToken !== undefined,
    hasRefreshToken: tokens.refreshToken !== undefined,
  }
}
