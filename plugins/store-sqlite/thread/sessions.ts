// Operations on session records; each runs within a transaction.
import type { DatabaseSync } from 'node:sqlite'
import type { StoreBounds } from './bounds.ts'
import { createSessionRoom, type Ended, type Lack } from './session-room.ts'
import { bound, textOf } from './texts.ts'

/** Expired sessions deleted per step. */
const MOST_EXPIRED = 100

const ROOMY = { ended: [], lack: undefined }

export function sessionOperations(db: DatabaseSync, bounds: Pick<StoreBounds, 'maxSize'>) {
  const room = createSessionRoom(db, bounds)
  const sql = {
    find: db.prepare('SELECT * FROM sessions WHERE digest = ? AND expires > ?'),
    drop: db.prepare('DELETE FROM sessions WHERE digest = ?'),
    grow: db.prepare('UPDATE sessions SET size = size + ? WHERE id = ?'),
    count: db.prepare('SELECT count(*) AS n FROM sessions WHERE holder = ? AND expires > ? AND digest <> ?'),
    add: db.prepare(`INSERT INTO sessions
      (digest, holder, opening, home, version, revision, client, level, watching, watched_bytes, expires, size)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),
    renew: db.prepare('UPDATE sessions SET expires = ? WHERE id = ?'),
    bump: db.prepare('UPDATE sessions SET version = version + 1 WHERE id = ?'),
    level: db.prepare('UPDATE sessions SET level = ? WHERE id = ?'),
    client: db.prepare('UPDATE sessions SET revision = ?, client = ? WHERE id = ?'),
    watching: db.prepare('UPDATE sessions SET watching = watching + ?, watched_bytes = watched_bytes + ? WHERE id = ?'),
    home: db.prepare('UPDATE sessions SET home = ?, version = version + 1 WHERE id = ?'),
    // A session with a stream is in use.
    claim: db.prepare(
      'UPDATE sessions SET stream = ?, stream_node = ?, stream_epoch = ?, idle_since = NULL WHERE id = ?',
    ),
    idle: db.prepare('UPDATE sessions SET idle_since = ?, expires = max(expires, ?) WHERE id = ?'),
    watched: db.prepare('SELECT uri FROM watched WHERE session = ?'),
    watch: db.prepare('INSERT OR IGNORE INTO watched VALUES (?, ?)'),
    isWatched: db.prepare('SELECT 1 FROM watched WHERE session = ? AND uri = ?'),
    unwatch: db.prepare('DELETE FROM watched WHERE session = ? AND uri = ?'),
    copies: db.prepare('SELECT node FROM copies WHERE session = ? AND node <> ?'),
    copy: db.prepare('INSERT OR IGNORE INTO copies VALUES (?, ?)'),
    use: db.prepare('INSERT INTO uses VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET until = excluded.until'),
    unuse: db.prepare('DELETE FROM uses WHERE session = ? AND node = ?'),
    runs: db.prepare('SELECT node FROM requests WHERE session = ? AND request = ?'),
    begin: db.prepare(
      'INSERT INTO requests VALUES (?, ?, ?) ON CONFLICT (session, request) DO UPDATE SET node = excluded.node',
    ),
    beginNew: db.prepare('INSERT OR IGNORE INTO requests VALUES (?, ?, ?)'),
    finish: db.prepare(
      'DELETE FROM requests WHERE session = (SELECT id FROM sessions WHERE digest = ?) AND request = ?',
    ),
    isEnded: db.prepare('SELECT 1 FROM ended WHERE digest = ? AND expires > ?'),
    expiredIdle: db.prepare(
      'DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires <= ? AND idle_since IS NOT NULL LIMIT ?)',
    ),
  }
  const find = (digest: string) => sql.find.get(digest, Date.now()) as FoundRow | undefined

  function add(digest: string, row: SessionRow, idleTimeout: number): number {
    sql.drop.run(digest)
    const { lastInsertRowid } = sql.add.run(
      ...[digest, row.holder, row.opening, row.home, row.version, row.revision, row.client, row.level],
      ...[row.watched.length, row.watchedBytes, Date.now() + idleTimeout, sizeOf(row)],
    )
    const id = Number(lastInsertRowid)
    for (const uri of row.watched) sql.watch.run(id, bound(uri))
    return id
  }

  function read(digest: string): SessionRow | undefined {
    const found = find(digest)
    if (!found) return undefined
    const { opening, holder, home, version, revision, client, level } = found
    const watched = sql.watched.all(found.id).map(({ uri }) => textOf(uri))
    return { opening, holder, home, version, revision, client, level, watched, watchedBytes: found.watched_bytes }
  }

  /** Writes only after a twentieth of the idle timeout. */
  function renew({ id, expires }: FoundRow, idleTimeout: number) {
    const until = Date.now() + idleTimeout
    if (until - expires > Math.min(5_000, idleTimeout / 20)) sql.renew.run(until, id)
  }

  const copiesBeside = (id: number, node: string) => sql.copies.all(id, node).map(one => String(one['node']))
  function growthOf(found: FoundRow, change: RowChange): number {
    if ('client' in change) return rowSize({ ...found, client: change.client }) - rowSize(found)
    if ('level' in change) return 0
    const uri = 'watch' in change ? change.watch : change.unwatch
    const isWatched = sql.isWatched.get(found.id, bound(uri)) !== undefined
    return 'watch' in change ? (isWatched ? 0 : watchSize(uri)) : isWatched ? -watchSize(uri) : 0
  }

  function apply({ id, watching, watched_bytes }: FoundRow, change: RowChange): boolean {
    if ('level' in change) sql.level.run(change.level, id)
    else if ('client' in change) sql.client.run(change.revision, change.client, id)
    else if ('unwatch' in change) {
      if (Number(sql.unwatch.run(id, bound(change.unwatch)).changes) > 0) sql.watching.run(-1, -change.cost, id)
    } else if (!sql.isWatched.get(id, bound(change.watch))) {
      if (watching >= change.most || watched_bytes + change.cost > change.mostBytes) return false
      sql.watch.run(id, bound(change.watch))
      sql.watching.run(1, change.cost, id)
    }
    return true
  }

  function mark({ digest, inUse, ago, noted }: RowUse, node: string, idleTimeout: number) {
    const found = find(digest)
    if (!found) return
    const at = Math.round(Date.now() - ago)
    sql.idle.run(inUse ? null : at, at + idleTimeout, found.id)
    if (!noted) return
    if (inUse) sql.use.run(found.id, node, Date.now() + idleTimeout)
    else sql.unuse.run(found.id, node)
  }

  return {
    enterSession(
      digest: string,
      visit: {
        readonly node: string
        readonly version: number
        readonly requests: readonly string[]
        readonly from: readonly string[]
        readonly idleTimeout: number
      },
    ) {
      const { node, version, requests, from, idleTimeout } = visit
      const found = find(digest)
      if (!found) return { kind: 'missing' as const, ended: sql.isEnded.get(digest, Date.now()) !== undefined }
      for (const request of requests) {
        const at = sql.runs.get(found.id, request)?.['node']
        if (typeof at === 'string' && !from.includes(at)) return { kind: 'taken' as const, request, node: at }
      }
      renew(found, idleTimeout)
      for (const request of requests) sql.begin.run(found.id, request, node)
      if (found.version === version) return { kind: 'entered' as const, row: undefined }
      sql.copy.run(found.id, node)
      return { kind: 'entered' as const, row: read(digest) }
    },
    leaveSession(digest: string, requests: readonly string[]) {
      for (const request of requests) sql.finish.run(digest, request)
    },
    nodeOfRequest(digest: string, request: string) {
      const found = find(digest)
      return found && (sql.runs.get(found.id, request)?.['node'] as string | undefined)
    },
    changeSession(digest: string, node: string, change: RowChange) {
      const found = find(digest)
      if (!found) return undefined
      const bytes = growthOf(found, change)
      const { ended, lack } = bytes > 0 ? room.make({ holder: found.holder, bytes, digest }, node) : ROOMY
      if (('watch' in change && lack) || !apply(found, change)) return { kind: 'full' as const, ended }
      if (bytes !== 0) sql.grow.run(bytes, found.id)
      sql.bump.run(found.id)
      sql.copy.run(found.id, node)
      return { kind: 'changed' as const, row: read(digest) as SessionRow, nodes: copiesBeside(found.id, node), ended }
    },
    adoptSession(digest: string, from: string, node: string) {
      const found = find(digest)
      if (found?.home !== from) return false
      sql.home.run(node, found.id)
      return true
    },
    /** Epochs are times, so they grow even after a loss. */
    claimSessionStream(digest: string, stream: string, node: string) {
      const found = find(digest)
      if (!found) return undefined
      const { id, stream_node: had, stream_epoch: last } = found
      const before = had === null ? undefined : { node: had, stream: found.stream ?? '' }
      if (had === node && found.stream === stream) return { epoch: last, before }
      const epoch = Math.max(last + 1, Date.now())
      sql.claim.run(stream, node, epoch, id)
      return { epoch, before }
    },
    createSession(
      digest: string,
      row: SessionRow,
      idleTimeout: number,
      maxPerOwner: number,
    ): { readonly refused: 'many' | Lack; readonly ended: readonly Ended[] } {
      const { holder, home } = row
      if (maxPerOwner > 0 && Number(sql.count.get(holder, Date.now(), digest)?.['n']) >= maxPerOwner) {
        return { refused: 'many', ended: [] }
      }
      const { ended, lack } = room.make({ holder, bytes: sizeOf(row), digest }, home)
      if (lack) return { refused: lack, ended }
      sql.copy.run(add(digest, row, idleTimeout), home)
      return { refused: undefined, ended }
    },
    endSession(digest: string, node: string, onlyIdle: boolean) {
      const found = find(digest)
      if (onlyIdle && (!found || room.isBusy(found.id))) return undefined
      const nodes = found && copiesBeside(found.id, node)
      room.end(digest, nodes)
      return nodes
    },
    restoreSession(
      digest: string,
      row: SessionRow,
      held: { readonly node: string; readonly requests: readonly string[]; readonly claim: RowClaim | undefined },
      idleTimeout: number,
    ) {
      const { node, requests, claim } = held
      if (sql.isEnded.get(digest, Date.now())) return { kept: false, ended: [] }
      const found = find(digest)
      // Stored even without room, because the node has it.
      const need = { holder: row.holder, bytes: sizeOf(row), digest }
      const { ended } = found ? ROOMY : room.make(need, node)
      if (found) renew(found, idleTimeout)
      const id = found?.id ?? add(digest, row, idleTimeout)
      sql.copy.run(id, node)
      if (claim && claim.epoch > (found?.stream_epoch ?? 0)) sql.claim.run(claim.stream, node, claim.epoch, id)
      for (const request of requests) sql.beginNew.run(id, request, node)
      return { kept: true, ended }
    },
    sessionTimeLeft(digest: string) {
      const found = find(digest)
      return found && Math.max(0, found.expires - Date.now())
    },
    markSessions(uses: readonly RowUse[], node: string, idleTimeout: number, maxIdle: number) {
      for (const use of uses) mark(use, node, idleTimeout)
      sql.expiredIdle.run(Date.now(), MOST_EXPIRED)
      return room.trim(maxIdle, node)
    },
  }
}

export interface SessionRow {
  readonly opening: string
  readonly holder: string
  readonly home: string
  readonly version: number
  readonly revision: string
  readonly client: string
  readonly level: string
  readonly watched: readonly string[]
  readonly watchedBytes: number
}

export type RowChange =
  | { readonly level: string }
  | { readonly revision: string; readonly client: string }
  | { readonly watch: string; readonly cost: number; readonly most: number; readonly mostBytes: number }
  | { readonly unwatch: string; readonly cost: number }

export interface RowUse {
  readonly digest: string
  readonly inUse: boolean
  readonly ago: number
  readonly noted: boolean
}

export interface RowClaim {
  readonly stream: string
  readonly epoch: number
}

type FoundRow = Omit<SessionRow, 'watched' | 'watchedBytes'> & {
  readonly id: number
  readonly watching: number
  readonly watched_bytes: number
  readonly stream: string | null
  readonly stream_node: string | null
  readonly stream_epoch: number
  readonly expires: number
}

/** Bytes of a row besides its texts. */
const ROW = 700
const PAGE = 4_096
/** Longer rows and index entries have pages of their own. */
const SPILLS = { row: 2_000, entry: 900 }

const paged = (bytes: number, spills: number) => (bytes > spills ? Math.ceil((bytes + 100) / PAGE) * PAGE : bytes)

const rowSize = ({ opening, client, holder }: Record<'opening' | 'client' | 'holder', string>): number =>
  ROW + 4 * Buffer.byteLength(holder) + paged(Buffer.byteLength(opening) + Buffer.byteLength(client), SPILLS.row)

const watchSize = (uri: string): number => paged(Math.ceil(Buffer.byteLength(uri) * 1.4) + 60, SPILLS.entry)

export const sizeOf = (row: SessionRow): number => row.watched.reduce((sum, uri) => sum + watchSize(uri), rowSize(row))
