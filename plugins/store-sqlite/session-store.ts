// The session store in the file, for all processes of this host.
import type { LogLevel } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import type { Revision } from '../../core/plugin.ts'
import {
  type Entered,
  type HeldHere,
  MAX_WATCHED,
  MAX_WATCHED_BYTES,
  type RequestId,
  type SessionBounds,
  type SessionRecord,
  type SessionStore,
  type SessionUse,
  type StateChange,
  type Visit,
  watchCost,
  watchedCost,
} from '../../core/transport.ts'
import { requestKey, SessionOutage } from '../families/stores/index.ts'
import { ownerFull, sessionsFull } from './failures.ts'
import { boundsOfSessions, SHARE } from './thread/bounds.ts'
import type { Ended } from './thread/session-room.ts'
import type { RowChange, SessionRow } from './thread/sessions.ts'
import type { Writer } from './writer.ts'

/** Bytes of a typical session. */
const USUAL_SIZE = 2_048

function writeRow({ opening, version, home, state }: SessionRecord): SessionRow {
  const { revision = '', client, logLevel, watched } = state
  const texts = { opening: JSON.stringify(opening), client: JSON.stringify(client) }
  const counted = { watched: [...watched], watchedBytes: watchedCost(watched) }
  return { ...texts, ...counted, holder: opening.holder, home, version, revision, level: logLevel }
}

function readRow({ opening, home, version, revision, client, level, watched }: SessionRow): SessionRecord {
  return {
    opening: JSON.parse(opening),
    version,
    home,
    state: {
      revision: (revision || undefined) as Revision | undefined,
      client: { info: undefined, ...JSON.parse(client) },
      logLevel: level as LogLevel,
      watched,
    },
  }
}

function rowChange(change: StateChange): RowChange {
  if ('watch' in change) {
    return { watch: change.watch, cost: watchCost(change.watch), most: MAX_WATCHED, mostBytes: MAX_WATCHED_BYTES }
  }
  if ('unwatch' in change) return { unwatch: change.unwatch, cost: watchCost(change.unwatch) }
  if ('logLevel' in change) return { level: change.logLevel }
  return { revision: change.revision, client: JSON.stringify(change.client) }
}

class SqliteSessionStore implements SessionStore {
  readonly shared = 'host'
  readonly node: string
  readonly #file: Writer
  readonly #log: InternalHost['log']
  readonly #room: number
  #isJudged = false
  readonly #outage: SessionOutage
  readonly #inUse = new Set<string>()
  /** Evicted sessions that `mark` has not returned yet; and the nodes with copies of those that it has. */
  #ended: Ended[] = []
  readonly #nodesOf = new Map<string, readonly string[]>()

  constructor(
    file: Writer,
    { config: { node }, log }: Pick<InternalHost, 'log'> & { readonly config: { readonly node: string } },
    maxSize: number,
  ) {
    this.#log = log
    this.#room = boundsOfSessions({ maxSize }).all
    this.#file = file
    this.node = node
    this.#outage = new SessionOutage({
      log,
      untold: 'it could not be written that a request is answered',
      tell: (digest, requests) => file.ask('leaveSession', digest, requests),
    })
    file.onReturn(() => this.#outage.end())
  }

  #judgeRoom({ maxIdle }: SessionBounds) {
    if (this.#isJudged) return
    this.#isJudged = true
    const has = Math.floor(this.#room / USUAL_SIZE)
    if (has >= maxIdle) return
    const fix = `raise maxSize to ${Math.ceil((maxIdle * USUAL_SIZE) / SHARE.all / 1_048_576)}mb, or lower sessions.maxIdle`
    const facts = { maxIdle, bytesForSessions: this.#room, bytesOfOne: USUAL_SIZE, sessions: has, fix }
    this.#log.warn(
      { code: 'MH2404', ...facts },
      'maxSize of store-sqlite has no room for sessions.maxIdle: idle ones end before there are so many',
    )
  }

  async create(digest: string, record: SessionRecord, bounds: SessionBounds) {
    this.#judgeRoom(bounds)
    const { idleTimeout, maxPerOwner = 0 } = bounds
    const created = await this.#file.ask('createSession', digest, writeRow(record), idleTimeout, maxPerOwner)
    this.#ended.push(...created.ended)
    if (created.refused === 'owner') throw ownerFull()
    if (created.refused === 'all') throw sessionsFull()
    return created.refused === undefined ? record.version : undefined
  }

  async enter(digest: string, { version, requests, from }: Visit, { idleTimeout }: SessionBounds): Promise<Entered> {
    const visit = { node: this.node, version, requests: requests.map(requestKey), from: [...from], idleTimeout }
    const found = await this.#file.ask('enterSession', digest, visit)
    if (found.kind === 'missing') return found
    if (found.kind === 'taken') return { ...found, request: JSON.parse(found.request) }
    return { kind: 'entered', record: found.row && readRow(found.row) }
  }

  leave(digest: string, requests: readonly RequestId[]) {
    this.#outage.leave(digest, requests)
  }

  async change(digest: string, change: StateChange) {
    const changed = await this.#file.ask('changeSession', digest, this.node, rowChange(change))
    if (!changed) return undefined
    this.#ended.push(...changed.ended)
    return changed.kind === 'full' ? changed.kind : { record: readRow(changed.row), nodes: changed.nodes }
  }

  nodeOf(digest: string, request: RequestId) {
    return this.#file.ask('nodeOfRequest', digest, requestKey(request))
  }

  adopt(digest: string, from: string) {
    return this.#file.ask('adoptSession', digest, from, this.node)
  }

  claimStream(digest: string, stream: string) {
    return this.#file.ask('claimSessionStream', digest, stream, this.node)
  }

  async end(digest: string, _holder: string | undefined, onlyIdle = false) {
    const ended = this.#nodesOf.get(digest)
    this.#nodesOf.delete(digest)
    if (ended) return ended
    const nodes = await this.#file.ask('endSession', digest, this.node, onlyIdle)
    if (nodes) this.#inUse.delete(digest)
    return nodes
  }

  async mark(uses: readonly SessionUse[], { idleTimeout, maxIdle }: SessionBounds) {
    const rows = uses.map(({ digest, inUse, ago }) => ({ digest, inUse, ago, noted: this.#isNoted(digest, inUse) }))
    const ended = await this.#file.ask('markSessions', rows, this.node, idleTimeout, maxIdle)
    return [...this.#ended.splice(0), ...ended].map(({ digest, holder, nodes }) => {
      // Already ended in the file; `end` returns the nodes to notify.
      this.#nodesOf.set(digest, nodes)
      return { digest, holder }
    })
  }

  /** Whether to record it: only uses longer than a call, and their end. */
  #isNoted(digest: string, inUse: boolean): boolean {
    if (!inUse) return this.#inUse.delete(digest)
    this.#inUse.add(digest)
    return true
  }

  timeLeft(digest: string) {
    return this.#file.ask('sessionTimeLeft', digest)
  }

  async restore(digest: string, record: SessionRecord, { requests, claim }: HeldHere, { idleTimeout }: SessionBounds) {
    const held = { node: this.node, requests: requests.map(requestKey), claim: claim && { ...claim } }
    const { kept, ended } = await this.#file.ask('restoreSession', digest, writeRow(record), held, idleTimeout)
    this.#ended.push(...ended)
    return kept
  }

  onReturn(listener: () => void) {
    this.#file.onReturn(listener)
  }

  get unsure() {
    return this.#outage.unsure
  }
}

export const createSqliteSessionStore = (
  file: Writer,
  host: Pick<InternalHost, 'log'> & { readonly config: { readonly node: string } },
  maxSize = Number.POSITIVE_INFINITY,
): SessionStore => new SqliteSessionStore(file, host, maxSize)
