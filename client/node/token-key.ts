// The key that the token files are encrypted with: given, from the environment, or a key file that is made once.
// A key file beside the tokens protects copies of the token files (backups, synced folders), not this machine's user.
import { join } from 'node:path'
import { AuthError } from '../errors.ts'
import { type CryptoBox, createCryptoBox, LOG_IN_AGAIN, readKey } from './crypto-box.ts'
import { withFileLock } from './file-lock.ts'
import { readPrivateFile, writePrivateFile } from './private-files.ts'

export interface TokenKey {
  /** The box to seal with; makes the key file where there is none. */
  toSeal(): Promise<CryptoBox>
  /** The box to open `source` with. Throws `cache_failed` where the key file is gone. */
  toOpen(source: string): Promise<CryptoBox>
}

/**
 * `given`: 32 bytes, as bytes, base64 or hex. Default: `MCP_HOST_TOKEN_KEY` of the environment, else the file
 * `token.key` of the directory. Throws `invalid_options` for a key that is none.
 */
export function createTokenKey(directory: string, given: Uint8Array | string | undefined): TokenKey {
  const configured = given ?? (process.env['MCP_HOST_TOKEN_KEY'] || undefined)
  if (configured !== undefined) {
    const box = createCryptoBox(readKey(configured, given === undefined ? 'MCP_HOST_TOKEN_KEY' : '`key`'))
    return { toSeal: async () => box, toOpen: async () => box }
  }
  const path = join(directory, 'token.key')
  let box: CryptoBox | undefined
  async function load(): Promise<CryptoBox | undefined> {
    const content = box ? undefined : await readPrivateFile(path)
    if (content) box = createCryptoBox(readKeyFile(content.toString('latin1'), path))
    return box
  }
  return {
    async toSeal() {
      return (await load()) ?? withFileLock(`${path}.lock`, async () => (await load()) ?? make())
    },
    async toOpen(source) {
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
