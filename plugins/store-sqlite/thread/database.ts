// Opens and closes the database file.
import { chmodSync, closeSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StoreFailure, toFailure } from './messages.ts'
import { SCHEMA, SCHEMA_VERSION } from './partition.ts'

export const MEMORY = ':memory:'

const APPLICATION = 0x4d435048

/** How long SQLite waits for a lock, milliseconds; transactions.ts retries. */
const BUSY_TIMEOUT = { start: 5_000, serving: 1 }

const LOG_LIMIT = 16 * 1_048_576

const SUFFIXES = ['-wal', '-shm']

/** Removes access of group and others; returns the previous mode if it changed. */
export function restrictAccess(file: string): number | undefined {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode
  if (mode === undefined || (mode & 0o077) === 0) return undefined
  chmodSync(file, mode & 0o600)
  return mode & 0o777
}

export function createPrivate(file: string) {
  const folder = dirname(file)
  const created = mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (created !== undefined) writeFileSync(join(folder, '.gitignore'), '*\n')
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    // Opened only in this case, because closing a descriptor would release the locks of this process.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if (statSync(file).isDirectory()) throw new StoreFailure('path', 'it is a folder')
  }
}

/** SQLite creates other files with the same mode. Returns a function that undoes it for a foreign file. */
function restrictAll(file: string): () => void {
  const modes = ['', ...SUFFIXES].map(suffix => [`${file}${suffix}`, restrictAccess(`${file}${suffix}`)] as const)
  return () => {
    for (const [name, mode] of modes) {
      if (mode !== undefined && statSync(name, { throwIfNoEntry: false })) chmodSync(name, mode)
    }
  }
}

export const numberOf = (db: DatabaseSync, pragma: string): number =>
  Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0])

function checkSchema(db: DatabaseSync): boolean {
  if (db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get()?.['tables'] === 0) return true
  if (numberOf(db, 'application_id') !== APPLICATION) {
    throw new StoreFailure('foreign', 'it is a database of another program')
  }
  const version = numberOf(db, 'user_version')
  if (version !== SCHEMA_VERSION) {
    throw new StoreFailure('version', `it has version ${version}, this program supports ${SCHEMA_VERSION}`)
  }
  return false
}

function createTables(db: DatabaseSync) {
  db.exec('BEGIN IMMEDIATE')
  if (checkSchema(db))
    db.exec(`${SCHEMA}; PRAGMA application_id = ${APPLICATION}; PRAGMA user_version = ${SCHEMA_VERSION}`)
  db.exec('COMMIT')
}

function checkIntegrity(db: DatabaseSync) {
  const [first] = db.prepare('PRAGMA quick_check(1)').all()
  const result = String(Object.values(first ?? {})[0])
  if (result !== 'ok') throw new StoreFailure('damaged', result)
}

export interface Opening {
  readonly maxSize: number
  /** True if no other process has the file. It is then read completely, to detect damage. */
  readonly isFirst: boolean
}

/** Opens the database, while no other process of this host does. Throws errors that `toFailure` knows. */
export function openDatabase(file: string, opening: Opening): { readonly db: DatabaseSync; readonly identity: string } {
  if (file === MEMORY) return { db: openRestricted(file, opening), identity: MEMORY }
  // SQLite would write the log of a deleted file into the new one.
  if (readIdentity(file) === MISSING) for (const suffix of SUFFIXES) rmSync(`${file}${suffix}`, { force: true })
  createPrivate(file)
  const identity = readIdentity(file)
  return { db: openOrRestore(file, opening), identity }
}

function openOrRestore(file: string, opening: Opening): DatabaseSync {
  const undo = restrictAll(file)
  try {
    return openRestricted(file, opening)
  } catch (error) {
    undo()
    throw error
  }
}

function openRestricted(file: string, { maxSize, isFirst }: Opening): DatabaseSync {
  const db = new DatabaseSync(file)
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT.start}`)
    const isEmpty = checkSchema(db)
    if (isEmpty) db.exec('PRAGMA auto_vacuum = INCREMENTAL')
    const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode']
    if (mode !== 'wal' && file !== MEMORY)
      throw new StoreFailure('path', `its file system does not support a write-ahead log (${mode})`)
    // Overwrites deleted data; `FAST` would leave some in free pages.
    db.exec('PRAGMA secure_delete = ON')
    db.exec(`PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${LOG_LIMIT}; PRAGMA temp_store = MEMORY`)
    if (isEmpty) createTables(db)
    if (isFirst) checkIntegrity(db)
    // This statement fails if another program holds the lock.
    if (isFirst) db.exec('BEGIN IMMEDIATE; COMMIT')
    db.exec(`PRAGMA max_page_count = ${Math.ceil(maxSize / numberOf(db, 'page_size'))}`)
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT.serving}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

export function replaceDamaged(file: string): string {
  const target = `${file}.damaged-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
  for (const suffix of [...SUFFIXES, '']) {
    if (statSync(`${file}${suffix}`, { throwIfNoEntry: false })) renameSync(`${file}${suffix}`, `${target}${suffix}`)
  }
  return target
}

const MISSING = 'none'

/** Identifies the file of this name while it is open: the value changes if the file was deleted or replaced. */
export function readIdentity(file: string): string {
  const stats = statSync(file, { bigint: true, throwIfNoEntry: false })
  return stats ? `${stats.dev}:${stats.ino}` : MISSING
}

export function closeDatabase(db: DatabaseSync): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    // The next start reads the log.
    if (toFailure(error).code === 'bug') throw error
  } finally {
    db.close()
  }
}
