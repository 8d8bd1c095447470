// Token cache in a directory: one encrypted file and one lock per container, safe across processes and crashes.

import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { AuthError } from '../errors.ts'
import type { CacheContext, LoginLease, TokenCache, TokenContainer } from '../stores.ts'
import { defined } from '../text.ts'
import { readLockOwner, tryFileLock, waitForFileLock, withFileLock } from './file-lock.ts'
import {
  ensurePrivateDirectory,
  privateDirectoryExists,
  readPrivateFile,
  removeLeftovers,
  removePrivateFile,
  writePrivateFile,
} from './private-files.ts'

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

export type FileTokenCache = ReturnType<typeof createFileTokenCache>

interface Content {
  readonly label?: string | undefined
  readonly tokens: TokenContainer
}

/**
 * Creates a token cache in `directory` (mode 0700). Rejects links, and files that other users own or can read. Methods
 * reject with `cache_failed`. Throws `invalid_options` for an invalid key.
 */
export function createFileTokenCache(directory: string, { key }: FileTokenCacheOptions = {}) {
  const root = resolve(directory)
  const tokenKey = createTokenKey(root, key)
  let cleaned: Promise<void> | undefined

  const pathOf = (context: CacheContext, extension: string) => join(root, checkName(context.key) + extension)

  async function prepare(): Promise<void> {
    await ensurePrivateDirectory(root)
    cleaned ??= removeLeftovers(root).catch(error => {
      cleaned = undefined
      throw error
    })
    await cleaned
  }

  async function read(name: string): Promise<Content | undefined> {
    if (!(await privateDirectoryExists(root))) return undefined
    const file = join(root, name + EXTENSION)
    const sealed = await readPrivateFile(file)
    if (!sealed) return undefined
    const box = await tokenKey.keyToOpen(file)
    return parse(box.open(sealed.toString('latin1'), name, file).toString(), file)
  }

  async function describe(name: string): Promise<CachedLogin | undefined> {
    const file = join(root, name + EXTENSION)
    try {
      const content = await read(name)
      return content && withoutSecrets(name, file, content)
    } catch (error) {
      if (!AuthError.is(error)) throw error
      return { key: name, label: undefined, file, hasAccessToken: false, hasRefreshToken: false, error }
    }
  }

  return {
    directory: root,
    getTokens: async (context: CacheContext) => (await read(checkName(context.key)))?.tokens,
    /** Resolves once the data is on disk. */
    async storeTokens(tokens: TokenContainer, context: CacheContext) {
      const file = pathOf(context, EXTENSION)
      await prepare()
      const content: Content = { label: context.label, tokens }
      const box = await tokenKey.keyToSeal()
      await writePrivateFile(file, box.seal(Buffer.from(JSON.stringify(content)), context.key))
    },
    async deleteTokens(context: CacheContext) {
      const file = pathOf(context, EXTENSION)
      if (await privateDirectoryExists(root)) await removePrivateFile(file)
    },
    async withLock<T>(context: CacheContext, work: () => Promise<T>): Promise<T> {
      const path = pathOf(context, '.refresh.lock')
      await prepare()
      return withFileLock(path, work, { signal: context.signal })
    },
    async leaseLogin(context: CacheContext): Promise<LoginLease> {
      const path = pathOf(context, '.login.lock')
      await prepare()
      const lock = await tryFileLock(path)
      if (lock) return { held: true, release: () => lock.release() }
      return { held: false, pid: await readLockOwner(path), wait: signal => waitForFileLock(path, { signal }) }
    },
    /** Lists all files by key; unreadable files have an error. */
    async list(): Promise<CachedLogin[]> {
      if (!(await privateDirectoryExists(root))) return []
      const names = (await readdir(root)).filter(name => name.endsWith(EXTENSION)).sort()
      const logins = await Promise.all(names.map(name => describe(name.slice(0, -EXTENSION.length))))
      return logins.filter(login => login !== undefined)
    },
  } satisfies TokenCache & Record<string, unknown>
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
  throw new AuthError(`the token file ${file} has an unsupported version`, {
    code: 'cache_failed',
    fix: `use the version that wrote it, or ${LOG_IN}`,
  })
}

function withoutSecrets(key: string, file: string, { label, tokens }: Content): CachedLogin {
  const { registration, resource, scope, tokenType, obtainedAt, expiresIn } = tokens
  const { authorizationServer = registration?.issuer, clientId = registration?.clientId } = tokens
  return {
    ...{ key, label, file },
    ...defined({ authorizationServer, clientId, resource, scope, tokenType, obtainedAt, expiresIn }),
    hasAccessToken: tokens.accessToken !== undefined,
    hasRefreshToken: tokens.refreshToken !== undefined,
  }
}

const PREFIX = 'mcp-host-tokens.v1'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

type CryptoBox = ReturnType<typeof createCryptoBox>

export function createCryptoBox(key: Uint8Array) {
  const keyId = createHmac('sha256', key).update('mcp-host token key id').digest().subarray(0, 8).toString('base64url')
  const header = `${PREFIX}.${keyId}`
  const bindingOf = (name: string) => Buffer.from(`${header}.${name}`)
  return {
    keyId,
    /** Returns one line of ASCII text, bound to `name`. */
    seal(plain: Uint8Array, name: string): string {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES }).setAAD(bindingOf(name))
      const body = Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
      return `${header}.${body.toString('base64url')}\n`
    },
    /** Throws `cache_failed` for a wrong key or name, or modified text. `source`: file name for the message. */
    open(sealed: string, name: string, source: string): Buffer {
      const [, prefix, sealedBy, text] = /^([\w-]+\.v\d+)\.([\w-]+)\.([\w-]+)\n$/.exec(sealed) ?? []
      if (text === undefined) throw readError(source, 'is damaged or truncated')
      if (prefix !== PREFIX) throw readError(source, `has an unsupported format (${prefix})`)
      if (sealedBy !== keyId) {
        const fix = `restore the key that encrypted it (MCP_HOST_TOKEN_KEY, or the key file in the same folder), or ${LOG_IN}`
        throw readError(source, `is encrypted with another key (key id ${sealedBy}, not ${keyId})`, undefined, fix)
      }
      const body = Buffer.from(text, 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key, body.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
      try {
        decipher.setAAD(bindingOf(name)).setAuthTag(body.subarray(-TAG_BYTES))
        return Buffer.concat([decipher.update(body.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
      } catch (cause) {
        throw readError(source, 'was changed since it was written, or belongs to another name', cause)
      }
    },
  }
}

/** Parses 32 bytes from bytes, base64, base64url or hex. Messages contain `source`, never the key. */
export function readKey(key: Uint8Array | string, source: string): Uint8Array {
  const bytes = typeof key === 'string' ? decodeKey(key.trim()) : Uint8Array.from(key)
  if (bytes?.length === KEY_BYTES) return bytes
  throw new AuthError(`${source} is not a key: it must be 32 bytes, as base64 or hex where it is text`, {
    code: 'invalid_options',
    fix: 'make one with: openssl rand -base64 32',
  })
}

function decodeKey(text: string): Uint8Array | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  return /^[\w+/-]{43}=?$/.test(text) ? Buffer.from(text, 'base64') : undefined
}

const LOG_IN = 'delete that file (`mcp-host logout URL` does) and log in again'

const readError = (source: string, what: string, cause?: unknown, fix = LOG_IN): AuthError =>
  new AuthError(`the token file ${source} ${what}`, { code: 'cache_failed', cause, fix })

/** Default: `MCP_HOST_TOKEN_KEY`, otherwise the file `token.key`. Throws `invalid_options` for an invalid key. */
function createTokenKey(directory: string, given: Uint8Array | string | undefined) {
  const configured = given ?? (process.env['MCP_HOST_TOKEN_KEY'] || undefined)
  if (configured !== undefined) {
    const box = createCryptoBox(readKey(configured, given === undefined ? 'MCP_HOST_TOKEN_KEY' : '`key`'))
    return { keyToSeal: async () => box, keyToOpen: async (_source: string) => box }
  }
  const path = join(directory, 'token.key')
  let box: CryptoBox | undefined
  async function readContent(): Promise<CryptoBox | undefined> {
    const content = box ? undefined : await readPrivateFile(path)
    if (content) box = createCryptoBox(readKeyFile(content.toString('latin1'), path))
    return box
  }
  return {
    async keyToSeal(): Promise<CryptoBox> {
      return (await readContent()) ?? withFileLock(`${path}.lock`, async () => (await readContent()) ?? createKey())
    },
    async keyToOpen(source: string): Promise<CryptoBox> {
      const loaded = await readContent()
      if (loaded) return loaded
      const fix = `restore the key file, set MCP_HOST_TOKEN_KEY, or ${LOG_IN}`
      throw readError(source, `cannot be decrypted, because the key file ${path} is missing`, undefined, fix)
    },
  }

  async function createKey(): Promise<CryptoBox> {
    const key = crypto.getRandomValues(new Uint8Array(32))
    await writePrivateFile(path, `${Buffer.from(key).toString('base64url')}\n`)
    box = createCryptoBox(key)
    return box
  }
}

function readKeyFile(text: string, path: string): Uint8Array {
  try {
    return readKey(text, path)
  } catch (cause) {
    throw new AuthError(`the key file ${path} is damaged`, {
      code: 'cache_failed',
      cause,
      fix: 'Restore the original key file. If it is lost, delete this file and the token files in the same folder, and log in again',
    })
  }
}
