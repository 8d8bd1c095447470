// Operations on streams; each runs within a transaction. A repeated append is stored once.
import type { DatabaseSync } from 'node:sqlite'
import type { StoreBounds } from './bounds.ts'
import { bound, textOf } from './texts.ts'

export interface RowWriter {
  readonly epoch: number
  readonly facts: string
  readonly bus: string
  readonly finished: boolean
}

interface Found {
  readonly id: number
  readonly epoch: number
  readonly facts: string
  readonly before: string | null
  readonly last: number
  readonly entries: number
  readonly bytes: number
  readonly bus: string
  readonly finished: number
  readonly expires: number
}

type Known = Pick<Found, 'id' | 'last' | 'entries' | 'bytes' | 'bus' | 'finished' | 'expires'>

const stateOf = ({ facts, last, finished, epoch, bus }: Found) => ({
  facts,
  last,
  finished: finished === 1,
  epoch,
  bus,
})

export function eventOperations(db: DatabaseSync, { ttl, maxEvents, maxBytes }: StoreBounds) {
  const sql = {
    find: db.prepare('SELECT * FROM streams WHERE session = ? AND name = ? AND expires > ?'),
    names: db.prepare('SELECT id FROM streams WHERE session = ?'),
    named: db.prepare('SELECT id FROM streams WHERE session = ? AND name = ?'),
    forget: db.prepare('DELETE FROM streams WHERE id = ?'),
    begin: db.prepare(`INSERT INTO streams (session, name, epoch, facts, last, entries, bytes, bus, finished, expires)
      VALUES (?, ?, ?, ?, ?, 0, 0, '', 0, ?)`),
    restart: db.prepare('UPDATE streams SET epoch = ?, facts = ?, last = ?, entries = 0, bytes = 0 WHERE id = ?'),
    pass: db.prepare('UPDATE streams SET epoch = ?, facts = ? WHERE id = ?'),
    claim: db.prepare('UPDATE streams SET epoch = ?, facts = ?, before = ? WHERE id = ?'),
    note: db.prepare('UPDATE streams SET bus = ?, finished = ?, expires = ? WHERE id = ?'),
    count: db.prepare('UPDATE streams SET last = ?, entries = ?, bytes = ? WHERE id = ?'),
    add: db.prepare('INSERT INTO events (stream, seq, message) VALUES (?, ?, ?)'),
    one: db.prepare('SELECT message FROM events WHERE stream = ? AND seq = ?'),
    oldest: db.prepare('SELECT seq, octet_length(message) AS bytes FROM events WHERE stream = ? ORDER BY seq LIMIT 1'),
    remove: db.prepare('DELETE FROM events WHERE stream = ? AND seq = ?'),
    clear: db.prepare('DELETE FROM events WHERE stream = ?'),
    after: db.prepare('SELECT count(*) AS n FROM events WHERE stream = ? AND seq > ?'),
  }
  const find = (session: string, name: string) => sql.find.get(session, name, Date.now()) as Found | undefined

  function forget(id: number) {
    sql.clear.run(id)
    sql.forget.run(id)
  }

  function begin(session: string, name: string, { epoch, facts }: RowWriter, last: number): Known {
    const old = sql.named.get(session, name)
    if (old) forget(Number(old['id']))
    const expires = Date.now() + ttl
    const { lastInsertRowid } = sql.begin.run(session, name, epoch, facts, last, expires)
    return { id: Number(lastInsertRowid), last, entries: 0, bytes: 0, bus: '', finished: 0, expires }
  }

  /** The stream as its writer knows it; a gap shows if the store has less. */
  function establish(session: string, name: string, found: Found | undefined, writer: RowWriter, known: number): Known {
    if (!found) return begin(session, name, writer, known)
    if (found.last >= known) {
      if (found.epoch < writer.epoch) sql.pass.run(writer.epoch, writer.facts, found.id)
      return found
    }
    sql.clear.run(found.id)
    sql.restart.run(writer.epoch, writer.facts, known, found.id)
    return { ...found, last: known, entries: 0, bytes: 0 }
  }

  /** Writes only if something changed or 1 % of the lifetime has passed. */
  function note({ id, bus, finished, expires }: Known, writer: RowWriter) {
    const until = Date.now() + ttl
    const isNew = (writer.bus !== '' && writer.bus !== bus) || (writer.finished && !finished)
    if (!isNew && until - expires < ttl / 100) return
    sql.note.run(writer.bus === '' ? bus : writer.bus, finished || writer.finished ? 1 : 0, until, id)
  }

  function trim(id: number, given: { entries: number; bytes: number }) {
    let { entries, bytes } = given
    while (entries > 1 && (entries > maxEvents || bytes > maxBytes)) {
      const oldest = sql.oldest.get(id)
      if (!oldest) break
      sql.remove.run(id, Number(oldest['seq']))
      bytes -= Number(oldest['bytes'])
      entries--
    }
    return { entries, bytes }
  }

  function take({ id, last }: Found, seq: number, most: number) {
    const events: Array<{ readonly seq: number; readonly message: string }> = []
    for (let next = seq + 1, bytes = 0; next <= last; next++) {
      const message = textOf(sql.one.get(id, next)?.['message'])
      bytes += Buffer.byteLength(message)
      if (events.length > 0 && bytes > most) break
      events.push({ seq: next, message })
    }
    return events
  }

  return {
    appendEvent(session: string, name: string, message: string, known: number, writer: RowWriter) {
      const found = find(session, name)
      if (found && found.epoch > writer.epoch) return 'fenced' as const
      const seq = known + 1
      if (found && found.last > known) {
        const stored = sql.one.get(found.id, seq)
        if (stored && textOf(stored['message']) !== message) return 'taken' as const
        note(found, { ...writer, bus: '', finished: writer.finished })
        return seq
      }
      const stream = establish(session, name, found, writer, known)
      sql.add.run(stream.id, seq, bound(message))
      const bytes = stream.bytes + Buffer.byteLength(message)
      const left = trim(stream.id, { entries: stream.entries + 1, bytes })
      sql.count.run(seq, left.entries, left.bytes, stream.id)
      note(stream, writer)
      return seq
    },
    openStream(session: string, name: string, writer: RowWriter, known: number) {
      const found = find(session, name)
      if (found && found.epoch > writer.epoch) return 'fenced' as const
      note(establish(session, name, found, writer, known), found ? { ...writer, bus: '' } : writer)
      return 'open' as const
    },
    claimStream(session: string, name: string, writer: RowWriter) {
      const found = find(session, name)
      if (!found) return undefined
      if (found.epoch > writer.epoch) return 'fenced' as const
      const isAgain = found.epoch === writer.epoch
      if (isAgain && found.facts !== writer.facts) return 'fenced' as const
      const facts = isAgain ? (found.before ?? found.facts) : found.facts
      if (!isAgain) sql.claim.run(writer.epoch, writer.facts, facts, found.id)
      note(found, { ...writer, bus: '', finished: false })
      return { ...stateOf(found), facts, epoch: writer.epoch }
    },
    finishStream(session: string, name: string, writer: RowWriter) {
      const found = find(session, name)
      if (found && found.epoch > writer.epoch) return 'fenced' as const
      if (found) note(found, { ...writer, finished: true })
      return 'finished' as const
    },
    streamState(session: string, name: string) {
      const found = find(session, name)
      return found && stateOf(found)
    },
    /** Undefined if an event after `seq` is gone. */
    eventsAfter(session: string, name: string, seq: number, most = Number.POSITIVE_INFINITY) {
      const found = find(session, name)
      if (!found || seq > found.last) return undefined
      if (Number(sql.after.get(found.id, seq)?.['n']) !== found.last - seq) return undefined
      return most === 0 ? [] : take(found, seq, most)
    },
    dropStream(session: string, name: string) {
      const found = sql.named.get(session, name)
      if (found) forget(Number(found['id']))
    },
    dropStreams(session: string) {
      for (const { id } of sql.names.all(session)) forget(Number(id))
    },
  }
}
