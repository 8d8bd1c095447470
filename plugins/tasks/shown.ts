// Tasks in the form of the protocol.
import { errorText, HostError, type JsonObject } from '../../core/index.ts'
import type { TaskEnd, TaskQuestion, TaskRecord, TaskSummary } from '../../core/transport.ts'
import { unpackQueue } from './work.ts'

type Fields = Record<string, unknown>

const time = (milliseconds: number) => new Date(milliseconds).toISOString()

/** A stored question. `as`: the name that the handler gave it. */
export interface Asked {
  readonly method: string
  readonly params: object
  readonly as?: string
}

function statusOf({ state, open }: TaskSummary): string {
  if (state === 'queued' || state === 'running') return open > 0 ? 'input_required' : 'working'
  return state
}

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

/** The result of a call that created a task. */
export const seedOf = (task: TaskSummary, pollInterval: number): Fields => ({
  ...baseOf(task, pollInterval),
  status: 'working',
})

/** The result of `tasks/get`. */
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

export const lineOf = (task: TaskSummary, pollInterval: number): Fields => ({
  ...baseOf(task, pollInterval),
  tool: unpackQueue(task.queue).tool,
})

/** Stores an error as clients of a call would see it. */
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

/** The task is not retryable, so clients are not told to send it again. */
export const nodeGone = (): TaskEnd => ({
  state: 'failed',
  outcome: JSON.stringify({ code: new HostError('nodeLost').code, message: NODE_GONE, data: { reason: 'node-lost' } }),
})

/** The task disappeared without an end. */
export const taskLost = (): TaskEnd =>
  failedWith(
    new HostError('nodeLost', {
      detail: 'the task is not there any more: its time is over, or what kept it has lost it',
      data: { reason: 'task-lost' },
    }),
  )
