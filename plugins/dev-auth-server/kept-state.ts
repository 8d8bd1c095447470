// What the authorization server knows: its keys, clients, grants and logins. In memory, and where a file is named also there,
// so that a restart in development asks nobody to log in again.
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { errorText, isObject, type Logger, StartError } from '../../core/index.ts'
import { readOwnFile, writeOwnFile } from './own-file.ts'

export interface Payload {
  readonly uid?: string
  readonly grantId?: string
  consumed?: number
}

/** Bounded, because anyone on this machine may register clients. */
const MAX_ENTRIES = 10_000
/** How long to wait for more before a write, milliseconds. */
const QUIET = 50
const FORMAT = 1

export const SIGNING = 'ES256'

interface Secrets {
  readonly jwks: { readonly keys: readonly object[] }
  readonly cookieKeys: readonly string[]
}

type Entries = LRUCache<string, Payload>

export interface KeptState extends Secrets {
  readonly entries: Entries
  /** An entry was set, changed or deleted. */
  changed(): void
  /** Writes what was not written yet. Never rejects. */
  flush(): Promise<void>
}

function createSecrets(): Secrets {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const kid = randomBytes(8).toString('base64url')
  return {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: SIGNING }] },
    cookieKeys: [randomBytes(32).toString('base64url')],
  }
}

interface Stored extends Secrets {
  readonly entries: ReturnType<Entries['dump']>
}

const isEntry = (entry: unknown) =>
  Array.isArray(entry) && typeof entry[0] === 'string' && isObject(entry[1]) && isObject(entry[1]['value'])

/** Whether what its private half signs is what its public half knows: Node takes any two halves. */
function isSigningKey(key: unknown): boolean {
  if (!isObject(key) || key['crv'] !== 'P-256' || key['alg'] !== SIGNING || typeof key['kid'] !== 'string') return false
  try {
    const own = createPrivateKey({ key, format: 'jwk' })
    const probe = randomBytes(32)
    return verify('sha256', probe, createPublicKey(own), sign('sha256', probe, own))
  } catch {
    return false
  }
}

/** Throws where the text is not what was written here. */
function parseStored(text: string): Stored {
  const stored: unknown = JSON.parse(text)
  const fits =
    isObject(stored) &&
    stored['format'] === FORMAT &&
    isObject(stored['jwks']) &&
    Array.isArray(stored['jwks']['keys']) &&
    stored['jwks']['keys'].length > 0 &&
    stored['jwks']['keys'].every(isSigningKey) &&
    Array.isArray(stored['cookieKeys']) &&
    stored['cookieKeys'].length > 0 &&
    stored['cookieKeys'].every(key => typeof key === 'string') &&
    Array.isArray(stored['entries']) &&
    stored['entries'].every(isEntry)
  if (!fits) throw new Error('it is not what this plugin writes')
  return stored as unknown as Stored
}

async function readStored(file: string, log: Logger): Promise<Stored | undefined> {
  try {
    const text = await readOwnFile(file)
    return text === undefined ? undefined : parseStored(text)
  } catch (error) {
    if (error instanceof StartError) throw error
    // What a parser quotes could be a key.
    const why = error instanceof SyntaxError ? 'it is no JSON' : errorText(error)
    log.warn({ file, why }, 'what was kept cannot be read: keys, clients and logins begin anew')
    return undefined
  }
}

/** `file` undefined: in memory alone. Rejects with a StartError where others may write the file. */
export async function openState(file: string | undefined, log: Logger): Promise<KeptState> {
  const entries: Entries = new LRUCache({ max: MAX_ENTRIES })
  const stored = file === undefined ? undefined : await readStored(file, log)
  const { jwks, cookieKeys } = stored ?? createSecrets()
  entries.load(stored?.entries ?? [])
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    if (file === undefined) return writing
    writing = writing
      .then(() => {
        entries.purgeStale()
        return writeOwnFile(file, JSON.stringify({ format: FORMAT, jwks, cookieKeys, entries: entries.dump() }))
      })
      .catch((err: unknown) => log.warn({ err, file }, 'keys, clients and logins cannot be kept'))
    return writing
  }

  if (file !== undefined && !stored) await flush()
  return {
    jwks,
    cookieKeys,
    entries,
    changed() {
      if (file !== undefined) timer ??= setTimeout(() => void flush(), QUIET)
    },
    flush: () => (timer ? flush() : writing),
  }
}
