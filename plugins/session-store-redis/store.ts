// The session store in Redis: one script for each operation.
import { createHash } from 'node:crypto'
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
  type StreamClaim,
  type Visit,
  watchCost,
  watchedCost,
} from '../../core/transport.ts'
import { fieldsOf, type RedisConnection, type RedisScript } from '../families/redis/index.ts'
import { requestKey, SessionOutage } from '../families/stores/index.ts'
import { ADMIT, ADOPT, CLAIM, CREATE, END, ENTER, FORGET, MARK, RESTORE, SET, UNWATCH, USE, WATCH } from './scripts.ts'

type Fields = ReadonlyMap<string, string>

const namesAfter = (prefix: string, fields: Fields): string[] =>
  [...fields.keys()].flatMap(name => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []))

function readRecord(fields: Fields): SessionRecord {
  const text = (name: string) => fields.get(name) ?? ''
  return {
    opening: JSON.parse(text('opening')),
    version: Number(text('v')),
    home: text('home'),
    state: {
      revision: (text('revision') || undefined) as Revision | undefined,
      client: { info: undefined, ...JSON.parse(text('client')) },
      logLevel: text('level') as LogLevel,
      watched: namesAfter('w:', fields),
    },
  }
}

function writeRecord({ opening, version, home, state }: SessionRecord): string[] {
  const { revision = '', client, logLevel, watched } = state
  return [
    ...['opening', JSON.stringify(opening), 'home', home, 'v', String(version)],
    ...['revision', revision, 'client', JSON.stringify(client), 'level', logLevel],
    ...['wn', String(watched.length), 'wb', String(watchedCost(watched)), ...watched.flatMap(uri => [`w:${uri}`, '1'])],
  ]
}

/** Milliseconds for which an ended session is remembered. */
const ENDED_LIFETIME = 3_600_000

type Reply = readonly string[]

/** Pseudonymises users and addresses. */
const nameHolder = (holder: string) =>
  holder.startsWith('#') ? holder : `#${createHash('sha256').update(holder).digest('base64url').slice(0, 16)}`

class RedisSessionStore implements SessionStore {
  readonly shared = true
  readonly node: string
  readonly #redis: RedisConnection
  readonly #log: InternalHost['log']
  readonly #outage: SessionOutage
  readonly #inUse = new Set<string>()

  constructor(
    redis: RedisConnection,
    { config: { node }, log }: Pick<InternalHost, 'log'> & { readonly config: { readonly node: string } },
  ) {
    this.#redis = redis
    this.node = node
    this.#log = log
    this.#outage = new SessionOutage({
      log,
      untold: 'Redis was not told that a request is answered',
      tell: (digest, requests) => redis.client.hDel(this.#key(digest, 'requests'), requests),
    })
  }

  #key(digest: string, part: string) {
    return this.#redis.key(`{${digest}}`, part)
  }

  #keys(digest: string) {
    return [this.#key(digest, 'session'), this.#key(digest, 'requests'), this.#key(digest, 'ended')]
  }

  async #ask(script: RedisScript, keys: readonly string[], args: readonly string[]) {
    return (await this.#redis.evaluate(script, keys, args)) as Reply
  }

  #index(script: RedisScript, ...args: readonly string[]): Promise<unknown> {
    return this.#redis.evaluate(script, [this.#redis.key('{sessions}', '')], args)
  }

  async create(digest: string, record: SessionRecord, { idleTimeout, maxPerOwner = 0 }: SessionBounds) {
    const holder = nameHolder(record.opening.holder)
    if ((await this.#index(ADMIT, digest, holder, String(idleTimeout), String(maxPerOwner))) !== 1) return undefined
    const fields = [...writeRecord(record), `n:${this.node}`, '1']
    try {
      await this.#ask(CREATE, [this.#key(digest, 'session')], [String(idleTimeout), ...fields])
    } catch (error) {
      const forgotten = this.#index(FORGET, digest, holder)
      forgotten.catch(err => this.#log.debug({ err }, 'a session that failed to open counts until it has idled'))
      throw error
    }
    return record.version
  }

  async enter(digest: string, { version, requests, from }: Visit, { idleTimeout }: SessionBounds): Promise<Entered> {
    const args = [String(idleTimeout), this.node, String(version), `,${from.join(',')},`]
    const [kind, ...rest] = await this.#ask(ENTER, this.#keys(digest), [...args, ...requests.map(requestKey)])
    if (kind === 'missing') return { kind, ended: rest[0] === '1' }
    if (kind === 'taken') return { kind, request: JSON.parse(rest[0] ?? 'null'), node: rest[1] ?? '' }
    return { kind: 'entered', record: rest.length > 0 ? readRecord(fieldsOf(rest)) : undefined }
  }

  leave(digest: string, requests: readonly RequestId[]) {
    this.#outage.leave(digest, requests)
  }

  async change(digest: string, change: StateChange) {
    const keys = [this.#key(digest, 'session')]
    const [kind, ...rest] = await this.#change(keys, change)
    if (kind === 'full') return kind
    if (kind !== 'changed') return undefined
    const fields = fieldsOf(rest)
    return { record: readRecord(fields), nodes: namesAfter('n:', fields).filter(node => node !== this.node) }
  }

  #change(keys: readonly string[], change: StateChange): Promise<Reply> {
    if ('watch' in change) {
      const most = [String(MAX_WATCHED), String(MAX_WATCHED_BYTES)]
      return this.#ask(WATCH, keys, [this.node, change.watch, String(watchCost(change.watch)), ...most])
    }
    if ('unwatch' in change) {
      return this.#ask(UNWATCH, keys, [this.node, change.unwatch, String(watchCost(change.unwatch))])
    }
    const fields =
      'logLevel' in change
        ? ['level', change.logLevel]
        : ['revision', change.revision, 'client', JSON.stringify(change.client)]
    return this.#ask(SET, keys, [this.node, ...fields])
  }

  async nodeOf(digest: string, request: RequestId) {
    const node = await this.#redis.run(client => client.hGet(this.#key(digest, 'requests'), requestKey(request)))
    return node ?? undefined
  }

  async adopt(digest: string, from: string) {
    const [kind] = await this.#ask(ADOPT, [this.#key(digest, 'session')], [this.node, from])
    return kind === 'yes'
  }

  async claimStream(digest: string, stream: string): Promise<StreamClaim | undefined> {
    const reply = await this.#ask(CLAIM, [this.#key(digest, 'session')], [this.node, stream])
    const [kind, epoch, node = '', before = ''] = reply
    if (kind !== 'claimed') return undefined
    return { epoch: Number(epoch), before: node === '' ? undefined : { node, stream: before } }
  }

  async end(digest: string, holder: string | undefined, onlyIdle = false) {
    const args = [this.node, onlyIdle ? '1' : '', String(ENDED_LIFETIME)]
    const [kind, ...nodes] = await this.#ask(END, this.#keys(digest), args)
    if (kind === 'busy') return undefined
    this.#inUse.delete(digest)
    if (holder !== undefined) await this.#index(FORGET, digest, nameHolder(holder))
    return kind === 'ended' ? nodes : undefined
  }

  async mark(uses: readonly SessionUse[], { idleTimeout, maxIdle }: SessionBounds) {
    for (const { digest, inUse } of uses) this.#noteUse(digest, inUse, idleTimeout)
    const marks = uses.flatMap(({ digest, holder, inUse, ago }) => [
      ...[digest, nameHolder(holder), inUse ? '1' : '', ago.toFixed(3)],
    ])
    const victims = (await this.#index(MARK, String(idleTimeout), String(maxIdle), ...marks)) as Reply
    return [...fieldsOf(victims)].map(([digest, holder]) => ({ digest, holder }))
  }

  /** Only longer uses are written. */
  #noteUse(digest: string, inUse: boolean, idleTimeout: number) {
    if (!inUse && !this.#inUse.delete(digest)) return
    if (inUse) this.#inUse.add(digest)
    const keys = [this.#key(digest, 'session'), this.#key(digest, 'requests')]
    const noted = this.#ask(USE, keys, [this.node, String(idleTimeout), inUse ? '1' : ''])
    noted.catch(err => this.#log.debug({ err }, 'Redis was not told that a session is in use'))
  }

  async timeLeft(digest: string) {
    const left = Number(await this.#redis.run(client => client.pTTL(this.#key(digest, 'session'))))
    return left < 0 ? undefined : left
  }

  async restore(digest: string, record: SessionRecord, { requests, claim }: HeldHere, { idleTimeout }: SessionBounds) {
    const fields = writeRecord(record)
    const [kind] = await this.#ask(RESTORE, this.#keys(digest), [
      ...[String(idleTimeout), this.node, claim?.stream ?? '', String(claim?.epoch ?? 0)],
      ...[String(fields.length), ...fields, ...requests.map(requestKey)],
    ])
    if (kind !== 'kept') return false
    await this.#index(ADMIT, digest, nameHolder(record.opening.holder), String(idleTimeout), '0')
    return true
  }

  onReturn(listener: () => void) {
    let wasHere = this.#redis.healthy
    this.#redis.onChange(healthy => {
      if (!healthy) return
      if (wasHere) {
        this.#outage.end()
        listener()
      }
      wasHere = true
    })
  }

  get unsure() {
    return this.#outage.unsure
  }
}

export const createRedisSessionStore = (
  redis: RedisConnection,
  host: Pick<InternalHost, 'log'> & { readonly config: { readonly node: string } },
): SessionStore => new RedisSessionStore(redis, host)
