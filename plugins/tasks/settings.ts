// The options of the plugin as its parts read them.
import {
  DURATION_PATTERN,
  type OptionsOf,
  type PluginHost,
  parseDuration,
  parseSize,
  SIZE_PATTERN,
  StartError,
} from '../../core/index.ts'
import type { QueueOffer, TaskBounds } from '../../core/transport.ts'

const duration = <const D extends string>(description: D, standard: string) =>
  ({ type: 'string', pattern: `^(?=.*[1-9])${DURATION_PATTERN.slice(1)}`, default: standard, description }) as const
const count = <const D extends string>(description: D, standard: number) =>
  ({ type: 'integer', minimum: 1, default: standard, description }) as const

export const OPTIONS = {
  type: 'object',
  description: 'Calls of tools that say `task` become tasks (io.modelcontextprotocol/tasks).',
  additionalProperties: false,
  properties: {
    role: {
      type: 'string',
      enum: ['both', 'front', 'worker'],
      default: 'both',
      description:
        '`front` takes calls and runs no tasks, `worker` runs them. Both need a task store of several nodes.',
    },
    ttl: duration('How long a task is kept: from its creation, and from its end.', '1h'),
    pollInterval: duration('How often clients are to ask for a task.', '2s'),
    lease: duration('A task whose node is silent for this long is run by another, or fails; 300ms to 20s.', '15s'),
    maxSize: {
      type: 'string',
      pattern: `^(?=.*[1-9])${SIZE_PATTERN.slice(1)}`,
      default: '1mb',
      description: "The most that a task's call, all answers to it, or its result may hold, each.",
    },
    concurrent: count('Handlers that run at a time in one process.', 32),
    perTool: count('Tasks of one tool that are under way at a time, on all nodes.', 100),
    perUser: count('The same, of one user.', 4),
    openPerUser: count('Tasks of one user that are not over; ten times as many with those that are.', 100),
    kept: count('Tasks of all.', 10_000),
  },
} as const

/** Who runs tasks, how many, and how long they are kept. */
export interface TasksOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledTasksOptions extends OptionsOf<typeof OPTIONS, true> {}

export const TASKS_ID = 'io.modelcontextprotocol/tasks'

/** Shorter ones lapse while a store answers; longer ones would leave clients without word for more than 30 seconds. */
const SHORTEST_LEASE = 300
const LONGEST_LEASE = 20_000

/** Tasks of a holder that are kept, for each that may be open. */
const KEPT_PER_OPEN = 10

/** Times are milliseconds, sizes bytes. */
export interface TaskSettings {
  /** Whether this process runs tasks. */
  readonly runs: boolean
  readonly ttl: number
  readonly pollInterval: number
  readonly lease: number
  readonly maxSize: number
  /** In this process. */
  readonly concurrent: number
  readonly offered: Pick<QueueOffer, 'running' | 'runningPerHolder'>
  readonly bounds: TaskBounds
}

/** Reports a lease that makes no sense. */
export function settingsOf(options: FilledTasksOptions, { at, report }: PluginHost): TaskSettings {
  const lease = parseDuration(options.lease)
  if (lease < SHORTEST_LEASE || lease > LONGEST_LEASE) {
    report(new StartError(`lease is ${options.lease}; write 300ms to 20s, such as 15s`, { at: [...at, 'lease'] }))
  }
  return {
    runs: options.role !== 'front',
    ttl: parseDuration(options.ttl),
    pollInterval: parseDuration(options.pollInterval),
    lease,
    maxSize: parseSize(options.maxSize),
    concurrent: options.concurrent,
    offered: { running: options.perTool, runningPerHolder: options.perUser },
    bounds: {
      openPerHolder: options.openPerUser,
      keptPerHolder: KEPT_PER_OPEN * options.openPerUser,
      kept: options.kept,
    },
  }
}
