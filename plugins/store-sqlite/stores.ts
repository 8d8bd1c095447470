// The event, grant and task stores in the file, for all processes of this host.
import { createHash } from 'node:crypto'
import { checkGrantTtl, type GrantStore, grantKindOf } from '../../core/auth.ts'
import { HostError } from '../../core/index.ts'
import type { EventStore, Logger, StreamWriter } from '../../core/plugin.ts'
import type { Answers, Query, Store } from '../../core/store.ts'
import { SMALL_OUTCOME, StreamFenced, type TaskNews, type TaskRefusal, type TaskStore } from '../../core/transport.ts'
import type { RowWriter } from './thread/events.ts'
import type { GrantPlace } from './thread/grants.ts'
import type { Writer } from './writer.ts'

/** The store in the file, for all processes of this host. */
export const createSqliteStore = (file: Writer): Store => ({
  shared: 'host',
  transact: (partition, steps, durability) => file.ask('transact', partition, steps, durability),
  read: async <const Queries extends readonly Query[]>(partition: string, queries: Queries) =>
    (await file.ask('read', partition, queries)) as Answers<Queries>,
  onReturn: listener => file.onReturn(listener),
})

const SOLE: StreamWriter = { epoch: 0, facts: '' }

/** Session ids are credentials, so the file contains hashes. */
const nameOf = (session: string) => createHash('sha256').update(session).digest('base64url').slice(0, 32)

const rowOf = ({ epoch, facts, bus = '', finished = false }: StreamWriter): RowWriter => ({
  epoch,
  facts,
  bus,
  finished,
})

function unfenced<Value>(answer: Value): Exclude<Value, 'fenced'> {
  if (answer === 'fenced') throw new StreamFenced()
  return answer as Exclude<Value, 'fenced'>
}

export const createSqliteEventStore = (file: Writer): EventStore => ({
  async append(session, stream, message, known, writer = SOLE) {
    const seq = unfenced(await file.ask('appendEvent', nameOf(session), stream, message, known, rowOf(writer)))
    if (seq === 'taken') throw new Error(`another message of this stream has the number ${known + 1}`)
    return seq
  },
  after: (session, stream, seq, most) => file.ask('eventsAfter', nameOf(session), stream, seq, most),
  async drop(session, stream) {
    if (stream === undefined) await file.ask('dropStreams', nameOf(session))
    else await file.ask('dropStream', nameOf(session), stream)
  },
  shared: {
    async open(session, stream, writer, known = 0) {
      unfenced(await file.ask('openStream', nameOf(session), stream, rowOf(writer), known))
    },
    state: (session, stream) => file.ask('streamState', nameOf(session), stream),
    async claim(session, stream, writer) {
      return unfenced(await file.ask('claimStream', nameOf(session), stream, rowOf(writer)))
    },
    async finish(session, stream, writer) {
      unfenced(await file.ask('finishStream', nameOf(session), stream, rowOf(writer)))
    },
  },
})

const placeOf = (key: string): GrantPlace => ({ key, pending: grantKindOf(key) === 'pending' })

const checked = (key: string) => placeOf(key).key

function kept<Value>(answer: Value): Exclude<Value, 'large'> {
  if (answer !== 'large') return answer as Exclude<Value, 'large'>
  throw new HostError('unavailable', {
    detail: 'what is to be kept for this login is too large',
    reason: 'an entry does not fit into the bytes that all pending ones may have',
  })
}

export const createSqliteGrantStore = (file: Writer): GrantStore => ({
  shared: true,
  get: async key => file.ask('getGrant', checked(key)),
  async set(key, value, ttl) {
    kept(await file.ask('setGrant', placeOf(key), value, checkGrantTtl(ttl)))
  },
  async add(key, value, ttl) {
    return kept(await file.ask('addGrant', placeOf(key), value, checkGrantTtl(ttl))) === 'done'
  },
  async replace(key, from, to, ttl) {
    return kept(await file.ask('replaceGrant', placeOf(key), from, to, checkGrantTtl(ttl))) === 'done'
  },
  take: async key => file.ask('takeGrant', checked(key)),
  async delete(...keys) {
    await file.ask('deleteGrants', keys.map(checked))
  },
  join: async (set, member, ttl, most) =>
    kept(await file.ask('joinGrants', placeOf(set), member, checkGrantTtl(ttl), most)),
  async leave(set, member) {
    kept(await file.ask('leaveGrants', placeOf(set), member))
  },
  members: async set => file.ask('grantMembers', checked(set)),
})

function wrote(done: boolean | TaskRefusal): boolean {
  if (typeof done === 'boolean') return done
  const headers = { 'Retry-After': '10' }
  throw new HostError('unavailable', { detail: 'there is no room for what the task says', headers })
}

export const createSqliteTaskStore = (file: Writer, log: Logger): TaskStore => ({
  shared: 'host',
  create: async (task, bounds) => file.ask('createTask', task, bounds),
  get: async id => file.ask('getTask', id),
  look: async id => file.ask('lookAtTask', id),
  list: async (holder, most, before = Number.MAX_SAFE_INTEGER) => file.ask('listTasks', holder, most, before),
  claim: async (offers, lease) => file.ask('claimTask', offers, lease),
  claimLapsed: async lease => file.ask('claimLapsedTask', lease),
  renew: async (leases, lease) => (leases.length === 0 ? [] : file.ask('renewTasks', leases, lease)),
  release: async lease => file.ask('releaseTask', lease),
  note: async (lease, note) => wrote(await file.ask('noteTask', lease, note)),
  ask: async (lease, question) => wrote(await file.ask('askTask', lease, question)),
  end: async (lease, end, ttl, room) =>
    file.ask('endTask', lease, end, ttl, room, Buffer.byteLength(end.outcome ?? '') <= SMALL_OUTCOME),
  answer: async (id, answers, room) => file.ask('answerTask', id, answers, room),
  cancel: async id => file.ask('cancelTask', id),
  depths: async () => file.ask('taskDepths'),
  watch(tell) {
    const tellOne = (news: TaskNews | undefined) => {
      try {
        tell(news)
      } catch (err) {
        log.error({ code: 'MH2510', err }, 'a listener of changes of tasks failed')
      }
    }
    return file.watchTasks(changes => {
      for (const news of changes) tellOne(news)
    })
  },
})
