// The extension io.modelcontextprotocol/tasks: tool calls become tasks.

import { definePlugin } from '../../core/internal.ts'
import { type FilledTasksOptions, OPTIONS, type TasksOptions } from './options.ts'

export { createMemoryTaskStore } from './memory-store.ts'
export type { TasksOptions } from './options.ts'

export const tasks = definePlugin<TasksOptions, FilledTasksOptions>({
  options: OPTIONS,
  provides: ['task'],
  async setup(host, options) {
    if (host.routes.length === 0) return
    const { setUpTasks } = await import('./set-up.ts')
    setUpTasks(host, options)
  },
})
