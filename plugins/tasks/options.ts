// The options of tasks.
import { DURATION_PATTERN, type OptionsOf, SIZE_PATTERN } from '../../core/plugin.ts'

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

/** Task roles, limits and retention. */
export interface TasksOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledTasksOptions extends OptionsOf<typeof OPTIONS, true> {}
