// A file with secrets that other users cannot write, replaced atomically.
import { hkdfSync, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createMemoryStore, type MemoryDump, type Store } from '../../../core/auth.ts'
import { errorText, isObject, type Logger, StartError } from '../../../core/plugin.ts'
import { createGrantStore } from '../../families/grant-store/index.ts'

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

const refuseFile = (path: string, what: string, fix: string) =>
  new StartError('MH2104', `keepIn: ${path} ${what}; ${fix}`)

const modeWith = (mode: number, bits: number) =>
  process.getuid !== undefined && (mode & bits) !== 0 ? (mode & 0o7777).toString(8) : undefined

/** Does not follow links or block on a pipe. Windows has neither flag. */
const READ = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/** Reads the file. Undefined if missing. Rejects with a StartError if other users can write the file. */
async function readOwnFile(file: string): Promise<string | undefined> {
  const folder = dirname(file)
  const mode = (await stat(folder).catch(() => undefined))?.mode ?? 0
  const writableFolder = (mode & 0o1000) === 0 ? modeWith(mode, 0o002) : undefined
  if (writableFolder !== undefined)
    throw refuseFile(folder, `can be written by every user (mode ${writableFolder})`, `run: chmod o-w '${folder}'`)
  const handle = await open(file, READ).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined
    throw codeOf(error) === 'ELOOP' ? refuseFile(file, 'is a symbolic link', 'use the path of the file itself') : error
  })
  if (!handle) return undefined
  try {
    const stats = await handle.stat()
    const user = process.getuid?.() ?? stats.uid
    if (stats.uid !== user)
      throw refuseFile(file, `belongs to user ${stats.uid}, not to user ${user}`, 'use another file')
    const writable = modeWith(stats.mode, 0o022)
    if (writable !== undefined) throw refuseFile(file, `can be written by other users (mode ${writable})`, 'delete it')
    if (modeWith(stats.mode, 0o077) !== undefined) await handle.chmod(0o600)
    return await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
}

async function writeOwnFile(file: string, text: string): Promise<void> {
  const folder = dirname(file)
  const made = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (made !== undefined) await writeFile(join(folder, '.gitignore'), '*\n')
  // The name is unpredictable, so that an existing file or link is never written to.
  const written = `${file}.${randomBytes(9).toString('base64url')}.new`
  try {
    await writeFile(written, text, { mode: 0o600, flag: 'wx' })
    await rename(written, file)
  } catch (error) {
    await rm(written, { force: true }).catch(() => undefined)
    throw error
  }
}

const MAX_BYTES = 16 * 1_048_576
const WRITE_DELAY = 50
const FORMAT = 3
const SECRET_BYTES = 32

export type KeptStore = Awaited<ReturnType<typeof openKeptStore>>

interface Stored {
  readonly secret: string
  readonly entries: MemoryDump
}

const isEntry = (entry: unknown) =>
  Array.isArray(entry) &&
  typeof entry[0] === 'string' &&
  isObject(entry[1]) &&
  Array.isArray(entry[1]['records']) &&
  Array.isArray(entry[1]['sets'])

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
    // The parser's message can quote the secret.
    const why = error instanceof SyntaxError ? 'it is not JSON' : errorText(error)
    log.warn({ code: 'MH2128', file, why }, 'cannot read the stored logins; starting with new keys and without logins')
    return undefined
  }
}

export async function openKeptStore(file: string, log: Logger) {
  const stored = await readStored(file, log)
  const secret = stored?.secret ?? randomBytes(SECRET_BYTES).toString('base64url')
  const memory = createMemoryStore({ maxBytes: MAX_BYTES, evicts: true, dump: stored?.entries ?? [] })
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    writing = writing
      .then(() => writeOwnFile(file, JSON.stringify({ format: FORMAT, secret, entries: memory.dump() })))
      .catch((err: unknown) => log.warn({ code: 'MH2129', err, file }, 'cannot keep logins'))
    return writing
  }

  function changed() {
    timer ??= setTimeout(() => void flush(), WRITE_DELAY)
  }
  const written: Store = {
    ...memory,
    transact(...change) {
      changed()
      return memory.transact(...change)
    },
  }

  if (!stored) await flush()
  return {
    store: createGrantStore(written),
    keys: (use: string): readonly Buffer[] => [Buffer.from(hkdfSync('sha256', secret, '', use, SECRET_BYTES))],
    flush: (): Promise<void> => (timer ? flush() : writing),
  }
}
