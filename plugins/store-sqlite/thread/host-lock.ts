// Restricts the file to the processes of one `mcp-host start` (a host), with SQLite locks on a lock file.
import { DatabaseSync } from 'node:sqlite'
import { createPrivate, readIdentity, restrictAccess } from './database.ts'
import { StoreFailure, toFailure } from './messages.ts'

/** Lock timeouts, milliseconds: the first process can check a large file, and an ending host needs a moment. */
const TIMEOUTS = { same: 60_000, other: 2_000 }

function readHostId(db: DatabaseSync): string | undefined {
  const table = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'crew'").get()
  return table && (db.prepare('SELECT name FROM crew').get()?.['name'] as string | undefined)
}

function holdLock(db: DatabaseSync, hostId: string): boolean {
  db.exec(`PRAGMA busy_timeout = ${TIMEOUTS.same}; BEGIN`)
  if (readHostId(db) === hostId) return true
  db.exec('ROLLBACK')
  return false
}

/** Tries to lock out other hosts. Returns false if one holds the lock for longer than `timeout`. */
function lockExclusively(db: DatabaseSync, timeout: number): boolean {
  try {
    db.exec(`PRAGMA busy_timeout = ${timeout}; BEGIN EXCLUSIVE`)
    return true
  } catch (error) {
    if (toFailure(error).code === 'locked') return false
    throw error
  }
}

function claimLock<Value>(db: DatabaseSync, hostId: string, prepare: () => Value): { readonly value: Value } {
  const value = prepare()
  db.exec('CREATE TABLE IF NOT EXISTS crew (name TEXT NOT NULL); DELETE FROM crew')
  db.prepare('INSERT INTO crew VALUES (?)').run(hostId)
  db.exec('COMMIT')
  return { value }
}

function acquireLock<Value>(
  db: DatabaseSync,
  hostId: string,
  prepare: () => Value,
): { readonly value: Value } | undefined {
  let claimed = lockExclusively(db, 0) ? claimLock(db, hostId, prepare) : undefined
  if (holdLock(db, hostId)) return claimed
  // Another host took the file in between, or still has it but is possibly ending.
  claimed = !claimed && lockExclusively(db, TIMEOUTS.other) ? claimLock(db, hostId, prepare) : undefined
  if (claimed && holdLock(db, hostId)) return claimed
  throw new StoreFailure('inUse', `another host has it (${readHostId(db) ?? 'it does not say which'})`)
}

/** Runs `act` while no other process of this host runs one, if the lock file is unchanged. */
function runExclusively<Value>(file: string, lock: string, act: () => Value): Value {
  const db = new DatabaseSync(file)
  try {
    db.exec(`PRAGMA busy_timeout = ${TIMEOUTS.same}; BEGIN IMMEDIATE`)
    if (readIdentity(file) !== lock) throw new StoreFailure('path', `${file} was replaced just now`)
    return act()
  } finally {
    db.close()
  }
}

/** Locks the file for this host. Throws a StoreFailure `inUse` if another host has the file. `prepare` runs in one process at a time. */
export function acquireHostLock<Value>(file: string, hostId: string, prepare: (isFirst: boolean) => Value) {
  createPrivate(file)
  restrictAccess(file)
  // Read before opening, to detect a replacement.
  const lock = readIdentity(file)
  const db = new DatabaseSync(file)
  try {
    const claimed = acquireLock(db, hostId, () => prepare(true))
    const value = claimed ? claimed.value : runExclusively(file, lock, () => prepare(false))
    return { value, lock, leave: () => db.close() }
  } catch (error) {
    db.close()
    throw error
  }
}
