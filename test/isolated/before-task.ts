// A tool with `task.before` that only `tools.limits` isolates.
import { defineTool } from '../../core/index.ts'

export const before = defineTool({
  name: 'before',
  task: { use: 'optional', before: () => ({}) },
  handler: () => 'never',
})
