// Which processes may have the file: those of one `mcp-host start`. A second small file beside it has the name of their crew, and
// each of them holds a shared lock on it for as long as it lives; whoever is of another crew needs it for itself, to write its own
// name, and does not get it. Locks end with their process, so a kill leaves nothing.
import { DatabaseSync } from 'node:sqlite'
import { createPrivate, identityOf, restrict } from './database.ts'
import { faultOf, StoreFault } from './faults.ts'

/** Milliseconds: the first of a crew may look through a large file; a crew that ends may take a moment. */
const PATIENCE = { same: 60_000, other: 2_000 }

export interface Joined<Value> {
  readonly value: Value
  /** The lock that is held. */
  readonly lock: string
  leave(): void
}

function nameIn(db: DatabaseSync): string | undefined {
  const table = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'crew'").get()
  return table && (db.prepare('SELECT name FROM crew').get()?.['name'] as string | undefined)
}

/** Holds the shared lock where the name is this crew's. */
function hold(db: DatabaseSync, crew: string): boolean {
  db.exec(`PRAGMA busy_timeout = ${PATIENCE.same}; BEGIN`)
  if (nameIn(db) === crew) return true
  db.exec('ROLLBACK')
  return false
}

/** False where others hold it for longer than this. */
function lockOut(db: DatabaseSync, patience: number): boolean {
  try {
    db.exec(`PRAGMA busy_timeout = ${patience}; BEGIN EXCLUSIVE`)
    return true
  } catch (error) {
    if (faultOf(error).word === 'locked') return false
    throw error
  }
}

/** Writes the name; gives what `prepare` does before anybody else can. Whoever catches what it throws closes the file. */
function begin<Value>(db: DatabaseSync, crew: string, prepare: () => Value): { readonly value: Value } {
  const value = prepare()
  db.exec('CREATE TABLE IF NOT EXISTS crew (name TEXT NOT NULL); DELETE FROM crew')
  db.prepare('INSERT INTO crew VALUES (?)').run(crew)
  db.exec('COMMIT')
  return { value }
}

/** Undefined where others of the crew have it already. */
function holdOrBegin<Value>(
  db: DatabaseSync,
  crew: string,
  prepare: () => Value,
): { readonly value: Value } | undefined {
  let begun = lockOut(db, 0) ? begin(db, crew, prepare) : undefined
  if (hold(db, crew)) return begun
  // Between writing the name and holding the lock another crew came, or there is one, which may be about to end.
  begun = !begun && lockOut(db, PATIENCE.other) ? begin(db, crew, prepare) : undefined
  if (begun && hold(db, crew)) return begun
  throw new StoreFault('crew', `another host has it (${nameIn(db) ?? 'it does not say which'})`)
}

/** What `act` does while no other process of the crew does so, as long as the lock is the one that it holds. */
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

/** Joins the crew, or begins it. Throws a StoreFault `crew` where another has the file. `prepare`: whether this is the first; one at a time. */
export function joinCrew<Value>(file: string, crew: string, prepare: (isFirst: boolean) => Value): Joined<Value> {
  createPrivate(file)
  restrict(file)
  // Before it is opened: where it is replaced in between this is not the one that is there, and it is joined again.
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
