// Deletes expired rows, and the least recently written logs of a nearly full file, in small transactions.
import type { DatabaseSync } from 'node:sqlite'
import { numberOf } from './database.ts'
import { toFailure } from './messages.ts'

/** Maximum rows of a table per step. */
const MAX_ROWS = 300
/** Share of `maxSize` above which logs are deleted. */
const NEARLY_FULL = 0.8
/** Pages returned to the file system per step, if enough are free. */
const PAGES_BACK = 256
const FREE_PAGES = 1_024

function prepareUpkeep(db: DatabaseSync) {
  const deleteExpired = (table: string) =>
    db.prepare(
      `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE expires <= ? ORDER BY expires LIMIT ${MAX_ROWS})`,
    )
  return {
    records: deleteExpired('records'),
    sets: deleteExpired('sorted_sets'),
    oldestLog: db.prepare(
      'SELECT id, first, last, expires FROM logs WHERE expires IS NOT NULL ORDER BY expires LIMIT 1',
    ),
    messages: db.prepare('DELETE FROM messages WHERE log = ? AND number < ? RETURNING octet_length(message) AS bytes'),
    shorten: db.prepare('UPDATE logs SET first = ?, bytes = bytes - ? WHERE id = ?'),
    log: db.prepare('DELETE FROM logs WHERE id = ?'),
  }
}

interface OldestLog {
  readonly id: number
  readonly first: number
  readonly last: number
  readonly expires: number
}

/** Deletes the least recently written logs first, and their oldest messages first. */
function dropOldestLogs(sql: ReturnType<typeof prepareUpkeep>, shouldDrop: (expires: number) => boolean) {
  let rows = 0
  let logs = 0
  while (rows < MAX_ROWS) {
    const oldest = sql.oldestLog.get() as OldestLog | undefined
    if (!oldest || !shouldDrop(oldest.expires)) break
    const { id, first, last } = oldest
    const next = Math.min(last + 1, first + MAX_ROWS - rows)
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
function vacuum(db: DatabaseSync) {
  try {
    db.exec(`PRAGMA incremental_vacuum(${PAGES_BACK})`)
  } catch (error) {
    if (toFailure(error).code !== 'locked') throw error
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
    const deleted = [sql.records, sql.sets].map(statement => Number(statement.run(now).changes))
    deleted.push(dropOldestLogs(sql, expires => expires <= now).rows)
    return deleted.some(count => count >= MAX_ROWS)
  }

  function evict(): boolean {
    const { rows, logs } = dropOldestLogs(sql, isNearlyFull)
    evicted += logs
    return rows >= MAX_ROWS
  }

  return {
    /** Runs one step. Returns true if there is more to do. */
    step(): boolean {
      let more = false
      write(() => {
        const hasMore = expire()
        more = evict() || hasMore
      })
      if (free() > FREE_PAGES) vacuum(db)
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
