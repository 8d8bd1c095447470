// How the server does, and who asks: a tool that uses its context, the second argument of every handler.
import { defineTool } from 'mcp-host'

export const serverStatus = defineTool({
  name: 'server_status',
  title: 'Status of this server',
  description: 'Tells for how long this server has been running, how much memory it uses, and who is asking.',
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
    // Who the token is of; nobody is known where the route asks for none.
    caller: user?.subject ?? 'anonymous',
    client: client.info?.name ?? 'unknown',
  }),
})
