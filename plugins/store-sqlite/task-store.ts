// The task store of all processes of this host, in the file. thread/tasks.ts has what happens there.
import type { Logger } from '../../core/index.ts'
import type { TaskNews, TaskStore } from '../../core/transport.ts'
import type { Writer } from './writer.ts'

/** `log`: of listeners that fail. */
export const createSqliteTaskStore = (file: Writer, log: Logger): TaskStore => ({
  shared: 'host',
  create: async (task, bounds) => file.ask('createTask', task, bounds),
  get: async id => file.ask('getTask', id),
  list: async (holder, most, before = Number.MAX_SAFE_INTEGER) => file.ask('listTasks', holder, most, before),
  claim: async (offers, lease) => file.ask('claimTask', offers, lease),
  claimLapsed: async lease => file.ask('claimLapsedTask', lease),
  renew: async (leases, lease) => (leases.length === 0 ? [] : file.ask('renewTasks', leases, lease)),
  release: async lease => file.ask('releaseTask', lease),
  note: async (lease, note) => file.ask('noteTask', lease, note),
  ask: async (lease, question) => file.ask('askTask', lease, question),
  end: async (lease, end, ttl) => file.ask('endTask', lease, end, ttl),
  answer: async (id, answers) => file.ask('answerTask', id, answers),
  cancel: async id => file.ask('cancelTask', id),
  depths: async () => file.ask('taskDepths'),
  watch(tell) {
    const tellOne = (news: TaskNews | undefined) => {
      try {
        tell(news)
      } catch (err) {
        log.error({ err }, 'a listener of changes of tasks failed')
      }
    }
    return file.watchTasks(changes => {
      for (const news of changes) tellOne(news)
    })
  },
})
