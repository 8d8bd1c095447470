// The extension io.modelcontextprotocol/tasks: tool calls become tasks.

import { definePlugin } from '../../core/internal.ts'
import { createTaskStore, type TaskStore } from '../families/task-store/index.ts'
import { type FilledTasksOptions, OPTIONS, type TasksOptions } from './options.ts'
import { TASK_SCHEMA } from './task-key.ts'

export type { TasksOptions } from './options.ts'
export type { TaskSetting } from './task-key.ts'

const TASK_SHARE = 0.2

export interface TaskSlots {
  /** Tasks and their results. */
  taskStore: TaskStore
}

export const tasks = definePlugin<TasksOptions, FilledTasksOptions>({
  options: OPTIONS,
  provides: ['task'],
  toolKeys: { task: TASK_SCHEMA },
  slots: {
    taskStore: (store, { clock, log }) => {
      const { bus, limits: { maxSize } = {} } = store
      const mostBytes = maxSize === undefined ? undefined : Math.floor(maxSize * TASK_SHARE)
      return createTaskStore(store, { clock, log, bus, mostBytes })
    },
  },
  async setup(host, options) {
    if (host.routes.length === 0) return
    const { setUpTasks } = await import('./set-up.ts')
    setUpTasks(host, options)
  },
})
