// The plugin example_name: logs the caller of each tool call.
import { definePlugin } from 'mcp-host/plugin'

export interface ExampleNameOptions {
  /** Calls that take longer, in milliseconds, are logged as warnings. Default 1000. */
  slowAfter?: number
}

export const exampleName = definePlugin<ExampleNameOptions, Required<ExampleNameOptions>>({
  // The compiler checks that this schema matches the type above.
  options: {
    type: 'object',
    description: 'Logs the caller of each tool call.',
    additionalProperties: false,
    properties: {
      slowAfter: { type: 'integer', minimum: 0, default: 1000, description: 'Warns about slower calls, in ms.' },
    },
  },
  setup(host, { slowAfter }) {
    host.onFinish(({ method, item, call, outcome, milliseconds }) => {
      if (method !== 'tools/call') return
      const level = milliseconds > slowAfter ? 'warn' : 'info'
      host.log[level]({ tool: item?.name, user: call?.user?.subject, outcome, milliseconds }, 'tool called')
    })
  },
})
