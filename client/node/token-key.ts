// Encrypts token files (AES-256-GCM). A key file in the same directory does not protect against this user.
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { AuthError } from '../errors.ts'
import { withFileLock } from './file-lock.ts'
import { readPrivateFile, writePrivateFile } from './private-files.ts'

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
      if (text === undefined) throw unreadable(source, 'is damaged or was cut off')
      if (prefix !== PREFIX) throw unreadable(source, `has a format (${prefix}) that this version does not know`)
      if (sealedBy !== keyId) throw otherKey(source, sealedBy, keyId)
      const body = Buffer.from(text, 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key, body.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
      try {
        decipher.setAAD(bindingOf(name)).setAuthTag(body.subarray(-TAG_BYTES))
        return Buffer.concat([decipher.update(body.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
      } catch (cause) {
        throw unreadable(source, 'was changed since it was written, or belongs to another name', cause)
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

export const LOG_IN_AGAIN = 'delete that file (`mcp-host logout URL` does) and log in again'

function unreadable(source: string, what: string, cause?: unknown): AuthError {
  return new AuthError(`the token file ${source} ${what}`, { code: 'cache_failed', cause, fix: LOG_IN_AGAIN })
}

function otherKey(source: string, theirs: string | undefined, ours: string): AuthError {
  return new AuthError(`the token file ${source} is encrypted with another key (key id ${theirs}, not ${ours})`, {
    code: 'cache_failed',
    fix: `give the key it was written with (MCP_HOST_TOKEN_KEY, or the key file beside it), or ${LOG_IN_AGAIN}`,
  })
}

/** Default: `MCP_HOST_TOKEN_KEY`, otherwise the file `token.key`. Throws `invalid_options` for an invalid key. */
export function createTokenKey(directory: string, given: Uint8Array | string | undefined) {
  const configured = given ?? (process.env['MCP_HOST_TOKEN_KEY'] || undefined)
  if (configured !== undefined) {
    const box = createCryptoBox(readKey(configured, given === undefined ? 'MCP_HOST_TOKEN_KEY' : '`key`'))
    return { toSeal: async () => box, toOpen: async (_source: string) => box }
  }
  const path = join(directory, 'token.key')
  let box: CryptoBox | undefined
  async function load(): Promise<CryptoBox | undefined> {
    const content = box ? undefined : await readPrivateFile(path)
    if (content) box = createCryptoBox(readKeyFile(content.toString('latin1'), path))
    return box
  }
  return {
    async toSeal(): Promise<CryptoBox> {
      return (await load()) ?? withFileLock(`${path}.lock`, async () => (await load()) ?? make())
    },
    async toOpen(source: string): Promise<CryptoBox> {
      const loaded = await load()
      if (loaded) return loaded
      throw new AuthError(`the key of the token file ${source} is gone: there is no ${path}`, {
        code: 'cache_failed',
        fix: `put the key file back, set MCP_HOST_TOKEN_KEY, or ${LOG_IN_AGAIN}`,
      })
    },
  }

  async function make(): Promise<CryptoBox> {
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
      fix: 'put the right one back; without it, delete it and the token files beside it, and log in again',
    })
  }
}
