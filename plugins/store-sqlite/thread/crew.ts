// Restricts the file to the processes of one `mcp-host start` (a crew), with SQLite locks on a lock file.
import { DatabaseSync } from 'node:sqlite'
import { createPrivate, identityOf, restrict } from './database.ts'
import { faultOf, StoreFault } from './messages.ts'

/** Lock timeouts, milliseconds: the first process can check a large file, and an ending crew needs a moment. */
const PATIENCE = { same: 60_000, other: 2_000 }

function nameIn(db: DatabaseSync): string | undefined {
  const table = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'crew'").get()
  return table && (db.prepare('SELECT name FROM crew').get()?.['name'] as string | undefined)
}

function hold(db: DatabaseSync, crew: string): boolean {
  db.exec(`PRAGMA busy_timeout = ${PATIENCE.same}; BEGIN`)
  if (nameIn(db) === crew) return true
  db.exec('ROLLBACK')
  return false
}

/** Tries to lock out other crews. Returns false if they hold the lock for longer than `patience`. */
function lockOut(db: DatabaseSync, patience: number): boolean {
  try {
    db.exec(`PRAGMA busy_timeout = ${patience}; BEGIN EXCLUSIVE`)
    return true
  } catch (error) {
    if (faultOf(error).word === 'locked') return false
    throw error
  }
}

function begin<Value>(db: DatabaseSync, crew: string, prepare: () => Value): { readonly value: Value } {
  const value = prepare()
  db.exec('CREATE TABLE IF NOT EXISTS crew (name TEXT NOT NULL); DELETE FROM crew')
  db.prepare('INSERT INTO crew VALUES (?)').run(crew)
  db.exec('COMMIT')
  return { value }
}

function holdOrBegin<Value>(
  db: DatabaseSync,
  crew: string,
  prepare: () => Value,
): { readonly value: Value } | undefined {
  let begun = lockOut(db, 0) ? begin(db, crew, prepare) : undefined
  if (hold(db, crew)) return begun
  // Another crew took the file in between, or still has it but is possibly ending.
  begun = !begun && lockOut(db, PATIENCE.other) ? begin(db, crew, prepare) : undefined
  if (begun && hold(db, crew)) return begun
  throw new StoreFault('crew', `another host has it (${nameIn(db) ?? 'it does not say which'})`)
}

/** Runs `act` while no other process of the crew runs one, if the lock file is unchanged. */
function alone<Value>(file: string, lock: string, act: () => Value): Value {
  const db = new DatabaseSync(file)
  try {
    db.exec(`PRAGMA busy_timeout = ${PATIENCE.same}; BEGIN IMMEDIATE`)
    if (identityOf(file) !== lock) throw new StoreFault('path', `${file} was replaced just now`)
    return act()
  } finally {
    db.close()
  }
}

/** Joins a crew. Throws a StoreFault `crew` if another crew has the file. `prepare` runs in one process at a time. */
export function joinCrew<Value>(file: string, crew: string, prepare: (isFirst: boolean) => Value) {
  createPrivate(file)
  restrict(file)
  // Read before opening, to detect a replacement.
  const lock = identityOf(file)
  const db = new DatabaseSync(file)
  try {
    const begun = holdOrBegin(db, crew, () => prepare(true))
    const value = begun ? begun.value : alone(file, lock, () => prepare(false))
    return { value, lock, leave: () => db.close() }
  } catch (error) {
    db.close()
    throw error
  }
}
