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
      description: '`front` accepts calls and runs no tasks, `worker` runs tasks. Both require a shared task store.',
    },
    ttl: duration('Time for which a task is kept, from its creation and from its end.', '1h'),
    pollInterval: duration('Polling interval for clients.', '2s'),
    lease: duration(
      'Time without a sign of its node after which another node runs the task, or the task fails: 300ms to 20s.',
      '15s',
    ),
    maxSize: {
      type: 'string',
      pattern: `^(?=.*[1-9])${SIZE_PATTERN.slice(1)}`,
      default: '1mb',
      description: 'Maximum size of the call, of all responses, and of the result of a task, each.',
    },
    concurrent: count('Maximum concurrent handlers in one process.', 32),
    perTool: count('Maximum running tasks of one tool, on all nodes.', 100),
    perUser: count('Maximum running tasks of one user, on all nodes.', 4),
    openPerUser: count('Maximum unfinished tasks of one user. Ten times as many including finished tasks.', 100),
    kept: count('Maximum tasks of all users.', 10_000),
  },
} as const

/** Task roles, limits and retention. */
export interface TasksOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledTasksOptions extends OptionsOf<typeof OPTIONS, true> {}
