// Limits bytes and number of sessions: evicts idle sessions of the largest owner first.
import type { DatabaseSync } from 'node:sqlite'
import { boundsOfSessions, type StoreBounds } from './bounds.ts'

/** How long an ended session is remembered, milliseconds: if a node may have a copy, and if none does. */
const ENDED_LIFETIME = { copied: 3_600_000, alone: 60_000 }
const MOST_VICTIMS = 200

export interface Ended {
  readonly digest: string
  readonly holder: string
  readonly nodes: readonly string[]
}

export type Lack = 'owner' | 'all' | undefined

export interface Room {
  readonly ended: readonly Ended[]
  readonly lack: Lack
}

interface SessionRoom {
  /** `nodes`: other nodes with copies; undefined: unknown. */
  end(digest: string, nodes: readonly string[] | undefined): void
  isBusy(id: number): boolean
  make(need: { readonly holder: string; readonly bytes: number; readonly digest: string }, node: string): Room
  trim(maxIdle: number, node: string): readonly Ended[]
}

export function createSessionRoom(db: DatabaseSync, bounds: Pick<StoreBounds, 'maxSize'>): SessionRoom {
  const most = boundsOfSessions(bounds)
  const tally = (name: string, column: string) =>
    db.prepare(`SELECT ${column} AS n FROM tallies WHERE name = '${name}'`)
  const sql = {
    all: tally('sessions', 'bytes'),
    idle: tally('idle', 'entries'),
    endedCount: tally('ended', 'entries'),
    owner: db.prepare('SELECT bytes AS n FROM holders WHERE holder = ?'),
    idlest: db.prepare('SELECT holder FROM idle_holders ORDER BY sessions DESC LIMIT 1'),
    largest: db.prepare('SELECT holder FROM idle_holders ORDER BY bytes DESC LIMIT 1'),
    longestIdle: db.prepare(
      `SELECT id, digest FROM sessions WHERE holder = ? AND idle_since IS NOT NULL AND digest <> ?
       ORDER BY idle_since, id LIMIT 1`,
    ),
    isBusy: db.prepare(
      `SELECT 1 WHERE EXISTS (SELECT 1 FROM requests WHERE session = ?)
       OR EXISTS (SELECT 1 FROM uses WHERE session = ? AND until > ?)`,
    ),
    busy: db.prepare('UPDATE sessions SET idle_since = NULL WHERE id = ?'),
    copies: db.prepare('SELECT node FROM copies WHERE session = ? AND node <> ?'),
    drop: db.prepare('DELETE FROM sessions WHERE digest = ?'),
    note: db.prepare('INSERT INTO ended VALUES (?, ?) ON CONFLICT DO UPDATE SET expires = excluded.expires'),
    forget: db.prepare('DELETE FROM ended WHERE digest IN (SELECT digest FROM ended ORDER BY expires LIMIT ?)'),
  }
  const isBusy = (id: number) => sql.isBusy.get(id, id, Date.now()) !== undefined
  function end(digest: string, nodes: readonly string[] | undefined) {
    sql.drop.run(digest)
    const lifetime = nodes?.length === 0 ? ENDED_LIFETIME.alone : ENDED_LIFETIME.copied
    sql.note.run(digest, Date.now() + lifetime)
    const tooMany = Number(sql.endedCount.get()?.['n']) - most.ended
    if (tooMany > 0) sql.forget.run(tooMany)
  }

  function endIdle(holder: string, node: string, except: string): Ended | undefined {
    for (;;) {
      const found = sql.longestIdle.get(holder, except) as { readonly id: number; readonly digest: string } | undefined
      if (!found) return undefined
      const { id, digest } = found
      if (isBusy(id)) sql.busy.run(id)
      else {
        const nodes = sql.copies.all(id, node).map(one => String(one['node']))
        end(digest, nodes)
        return { digest, holder, nodes }
      }
    }
  }

  const all = () => Number(sql.all.get()?.['n'])
  const ownerOf = (row: Record<string, unknown> | undefined) => row && String(row['holder'])

  return {
    end,
    isBusy,
    make({ holder, bytes, digest }, node) {
      const ended: Ended[] = []
      const own = () => Number(sql.owner.get(holder)?.['n'] ?? 0)
      while (ended.length < MOST_VICTIMS) {
        const lack = own() + bytes > most.owner ? 'owner' : all() + bytes > most.all ? 'all' : undefined
        const victim = lack === 'owner' ? holder : lack && ownerOf(sql.largest.get())
        const gone = victim === undefined ? undefined : endIdle(victim, node, digest)
        if (!gone) return { ended, lack }
        ended.push(gone)
      }
      return { ended, lack: undefined }
    },
    trim(maxIdle, node) {
      const ended: Ended[] = []
      while (ended.length < MOST_VICTIMS) {
        const tooMany = Number(sql.idle.get()?.['n']) > maxIdle
        const victim = tooMany ? sql.idlest.get() : all() > most.all ? sql.largest.get() : undefined
        if (!victim) break
        const gone = endIdle(String(victim['holder']), node, '')
        if (gone) ended.push(gone)
      }
      return ended
    },
  }
}
