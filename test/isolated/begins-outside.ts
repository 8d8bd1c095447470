// An invalid tool for hosts with tasks: it is isolated, but `before` cannot run in its thread.
import { defineTool } from '../../core/index.ts'

export const begins = defineTool({
  name: 'begins',
  isolate: true,
  task: { use: 'optional', before: () => ({}) },
  handler: () => 'never',
})
