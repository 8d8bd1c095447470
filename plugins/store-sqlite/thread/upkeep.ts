// Deletes expired rows, and the least recently written logs of a nearly full file, in small transactions.
import type { DatabaseSync } from 'node:sqlite'
import { numberOf } from './database.ts'
import { faultOf } from './messages.ts'

/** Maximum rows of a table per step. */
const STEP = 300
/** Share of `maxSize` above which logs are deleted. */
const NEARLY_FULL = 0.8
/** Pages returned to the file system per step, if enough are free. */
const PAGES_BACK = 256
const FREE_PAGES = 1_024

function prepareUpkeep(db: DatabaseSync) {
  const past = (table: string) =>
    db.prepare(
      `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE expires <= ? ORDER BY expires LIMIT ${STEP})`,
    )
  return {
    records: past('records'),
    sets: past('sorted_sets'),
    oldestLog: db.prepare(
      'SELECT id, first, last, expires FROM logs WHERE expires IS NOT NULL ORDER BY expires LIMIT 1',
    ),
    messages: db.prepare('DELETE FROM messages WHERE log = ? AND number < ? RETURNING octet_length(message) AS bytes'),
    shorten: db.prepare('UPDATE logs SET first = ?, bytes = bytes - ? WHERE id = ?'),
    log: db.prepare('DELETE FROM logs WHERE id = ?'),
  }
}

type Statements = ReturnType<typeof prepareUpkeep>

interface OldestLog {
  readonly id: number
  readonly first: number
  readonly last: number
  readonly expires: number
}

/** Deletes the least recently written logs first, and their oldest messages first. */
function dropOldestLogs(sql: Statements, isToGo: (expires: number) => boolean) {
  let rows = 0
  let logs = 0
  while (rows < STEP) {
    const oldest = sql.oldestLog.get() as OldestLog | undefined
    if (!oldest || !isToGo(oldest.expires)) break
    const { id, first, last } = oldest
    const next = Math.min(last + 1, first + STEP - rows)
    const bytes = sql.messages.all(id, next).reduce((sum, row) => sum + Number(row['bytes']), 0)
    rows += next - first + 1
    if (next <= last) sql.shorten.run(next, bytes, id)
    else {
      sql.log.run(id)
      logs++
    }
  }
  return { rows, logs }
}

/** Returns pages to the file system. Skipped if the file is locked. */
function giveBack(db: DatabaseSync) {
  try {
    db.exec(`PRAGMA incremental_vacuum(${PAGES_BACK})`)
  } catch (error) {
    if (faultOf(error).word !== 'locked') throw error
  }
}

export function createUpkeep(db: DatabaseSync, maxSize: number, write: (act: () => void) => void) {
  const sql = prepareUpkeep(db)
  const pageSize = numberOf(db, 'page_size')
  const free = () => numberOf(db, 'freelist_count')
  const bytes = () => numberOf(db, 'page_count') * pageSize
  const used = () => bytes() - free() * pageSize
  const isNearlyFull = () => used() > maxSize * NEARLY_FULL
  let evicted = 0

  function expire(): boolean {
    const now = Date.now()
    const gone = [sql.records, sql.sets].map(statement => Number(statement.run(now).changes))
    gone.push(dropOldestLogs(sql, expires => expires <= now).rows)
    return gone.some(count => count >= STEP)
  }

  function evict(): boolean {
    const { rows, logs } = dropOldestLogs(sql, isNearlyFull)
    evicted += logs
    return rows >= STEP
  }

  return {
    /** Runs one step. Returns true if there is more to do. */
    step(): boolean {
      let more = false
      write(() => {
        const isMore = expire()
        more = evict() || isMore
      })
      if (free() > FREE_PAGES) giveBack(db)
      return more
    },
    isNearlyFull,
    get evicted() {
      return evicted
    },
    get bytes() {
      return bytes()
    },
  }
}
