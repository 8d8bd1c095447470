// Stores tasks in any store: for the plugin that runs them, and for plugins that keep or show them.
export { createTaskStore, type TaskStore } from './create-task-store.ts'
export {
  hasEnded,
  type NewTask,
  type QueueDepth,
  type QueueOffer,
  type TaskChange,
  type TaskEnd,
  type TaskLease,
  type TaskLimits,
  type TaskRecord,
  type TaskRequest,
  type TaskSummary,
} from './task-store.ts'
