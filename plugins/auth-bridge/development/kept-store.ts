// A grant store in a file with its own secret, so that users stay signed in after a restart in development.
import { hkdfSync, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { checkGrantTtl, type GrantStore } from '../../../core/auth.ts'
import { errorText, isObject, type Logger, StartError } from '../../../core/index.ts'
import { readOwnFile, writeOwnFile } from './own-file.ts'

/** Anyone on this machine can register clients and begin logins. */
const MAX_ENTRIES = 10_000
/** Milliseconds for which changes are collected before a write. */
const WRITE_DELAY = 50
const FORMAT = 2
const SECRET_BYTES = 32

type Members = ReadonlyArray<readonly [member: string, until: number]>
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

function createStore(entries: Entries, changed: () => void): GrantStore {
  const textAt = (key: string) => entries.get(`text ${key}`) as string | undefined
  const membersAt = (key: string) =>
    ((entries.get(`set ${key}`) ?? []) as Members).filter(([, until]) => until > Date.now())

  function write(name: string, value: string | Members, ttl: number) {
    if (ttl > 0) entries.set(name, value, { ttl })
    else entries.delete(name)
    changed()
  }
  function remove(...names: readonly string[]) {
    for (const name of names) entries.delete(name)
    changed()
  }
  const writeMembers = (key: string, members: Members) =>
    write(`set ${key}`, members, Math.max(0, ...members.map(([, until]) => until)) - Date.now())

  return {
    shared: false,
    get: async key => textAt(key),
    set: async (key, value, ttl) => write(`text ${key}`, value, checkGrantTtl(ttl)),
    async add(key, value, ttl) {
      if (textAt(key) !== undefined) return false
      write(`text ${key}`, value, checkGrantTtl(ttl))
      return true
    },
    async replace(key, from, to, ttl) {
      if (textAt(key) !== from) return false
      write(`text ${key}`, to, checkGrantTtl(ttl))
      return true
    },
    async take(key) {
      const value = textAt(key)
      remove(`text ${key}`)
      return value
    },
    delete: async (...keys) => remove(...keys.flatMap(key => [`text ${key}`, `set ${key}`])),
    async join(key, member, ttl, most) {
      const known = new Map(membersAt(key))
      const until = Math.max(Date.now() + checkGrantTtl(ttl), known.get(member) ?? 0)
      known.delete(member)
      const members = [...known, [member, until] as const].slice(-most)
      writeMembers(key, members)
      return members.length
    },
    leave: async (key, member) =>
      writeMembers(
        key,
        membersAt(key).filter(([name]) => name !== member),
      ),
    members: async key => membersAt(key).map(([member]) => member),
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

  if (!stored) await flush()
  return {
    store: createStore(entries, () => {
      timer ??= setTimeout(() => void flush(), WRITE_DELAY)
    }),
    keys: use => [Buffer.from(hkdfSync('sha256', secret, '', use, SECRET_BYTES))],
    flush: () => (timer ? flush() : writing),
  }
}
