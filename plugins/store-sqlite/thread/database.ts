// The file: how it is opened, what is in it, and of which version that is. For main.ts.
import { chmodSync, closeSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { faultOf, StoreFault } from './faults.ts'
import { MIGRATIONS } from './schema.ts'

export const MEMORY = ':memory:'

/** In the header of the file: it is ours. */
const APPLICATION = 0x4d435048

/** Milliseconds that another process may hold the file; transactions.ts tries again by itself. */
const BUSY = { start: 5_000, serving: 1 }

/** Bytes of the log beside the file that stay once it was written back. */
const LOG_LIMIT = 16 * 1_048_576

/** What belongs to the file: nothing without it, and the ruin of another in its place. */
const COMPANIONS = ['-wal', '-shm']

/** Takes from a file what others than its owner may do with it; gives the mode it had, where that was another. */
export function restrict(file: string): number | undefined {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode
  if (mode === undefined || (mode & 0o077) === 0) return undefined
  chmodSync(file, mode & 0o600)
  return mode & 0o777
}

/** Only the owner may read it: there are addresses and names of users in it. */
export function createPrivate(file: string) {
  const folder = dirname(file)
  const made = mkdirSync(folder, { recursive: true, mode: 0o700 })
  // Data of users belongs in no repository.
  if (made !== undefined) writeFileSync(join(folder, '.gitignore'), '*\n')
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    // Never opened otherwise: to close a descriptor of the file would end the locks that this process holds on it.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if (statSync(file).isDirectory()) throw new StoreFault('path', 'it is a folder')
  }
}

/**
 * Before SQLite opens a file: what it makes beside it has the mode of the file, as a backup that was put back may have another
 * one. Gives what undoes that, for a file that turns out not to be ours.
 */
function restrictAll(file: string): () => void {
  const had = ['', ...COMPANIONS].map(suffix => [`${file}${suffix}`, restrict(`${file}${suffix}`)] as const)
  return () => {
    for (const [name, mode] of had) {
      if (mode !== undefined && statSync(name, { throwIfNoEntry: false })) chmodSync(name, mode)
    }
  }
}

export const numberOf = (db: DatabaseSync, pragma: string): number =>
  Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0])

function checkOwner(db: DatabaseSync): number {
  const version = numberOf(db, 'user_version')
  const application = numberOf(db, 'application_id')
  const isEmpty = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get()?.['tables'] === 0
  if (application !== APPLICATION && !isEmpty) throw new StoreFault('foreign', 'it is a database of another program')
  if (version > MIGRATIONS.length) {
    throw new StoreFault('newer', `it is of version ${version}, and this program knows ${MIGRATIONS.length}`)
  }
  return isEmpty ? 0 : version
}

/** To the version of this program, whole or not at all: whoever catches what it throws closes the file. */
function migrate(db: DatabaseSync, version: number) {
  if (version === MIGRATIONS.length) return
  db.exec('BEGIN IMMEDIATE')
  for (const step of MIGRATIONS.slice(checkOwner(db))) db.exec(step)
  db.exec(`PRAGMA application_id = ${APPLICATION}; PRAGMA user_version = ${MIGRATIONS.length}`)
  db.exec('COMMIT')
}

/** What those who had the file before were doing is nobody's any more. */
const FORGET_RUNNING = `BEGIN IMMEDIATE; DELETE FROM requests; DELETE FROM uses; DELETE FROM copies;
UPDATE tasks SET leased = 0 WHERE state = 'running'; COMMIT`

function checkWhole(db: DatabaseSync) {
  const [first] = db.prepare('PRAGMA quick_check(1)').all()
  const said = String(Object.values(first ?? {})[0])
  if (said !== 'ok') throw new StoreFault('damaged', said)
}

function limitSize(db: DatabaseSync, maxSize: number) {
  db.exec(`PRAGMA max_page_count = ${Math.ceil(maxSize / numberOf(db, 'page_size'))}`)
}

export interface Opening {
  readonly maxSize: number
  /** Nobody else has it: it is read from end to end, to find damage before anything hangs on it. */
  readonly isFirst: boolean
  /** What was in this place before, and is open still: else the system gives its numbers to others, and these are taken for it. */
  readonly former: Place | undefined
}

/** Which file a connection has, and which log. */
export interface Place {
  readonly identity: string
  readonly log: string
}

export interface OpenedDatabase extends Place {
  readonly db: DatabaseSync
}

/** Times that a file may be replaced while it is opened. */
const TRIES = 5

/** No other process of the crew opens it meanwhile. Throws what `faultOf` understands. */
export function openDatabase(file: string, opening: Opening, tries = TRIES): OpenedDatabase {
  if (file === MEMORY) return { db: openRestricted(file, opening), identity: MEMORY, log: MEMORY }
  removeStale(file, opening.former)
  createPrivate(file)
  const identity = identityOf(file)
  const db = openUndoing(file, opening)
  const log = logOf(file)
  if (identityOf(file) === identity) return { db, identity, log }
  // Another program replaced it in the middle of this.
  try {
    if (tries === 1) throw new StoreFault('path', 'it is replaced again and again')
    return openDatabase(file, { ...opening, former: { identity, log } }, tries - 1)
  } finally {
    db.close()
  }
}

function openUndoing(file: string, opening: Opening): DatabaseSync {
  const undo = restrictAll(file)
  try {
    return openRestricted(file, opening)
  } catch (error) {
    undo()
    throw error
  }
}

function openRestricted(file: string, { maxSize, isFirst }: Omit<Opening, 'former'>): DatabaseSync {
  const db = new DatabaseSync(file)
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY.start}`)
    const version = checkOwner(db)
    // Before anything is in it.
    if (version === 0) db.exec('PRAGMA auto_vacuum = INCREMENTAL')
    const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode']
    if (mode !== 'wal' && file !== MEMORY)
      throw new StoreFault('path', `its file system allows no write-ahead log (${mode})`)
    // What is deleted is gone from the file, too: `FAST` would leave messages of some kB in its free pages.
    db.exec('PRAGMA secure_delete = ON')
    db.exec(`PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${LOG_LIMIT}; PRAGMA temp_store = MEMORY`)
    migrate(db, version)
    if (isFirst) checkWhole(db)
    if (isFirst) db.exec(FORGET_RUNNING)
    limitSize(db, maxSize)
    db.exec(`PRAGMA busy_timeout = ${BUSY.serving}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Puts a damaged file aside, what belongs to it first; gives the name that it has now. */
export function replaceDamaged(file: string): string {
  const aside = `${file}.damaged-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
  for (const suffix of [...COMPANIONS, '']) {
    if (statSync(`${file}${suffix}`, { throwIfNoEntry: false })) renameSync(`${file}${suffix}`, `${aside}${suffix}`)
  }
  return aside
}

/**
 * Removes the log of a file that is not there any more: SQLite would write it into the one that is. Its index goes also where
 * the log is gone already: who still has the former file goes on in it. Another log is that of the file that is there.
 */
function removeStale(file: string, former: Place | undefined) {
  const identity = identityOf(file)
  if (identity !== NONE) {
    if (!former || former.identity === identity) return
    if (![NONE, former.log].includes(logOf(file))) return
  }
  for (const suffix of COMPANIONS) rmSync(`${file}${suffix}`, { force: true })
}

const NONE = 'none'

/** Which log there is. */
const logOf = (file: string): string => identityOf(`${file}-wal`)

/** Which file there is under this name: another where it was deleted or replaced, as long as somebody has the former open. */
export function identityOf(file: string): string {
  if (file === MEMORY) return MEMORY
  const found = statSync(file, { bigint: true, throwIfNoEntry: false })
  return found ? `${found.dev}:${found.ino}` : NONE
}

/** Writes the log back into the file, and closes it. */
export function closeDatabase(db: DatabaseSync): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    // It stays in the log, where the next start finds it.
    if (faultOf(error).word === 'bug') throw error
  } finally {
    db.close()
  }
}
