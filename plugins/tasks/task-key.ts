// The tool key `task`: its type and JSON Schema.
import type { CallContext, JsonSchema } from '../../core/index.ts'

type TaskUse = 'optional' | 'required'

/** Runs calls of a tool as tasks. */
export type TaskSetting =
  | TaskUse
  | {
      use: TaskUse
      /** `safe`: the task is run again after a node failure. */
      retry?: 'safe'
      /** Runs within the call, and returns the arguments of the task. */
      before?(args: never, ctx: CallContext): object | Promise<object>
    }

const USE: JsonSchema = { enum: ['optional', 'required'] }

export const TASK_SCHEMA: JsonSchema = {
  anyOf: [
    USE,
    {
      type: 'object',
      additionalProperties: false,
      properties: {
        use: USE,
        retry: { enum: ['safe'] },
        before: { callable: true, description: 'Returns the arguments of the task.' },
      },
      required: ['use'],
    },
  ],
  description: 'Calls become tasks for clients that support tasks.',
}

export const useOf = (task: TaskSetting): TaskUse => (typeof task === 'object' ? task.use : task)
