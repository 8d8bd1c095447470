// The options of tasks.
import { DURATION_PATTERN, type OptionsOf, SIZE_PATTERN } from '../../core/plugin.ts'

const duration = <const D extends string>(description: D, standard: string) =>
  ({ type: 'string', pattern: `^(?=.*[1-9])${DURATION_PATTERN.slice(1)}`, default: standard, description }) as const
const count = <const D extends string>(description: D, standard: number) =>
  ({ type: 'integer', minimum: 1, default: standard, description }) as const

export const OPTIONS = {
  type: 'object',
  description: 'Calls of tools with `task` become tasks (io.modelcontextprotocol/tasks).',
  additionalProperties: false,
  properties: {
    role: {
      type: 'string',
      enum: ['both', 'front', 'worker'],
      default: 'both',
      description:
        '`both` accepts calls and runs tasks, `front` only accepts calls, `worker` only runs tasks. `front` and `worker` require a shared store.',
    },
    ttl: duration('Time for which a task is kept, from its creation and again from its end. Longer runs fail.', '1h'),
    pollInterval: duration('Polling interval for clients (pollIntervalMs).', '2s'),
    lease: duration('A node that does not respond for this time loses its tasks: 300ms to 20s.', '15s'),
    maxSize: {
      type: 'string',
      pattern: `^(?=.*[1-9])${SIZE_PATTERN.slice(1)}`,
      default: '1mb',
      description: 'Maximum size of a call, of all responses to its task, and of its result.',
    },
    concurrent: count('Maximum concurrent handlers in one process.', 32),
    perTool: count('Maximum running tasks of one tool, on all nodes. Further tasks are queued.', 100),
    perUser: count('Maximum running tasks of one user and tool, on all nodes. Queued users take turns.', 4),
    openPerUser: count(
      'Maximum unfinished tasks of one user (ten times as many in total). Further calls get 429.',
      100,
    ),
    kept: count('Maximum tasks of all users. Further calls get 503.', 10_000),
  },
} as const

/** Task roles, limits and retention. */
export interface TasksOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledTasksOptions extends OptionsOf<typeof OPTIONS, true> {}
