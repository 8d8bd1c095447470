// A tool that no host with tasks takes: its thread bounds what it does, and `before` runs in none.
import { defineTool } from '../../core/index.ts'

export const begins = defineTool({
  name: 'begins',
  isolate: true,
  task: { use: 'optional', before: () => ({}) },
  handler: () => 'never',
})
