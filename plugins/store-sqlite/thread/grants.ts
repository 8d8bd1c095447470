// Operations on grants; each runs within a transaction. A set is a JSON text `[member, expiry, ...]`.
import type { DatabaseSync } from 'node:sqlite'
import type { StoreBounds } from './bounds.ts'
import { bound, textOf } from './texts.ts'

/** Bytes of an entry besides its texts. */
const ENTRY_COST = 500

/** Expired entries deleted at most before another is evicted. */
const SWEPT = 100

/** A key; `pending`: of an unfinished login, which anyone can begin. */
export interface GrantPlace {
  readonly key: string
  readonly pending: boolean
}

type Member = readonly [member: string, until: number]

const textName = (key: string) => `text ${key}`
const setName = (key: string) => `set ${key}`

export function grantOperations(db: DatabaseSync, { pending: most }: StoreBounds) {
  const sql = {
    find: db.prepare('SELECT value FROM grants WHERE name = ? AND ends > ?'),
    drop: db.prepare('DELETE FROM grants WHERE name = ?'),
    remove: db.prepare('DELETE FROM grants WHERE id = ?'),
    add: db.prepare('INSERT INTO grants (name, value, ends, pending, size) VALUES (?, ?, ?, ?, ?)'),
    sweep: db.prepare('DELETE FROM grants WHERE id IN (SELECT id FROM grants WHERE ends <= ? ORDER BY ends LIMIT ?)'),
    tally: db.prepare("SELECT entries, bytes FROM tallies WHERE name = 'pending'"),
    oldest: db.prepare('SELECT id, name FROM grants WHERE pending = 1 ORDER BY id LIMIT 1'),
  }
  const read = (name: string) => {
    const found = sql.find.get(name, Date.now())
    return found && textOf(found['value'])
  }

  function makeRoom(name: string) {
    for (;;) {
      const { entries, bytes } = sql.tally.get() as { readonly entries: number; readonly bytes: number }
      if (entries <= most.entries && bytes <= most.bytes) return
      const oldest = sql.oldest.get() as { readonly id: number; readonly name: string } | undefined
      if (!oldest || oldest.name === name) return
      sql.remove.run(oldest.id)
    }
  }

  /** Returns false, without a change, if it is too large. */
  function write(name: string, pending: boolean, value: string, ttl: number): boolean {
    const size = ENTRY_COST + Buffer.byteLength(value) + 4 * Buffer.byteLength(name)
    if (pending && ttl > 0 && size > most.bytes) return false
    sql.drop.run(name)
    if (ttl <= 0) return true
    if (pending) sql.sweep.run(Date.now(), SWEPT)
    sql.add.run(name, bound(value), Date.now() + ttl, pending ? 1 : 0, size)
    if (pending) makeRoom(name)
    return true
  }

  const drop = (name: string) => void sql.drop.run(name)
  function membersOf(key: string): Member[] {
    const all = JSON.parse(read(setName(key)) ?? '[]') as Member[]
    return all.filter(([, until]) => until > Date.now())
  }

  function save({ key, pending }: GrantPlace, members: readonly Member[]): boolean {
    if (members.length > 0) {
      const last = Math.max(...members.map(([, until]) => until))
      return write(setName(key), pending, JSON.stringify(members), last - Date.now())
    }
    drop(setName(key))
    return true
  }

  return {
    getGrant: (key: string) => read(textName(key)),
    setGrant: ({ key, pending }: GrantPlace, value: string, ttl: number) =>
      write(textName(key), pending, value, ttl) ? ('done' as const) : ('large' as const),
    addGrant({ key, pending }: GrantPlace, value: string, ttl: number) {
      if (read(textName(key)) !== undefined) return 'no' as const
      return write(textName(key), pending, value, ttl) ? ('done' as const) : ('large' as const)
    },
    replaceGrant({ key, pending }: GrantPlace, from: string, to: string, ttl: number) {
      if (read(textName(key)) !== from) return 'no' as const
      return write(textName(key), pending, to, ttl) ? ('done' as const) : ('large' as const)
    },
    takeGrant(key: string) {
      const value = read(textName(key))
      drop(textName(key))
      return value
    },
    deleteGrants(keys: readonly string[]) {
      for (const key of keys) for (const name of [textName(key), setName(key)]) drop(name)
    },
    joinGrants(place: GrantPlace, member: string, ttl: number, most: number) {
      const members = membersOf(place.key)
      const others = members.filter(([name]) => name !== member)
      const before = members.find(([name]) => name === member)?.[1] ?? 0
      const until = Math.max(Date.now() + ttl, before)
      if (until > Date.now()) others.push([member, until])
      const kept = others.slice(Math.max(0, others.length - most))
      return save(place, kept) ? kept.length : ('large' as const)
    },
    leaveGrants(place: GrantPlace, member: string) {
      const members = membersOf(place.key)
      const others = members.filter(([name]) => name !== member)
      return others.length === members.length || save(place, others) ? ('done' as const) : ('large' as const)
    },
    grantMembers: (key: string) => membersOf(key).map(([member]) => member),
  }
}
