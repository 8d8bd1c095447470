// A task as clients see it, and how it is kept that it ended.
import { errorText, HostError, type JsonObject } from '../../core/index.ts'
import type { TaskEnd, TaskQuestion, TaskRecord, TaskSummary } from '../../core/transport.ts'
import { unpackQueue } from './work.ts'

type Fields = Record<string, unknown>

const time = (milliseconds: number) => new Date(milliseconds).toISOString()

/** A question as it is kept; `as` is the name that the handler gave to it. */
export interface Asked {
  readonly method: string
  readonly params: object
  readonly as?: string
}

function statusOf({ state, open }: TaskSummary): string {
  if (state === 'queued' || state === 'running') return open > 0 ? 'input_required' : 'working'
  return state
}

/** What every answer says of a task. */
function baseOf(task: TaskSummary, pollInterval: number): Fields {
  const { id, createdAt, updatedAt, until, note, state } = task
  // The last progress message is out of date after the end.
  const isOpen = state === 'queued' || state === 'running'
  return {
    taskId: id,
    status: statusOf(task),
    ...(isOpen && note !== undefined && { statusMessage: note }),
    createdAt: time(createdAt),
    lastUpdatedAt: time(updatedAt),
    ttlMs: until - createdAt,
    pollIntervalMs: pollInterval,
  }
}

function questionsOf(questions: readonly TaskQuestion[]): Fields {
  const open = questions.filter(({ answer }) => answer === undefined)
  const requests = open.map(({ key, text }) => {
    const { method, params } = JSON.parse(text) as Asked
    return [key, { method, params }] as const
  })
  return Object.fromEntries(requests)
}

/** What a task is answered with that has just been made. */
export const seedOf = (task: TaskSummary, pollInterval: number): Fields => ({
  ...baseOf(task, pollInterval),
  status: 'working',
})

/** All that its owner may know of a task. */
export function detailsOf(task: TaskRecord, pollInterval: number): Fields {
  const base = baseOf(task, pollInterval)
  const { outcome = '{}', questions } = task
  switch (base['status']) {
    case 'input_required':
      return { ...base, inputRequests: questionsOf(questions) }
    case 'completed':
      return { ...base, result: JSON.parse(outcome) as JsonObject }
    case 'failed': {
      const error = JSON.parse(outcome) as { readonly message: string }
      return { ...base, statusMessage: error.message, error }
    }
    default:
      return base
  }
}

/** A line of a list. */
export const lineOf = (task: TaskSummary, pollInterval: number): Fields => ({
  ...baseOf(task, pollInterval),
  tool: unpackQueue(task.queue).tool,
})

/** The end of a task that failed, as its client would have been told. */
export function failedWith(thrown: unknown): TaskEnd {
  const error = HostError.is(thrown) ? thrown : new HostError('internal')
  const { code, data } = error
  return {
    state: 'failed',
    outcome: JSON.stringify({ code, message: errorText(error), ...(data !== undefined && { data }) }),
  }
}

const NODE_GONE =
  'The server node that ran this stopped or was lost. It may be done, wholly or in part, and is not run again: look before you ' +
  'send it again'

/** The node that ran it is gone, and it may not run twice: whoever reads of it is not told to send it again, as of requests. */
export const nodeGone = (): TaskEnd => ({
  state: 'failed',
  outcome: JSON.stringify({ code: new HostError('nodeLost').code, message: NODE_GONE, data: { reason: 'node-lost' } }),
})

/** Nothing of it is there any more, and its end was told to nobody. */
export const taskLost = (): TaskEnd =>
  failedWith(
    new HostError('nodeLost', {
      detail: 'the task is not there any more: its time is over, or what kept it has lost it',
      data: { reason: 'task-lost' },
    }),
  )
