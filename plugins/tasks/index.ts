// The extension io.modelcontextprotocol/tasks: tool calls become tasks.

import { definePlugin } from '../../core/internal.ts'
import { type FilledTasksOptions, OPTIONS, type TasksOptions } from './options.ts'
import { TASK_SCHEMA } from './task-key.ts'

export type { TasksOptions } from './options.ts'
export type { TaskSetting } from './task-key.ts'

export const tasks = definePlugin<TasksOptions, FilledTasksOptions>({
  options: OPTIONS,
  provides: ['task'],
  toolKeys: { task: TASK_SCHEMA },
  async setup(host, options) {
    if (host.routes.length === 0) return
    const { setUpTasks } = await import('./set-up.ts')
    setUpTasks(host, options)
  },
})
