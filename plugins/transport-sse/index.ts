// HTTP with SSE, the transport of revision 2024-11-05: GET <route>/sse opens a session and its one stream, POST
// <route>/message takes messages; every answer flows on the stream. For clients that know nothing newer.
import { type BuiltInOptions, definePlugin, StartError } from '../../core/index.ts'
import { HANDSHAKE_REVISIONS, transportOf } from '../../core/transport.ts'
import { createMessagePost } from './message.ts'
import { createStreamGet } from './stream.ts'

export type TransportSseOptions = BuiltInOptions['transport-sse']

/** Names that would make an address of a category the same as one of ours. */
const RESERVED = ['sse', 'message']

export const transportSse = definePlugin<TransportSseOptions>({
  options: {
    type: 'object',
    description: `HTTP with SSE (${HANDSHAKE_REVISIONS.at(-1)}): GET <route>/sse and POST <route>/message.`,
    additionalProperties: false,
    properties: {
      maxConcurrent: {
        type: 'integer',
        minimum: 1,
        description:
          'Fewer requests of one session that may run at once than sessions.maxCallsPerSession; more are answered 429.',
      },
    },
  },
  provides: ['transport'],
  setup(host, { maxConcurrent }) {
    for (const { path, stateless, toolsets } of host.routes) {
      const at = ['routes', path]
      if (stateless) {
        const fix = `set plugins: { '${host.name}': false } on the route, or stateless: false`
        host.report(new StartError(`it is stateless, and ${host.name} needs sessions; ${fix}`, { at }))
      }
      const clash = path.includes(':') ? toolsets.find(name => RESERVED.includes(name)) : undefined
      if (clash !== undefined) {
        const why = `the toolset "${clash}" would have the address of the SSE transport; rename it`
        host.report(new StartError(why, { at, also: [{ at: ['toolsets', clash] }] }))
      }
    }
    host.revisions(() => HANDSHAKE_REVISIONS)
    host.serving(services => {
      const transport = transportOf(host, services)
      host.routeEndpoint('/sse', route => ({ methods: { GET: createStreamGet(transport, route) } }))
      host.routeEndpoint('/message', route => {
        return { methods: { POST: createMessagePost(transport, route, maxConcurrent) } }
      })
    })
  },
})
