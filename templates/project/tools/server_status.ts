// A tool that uses the context, the second argument of each handler.
import { defineTool } from 'mcp-host'

export const serverStatus = defineTool({
  name: 'server_status',
  title: 'Server status',
  description: 'Returns the uptime and memory of this server, and the caller.',
  annotations: { readOnlyHint: true, openWorldHint: false },
  output: {
    type: 'object',
    properties: {
      uptimeSeconds: { type: 'integer' },
      memoryMegabytes: { type: 'integer' },
      caller: { type: 'string' },
      client: { type: 'string' },
    },
    required: ['uptimeSeconds', 'memoryMegabytes', 'caller', 'client'],
  },
  handler: (_, { user, client }) => ({
    uptimeSeconds: Math.floor(process.uptime()),
    memoryMegabytes: Math.round(process.memoryUsage().rss / 1_000_000),
    // The user of the token. Undefined if the route requires no token.
    caller: user?.subject ?? 'anonymous',
    client: client.info?.name ?? 'unknown',
  }),
})
