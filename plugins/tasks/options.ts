// The options of tasks.
import { choice, closed, count, positiveDuration, words } from '../../core/internal.ts'
import { type OptionsOf, SIZE_PATTERN } from '../../core/plugin.ts'

export const OPTIONS = closed(
  {
    role: choice(
      ['both', 'front', 'worker'],
      '`both` accepts calls and runs tasks, `front` only accepts calls, `worker` only runs tasks. `front` and `worker` require a shared store.',
      { default: 'both' },
    ),
    ttl: positiveDuration(
      'Time for which a task is kept, from its creation and again from its end. Longer runs fail.',
      { default: '1h' },
    ),
    pollInterval: positiveDuration('Polling interval for clients (pollIntervalMs).', { default: '2s' }),
    lease: positiveDuration('A node that does not respond for this time loses its tasks: 300ms to 20s.', {
      default: '15s',
    }),
    maxSize: words('Maximum size of a call, of all responses to its task, and of its result.', {
      pattern: `^(?=.*[1-9])${SIZE_PATTERN.slice(1)}`,
      default: '1mb',
    }),
    concurrent: count('Maximum concurrent handlers in one process.', { default: 32 }),
    perTool: count('Maximum running tasks of one tool, on all nodes. Further tasks are queued.', { default: 100 }),
    perUser: count('Maximum running tasks of one user and tool, on all nodes. Queued users take turns.', {
      default: 4,
    }),
    openPerUser: count('Maximum unfinished tasks of one user (ten times as many in total). Further calls get 429.', {
      default: 100,
    }),
    kept: count('Maximum tasks of all users. Further calls get 503.', { default: 10_000 }),
  },
  { description: 'Calls of tools with `task` become tasks (io.modelcontextprotocol/tasks).' },
)

/** Task roles, limits and retention. */
export interface TasksOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledTasksOptions extends OptionsOf<typeof OPTIONS, true> {}
