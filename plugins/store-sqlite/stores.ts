// The store and the task store in the file, for all processes of this host.
import { HostError } from '../../core/index.ts'
import type { Logger } from '../../core/plugin.ts'
import type { Answers, Query, Store } from '../../core/store.ts'
import { SMALL_OUTCOME, type TaskNews, type TaskRefusal, type TaskStore } from '../../core/transport.ts'
import type { Writer } from './writer.ts'

/** The store in the file, for all processes of this host. */
export const createSqliteStore = (file: Writer): Store => ({
  shared: 'host',
  transact: (partition, steps, durability) => file.ask('transact', partition, steps, durability),
  read: async <const Queries extends readonly Query[]>(partition: string, queries: Queries) =>
    (await file.ask('read', partition, queries)) as Answers<Queries>,
  onReturn: listener => file.onReturn(listener),
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
