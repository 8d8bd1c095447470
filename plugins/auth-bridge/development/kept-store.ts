// A grant store in a file with its own secret, so that users stay signed in after a restart in development.
import { hkdfSync, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { GrantStore } from '../../../core/auth.ts'
import { errorText, isObject, type Logger, StartError } from '../../../core/index.ts'
import { createGrantStore, type GrantEntries, type Members } from '../../families/grants/index.ts'
import { readOwnFile, writeOwnFile } from './own-file.ts'

/** Anyone on this machine can register clients and begin logins. */
const MAX_ENTRIES = 10_000
/** Milliseconds for which changes are collected before a write. */
const WRITE_DELAY = 50
const FORMAT = 2
const SECRET_BYTES = 32

type Entries = LRUCache<string, string | Members>

export interface KeptStore {
  readonly store: GrantStore
  /** Like `host.keys`, from the secret in the file. */
  keys(use: string): readonly Buffer[]
  /** Writes pending changes. Never rejects. */
  flush(): Promise<void>
}

interface Stored {
  readonly secret: string
  readonly entries: ReturnType<Entries['dump']>
}

const isEntry = (entry: unknown) =>
  Array.isArray(entry) && typeof entry[0] === 'string' && isObject(entry[1]) && entry[1]['value'] !== undefined

function parseStored(text: string): Stored {
  const stored: unknown = JSON.parse(text)
  const { format, secret, entries } = isObject(stored) ? stored : {}
  const fits =
    format === FORMAT &&
    typeof secret === 'string' &&
    Buffer.from(secret, 'base64url').length === SECRET_BYTES &&
    Array.isArray(entries) &&
    entries.every(isEntry)
  if (!fits) throw new Error('it has another format')
  return stored as unknown as Stored
}

async function readStored(file: string, log: Logger): Promise<Stored | undefined> {
  try {
    const text = await readOwnFile(file)
    return text === undefined ? undefined : parseStored(text)
  } catch (error) {
    if (error instanceof StartError) throw error
    // A parser message can quote the secret.
    const why = error instanceof SyntaxError ? 'it is not JSON' : errorText(error)
    log.warn({ file, why }, 'cannot read the kept logins: starting with new keys and without logins')
    return undefined
  }
}

/** Rejects with a StartError if others can write the file. */
export async function openKeptStore(file: string, log: Logger): Promise<KeptStore> {
  const entries: Entries = new LRUCache({ max: MAX_ENTRIES })
  const stored = await readStored(file, log)
  const secret = stored?.secret ?? randomBytes(SECRET_BYTES).toString('base64url')
  entries.load([...(stored?.entries ?? [])])
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    writing = writing
      .then(() => {
        entries.purgeStale()
        return writeOwnFile(file, JSON.stringify({ format: FORMAT, secret, entries: entries.dump() }))
      })
      .catch((err: unknown) => log.warn({ err, file }, 'cannot keep logins'))
    return writing
  }

  function changed() {
    timer ??= setTimeout(() => void flush(), WRITE_DELAY)
  }
  const written: GrantEntries = {
    get: name => entries.get(name),
    set(name, value, until) {
      const ttl = until - Date.now()
      if (ttl > 0) entries.set(name, value, { ttl })
      else entries.delete(name)
      changed()
    },
    delete(name) {
      if (entries.delete(name)) changed()
    },
  }

  if (!stored) await flush()
  return {
    store: createGrantStore(() => written, Date.now),
    keys: use => [Buffer.from(hkdfSync('sha256', secret, '', use, SECRET_BYTES))],
    flush: () => (timer ? flush() : writing),
  }
}
