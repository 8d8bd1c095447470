// The plugin example_name: logs the caller of each tool call.
import { definePlugin } from 'mcp-host/plugin'

export const exampleName = definePlugin({
  options: {
    type: 'object',
    description: 'Logs the caller of each tool call.',
    additionalProperties: false,
    properties: {
      slowAfter: { type: 'integer', minimum: 0, default: 1000, description: 'Warns about slower calls, in ms.' },
    },
  },
  setup(host, { slowAfter }) {
    host.onFinish(({ call, outcome, milliseconds }) => {
      if (call.method !== 'tools/call') return
      const level = milliseconds > slowAfter ? 'warn' : 'info'
      host.log[level]({ tool: call.params['name'], user: call.user?.subject, outcome, milliseconds }, 'tool called')
    })
  },
})
