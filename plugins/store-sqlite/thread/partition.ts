// A partition of the store in SQL, inside the transaction of its operation.
import type { DatabaseSync, SqlValue } from 'node:sqlite'
import {
  type LogPage,
  type LogQuery,
  type Members,
  type PartitionState,
  type Query,
  type RecordState,
  type SetQuery,
  scoreAt,
} from '../../../core/store.ts'

/** Early versions of `node:sqlite` end a text at its first NUL, so such a text is stored as bytes. */
const bound = (text: string): string | Uint8Array => (text.includes('\0') ? Buffer.from(text) : text)

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value instanceof Uint8Array ? Buffer.from(value).toString() : String(value)
}

/** Files of earlier versions are refused. */
export const SCHEMA_VERSION = 6

/** Triggers delete the members of a set and the messages of a log with their row. */
export const SCHEMA = `
CREATE TABLE probe (id INTEGER PRIMARY KEY, filler BLOB);

CREATE TABLE records (
  id INTEGER PRIMARY KEY, partition TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, fields TEXT NOT NULL,
  expires INTEGER, UNIQUE (partition, name)
);
CREATE INDEX records_by_end ON records (expires) WHERE expires IS NOT NULL;

CREATE TABLE sorted_sets (
  id INTEGER PRIMARY KEY, partition TEXT NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL, expires INTEGER,
  UNIQUE (partition, name)
);
CREATE INDEX sorted_sets_by_end ON sorted_sets (expires) WHERE expires IS NOT NULL;
CREATE TABLE members (
  sorted_set INTEGER, member BLOB, score REAL NOT NULL, PRIMARY KEY (sorted_set, member)
) WITHOUT ROWID;
CREATE INDEX members_by_score ON members (sorted_set, score);
CREATE TRIGGER sorted_set_goes AFTER DELETE ON sorted_sets BEGIN
  DELETE FROM members WHERE sorted_set = old.id;
END;

CREATE TABLE logs (
  id INTEGER PRIMARY KEY, partition TEXT NOT NULL, name TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
  bytes INTEGER NOT NULL, expires INTEGER, UNIQUE (partition, name)
);
CREATE INDEX logs_by_end ON logs (expires) WHERE expires IS NOT NULL;
-- With ids of their own: texts of a thousand bytes would have a page each in a table without.
CREATE TABLE messages (id INTEGER PRIMARY KEY, log INTEGER NOT NULL, number INTEGER NOT NULL, message TEXT NOT NULL);
CREATE UNIQUE INDEX messages_of_log ON messages (log, number);
CREATE TRIGGER log_goes AFTER DELETE ON logs BEGIN
  DELETE FROM messages WHERE log = old.id;
END;
`

interface SetRow {
  readonly id: number
  size: number
  expires: number | null
  isChanged?: boolean
}

interface LogRow {
  readonly id: number
  first: number
  last: number
  bytes: number
  expires: number | null
  isChanged?: boolean
}

export function prepareStore(db: DatabaseSync) {
  const named = (columns: string, table: string) =>
    db.prepare(`SELECT ${columns} FROM ${table} WHERE partition = ? AND name = ?`)
  const drop = (table: string) => db.prepare(`DELETE FROM ${table} WHERE partition = ? AND name = ?`)
  const members = (order: '' | 'DESC') =>
    db.prepare(`SELECT member, score FROM members WHERE sorted_set = ? AND score >= ? AND score <= ?
      ORDER BY score ${order}, member ${order} LIMIT ?`)
  return {
    record: named('version, fields, expires', 'records'),
    putRecord: db.prepare(`INSERT INTO records (partition, name, version, fields, expires) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (partition, name) DO UPDATE
      SET version = excluded.version, fields = excluded.fields, expires = excluded.expires`),
    expireRecord: db.prepare('UPDATE records SET expires = ? WHERE partition = ? AND name = ?'),
    dropRecord: drop('records'),
    set: named('id, size, expires', 'sorted_sets'),
    addSet: db.prepare('INSERT INTO sorted_sets (partition, name, size) VALUES (?, ?, 0)'),
    saveSet: db.prepare('UPDATE sorted_sets SET size = ?, expires = ? WHERE id = ?'),
    dropSet: drop('sorted_sets'),
    score: db.prepare('SELECT score FROM members WHERE sorted_set = ? AND member = ?'),
    below: db.prepare('SELECT count(*) AS n FROM members WHERE sorted_set = ? AND score < ?'),
    putMember: db.prepare('INSERT OR REPLACE INTO members VALUES (?, ?, ?)'),
    removeMember: db.prepare('DELETE FROM members WHERE sorted_set = ? AND member = ?'),
    removeLowest: db.prepare(`DELETE FROM members WHERE sorted_set = ? AND member IN
      (SELECT member FROM members WHERE sorted_set = ? ORDER BY score, member LIMIT ?)`),
    ascending: members(''),
    descending: members('DESC'),
    log: named('id, first, last, bytes, expires', 'logs'),
    addLog: db.prepare('INSERT INTO logs (partition, name, first, last, bytes) VALUES (?, ?, 1, 0, 0)'),
    saveLog: db.prepare('UPDATE logs SET first = ?, last = ?, bytes = ?, expires = ? WHERE id = ?'),
    dropLog: drop('logs'),
    message: db.prepare('SELECT message FROM messages WHERE log = ? AND number = ?'),
    size: db.prepare('SELECT octet_length(message) AS bytes FROM messages WHERE log = ? AND number = ?'),
    append: db.prepare('INSERT INTO messages (log, number, message) VALUES (?, ?, ?)'),
    removeTo: db.prepare('DELETE FROM messages WHERE log = ? AND number < ?'),
    after: db.prepare('SELECT message FROM messages WHERE log = ? AND number > ? ORDER BY number'),
  }
}

export type StoreStatements = ReturnType<typeof prepareStore>

export class SqlPartition implements PartitionState {
  readonly #sql: StoreStatements
  readonly #partition: SqlValue
  readonly #now: number
  readonly #records = new Map<string, RecordState | undefined>()
  readonly #sets = new Map<string, SetRow | undefined>()
  readonly #logs = new Map<string, LogRow | undefined>()

  constructor(sql: StoreStatements, partition: string, now: number) {
    this.#sql = sql
    this.#partition = bound(partition)
    this.#now = now
  }

  /** Writes the numbers of sets and logs. Must be called after the last change. */
  save() {
    for (const set of this.#sets.values()) if (set?.isChanged) this.#sql.saveSet.run(set.size, set.expires, set.id)
    for (const log of this.#logs.values()) {
      if (log?.isChanged) this.#sql.saveLog.run(log.first, log.last, log.bytes, log.expires, log.id)
    }
  }

  #isOver = (expires: number | null | undefined) => typeof expires === 'number' && expires <= this.#now

  record(name: string): RecordState | undefined {
    if (!this.#records.has(name)) this.#records.set(name, this.#readRecord(name))
    return this.#records.get(name)
  }

  #readRecord(name: string): RecordState | undefined {
    const row = this.#sql.record.get(this.#partition, bound(name)) as
      | { readonly version: number; readonly fields: string; readonly expires: number | null }
      | undefined
    if (!row || this.#isOver(row.expires)) return undefined
    return { version: row.version, fields: JSON.parse(row.fields), expires: row.expires ?? undefined }
  }

  putRecord(name: string, record: RecordState | undefined) {
    const before = this.record(name)
    const kept = this.#isOver(record?.expires) ? undefined : record
    this.#records.set(name, kept)
    if (!kept) this.#sql.dropRecord.run(this.#partition, bound(name))
    else {
      const { version, fields, expires = null } = kept
      if (before?.version === version) this.#sql.expireRecord.run(expires, this.#partition, bound(name))
      else this.#sql.putRecord.run(this.#partition, bound(name), version, JSON.stringify(fields), expires)
    }
  }

  #setOf(name: string): SetRow | undefined {
    if (!this.#sets.has(name)) {
      this.#sets.set(name, this.#sql.set.get(this.#partition, bound(name)) as SetRow | undefined)
    }
    const set = this.#sets.get(name)
    return set && !this.#isOver(set.expires) ? set : undefined
  }

  scoreOf(name: string, member: string): number | undefined {
    const set = this.#setOf(name)
    const found = set && this.#sql.score.get(set.id, Buffer.from(member))
    return found && Number(found['score'])
  }

  count(name: string, from: number): number {
    const set = this.#setOf(name)
    if (!set) return 0
    return from === Number.NEGATIVE_INFINITY ? set.size : set.size - Number(this.#sql.below.get(set.id, from)?.['n'])
  }

  putMember(name: string, member: string, score: number) {
    const set = this.#setOf(name) ?? this.#addSet(name)
    const before = this.#sql.score.get(set.id, Buffer.from(member))?.['score']
    if (before === score) return
    this.#sql.putMember.run(set.id, Buffer.from(member), score)
    if (before === undefined) this.#resize(name, set, 1)
  }

  #addSet(name: string): SetRow {
    this.deleteSet(name)
    const { lastInsertRowid } = this.#sql.addSet.run(this.#partition, bound(name))
    const set: SetRow = { id: Number(lastInsertRowid), size: 0, expires: null }
    this.#sets.set(name, set)
    return set
  }

  #resize(name: string, set: SetRow, change: number | bigint) {
    set.size += Number(change)
    set.isChanged = true
    if (set.size === 0) this.deleteSet(name)
  }

  removeMember(name: string, member: string) {
    const set = this.#setOf(name)
    if (set) this.#resize(name, set, -Number(this.#sql.removeMember.run(set.id, Buffer.from(member)).changes))
  }

  removeLowest(name: string, count: number) {
    const set = this.#setOf(name)
    if (set && count > 0) this.#resize(name, set, -Number(this.#sql.removeLowest.run(set.id, set.id, count).changes))
  }

  deleteSet(name: string) {
    this.#sql.dropSet.run(this.#partition, bound(name))
    this.#sets.set(name, undefined)
  }

  expireSet(name: string, at: number) {
    const set = this.#setOf(name)
    if (set) Object.assign(set, { expires: at, isChanged: true })
  }

  #members({ sortedSet, from, to, reverse = false, limit }: SetQuery): Members {
    const now = this.#now
    const set = this.#setOf(sortedSet)
    if (!set) return { members: [], size: 0, now }
    const lowest = from === undefined ? Number.NEGATIVE_INFINITY : scoreAt(from, now)
    const highest = to === undefined ? Number.POSITIVE_INFINITY : scoreAt(to, now)
    const rows = (reverse ? this.#sql.descending : this.#sql.ascending).all(set.id, lowest, highest, limit)
    return {
      members: rows.map(({ member, score }) => ({ member: textOf(member), score: Number(score) })),
      size: set.size,
      now,
    }
  }

  #logOf(name: string): LogRow | undefined {
    if (!this.#logs.has(name)) {
      this.#logs.set(name, this.#sql.log.get(this.#partition, bound(name)) as LogRow | undefined)
    }
    const log = this.#logs.get(name)
    return log && !this.#isOver(log.expires) ? log : undefined
  }

  #addLog(name: string): LogRow {
    this.deleteLog(name)
    const { lastInsertRowid } = this.#sql.addLog.run(this.#partition, bound(name))
    const log: LogRow = { id: Number(lastInsertRowid), first: 1, last: 0, bytes: 0, expires: null }
    this.#logs.set(name, log)
    return log
  }

  lastOf = (name: string): number => this.#logOf(name)?.last ?? 0

  messageAt(name: string, number: number): string | undefined {
    const log = this.#logOf(name)
    const row = log && this.#sql.message.get(log.id, number)
    return row && textOf(row['message'])
  }

  resetLog(name: string, last: number) {
    const log = this.#logOf(name) ?? this.#addLog(name)
    this.#sql.removeTo.run(log.id, log.last + 1)
    Object.assign(log, { first: last + 1, last, bytes: 0, isChanged: true })
  }

  appendTo(name: string, message: string) {
    const log = this.#logOf(name) ?? this.#addLog(name)
    this.#sql.append.run(log.id, ++log.last, bound(message))
    Object.assign(log, { bytes: log.bytes + Buffer.byteLength(message), isChanged: true })
  }

  trimLog(name: string, { messages, bytes }: { readonly messages: number; readonly bytes: number }) {
    const log = this.#logOf(name)
    if (!log) return
    const { first } = log
    while (log.first < log.last && (log.last - log.first + 1 > messages || log.bytes > bytes)) {
      log.bytes -= Number(this.#sql.size.get(log.id, log.first)?.['bytes'])
      log.first++
    }
    if (log.first === first) return
    log.isChanged = true
    this.#sql.removeTo.run(log.id, log.first)
  }

  deleteLog(name: string) {
    this.#sql.dropLog.run(this.#partition, bound(name))
    this.#logs.set(name, undefined)
  }

  expireLog(name: string, at: number) {
    const log = this.#logOf(name)
    if (log) Object.assign(log, { expires: at, isChanged: true })
  }

  #page({ log: name, after, bytes = Number.POSITIVE_INFINITY }: LogQuery): LogPage | undefined {
    const log = this.#logOf(name)
    if (!log) return undefined
    const { last } = log
    if (after > last || after < log.first - 1) return { last, messages: undefined }
    const messages: string[] = []
    let sum = 0
    for (const row of bytes > 0 ? this.#sql.after.iterate(log.id, after) : []) {
      const message = textOf(row['message'])
      sum += Buffer.byteLength(message)
      if (messages.length > 0 && sum > bytes) break
      messages.push(message)
    }
    return { last, messages }
  }

  answer(query: Query): unknown {
    if ('log' in query) return this.#page(query)
    if ('sortedSet' in query) return this.#members(query)
    const found = this.record(query.record)
    return found && { ...found, now: this.#now }
  }
}
