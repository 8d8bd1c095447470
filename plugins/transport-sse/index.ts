// The HTTP+SSE transport (2024-11-05): GET <route>/sse opens the stream, POST <route>/message takes messages.
import type { IncomingHttpHeaders } from 'node:http'
import { closed, count, definePlugin } from '../../core/internal.ts'
import { type HostContext, type McpRoute, type OptionsOf, StartError } from '../../core/plugin.ts'
import {
  HANDSHAKE_REVISIONS,
  heardBy,
  openEventStream,
  RETRY,
  shuttingDown,
  type Transport,
  transportOf,
  whenClosed,
} from '../../core/transport.ts'
import { createMessagePost } from './message.ts'

/** Returns the path for messages of a session. The client resolves it against the URL of the stream. */
function endpointOf(route: McpRoute, params: Readonly<Record<string, string>>, id: string): string {
  const { pathname } = new URL(route.url(params))
  return `${pathname.replace(/\/$/, '')}/message?sessionId=${id}`
}

function createStreamGet(host: Transport, route: McpRoute) {
  return async (ctx: HostContext) => {
    // Only this node can send the session's responses, so the session would end with the node.
    if (host.sessions.released) throw shuttingDown()
    const { params, user } = ctx.state
    const { headers } = ctx.req as { headers: IncomingHttpHeaders }
    const signal = () => new AbortController().signal
    const facts = { route, params, user, headers, ip: ctx.ip, signal, admitted: true as const }
    const session = await host.sessions.open(facts, host.name)
    const leave = session.use()
    ctx.respond = false
    whenClosed(ctx.res, () => {
      leave()
      const ended = host.sessions.end(session, new Error('the client closed the stream'))
      ended.catch(err => host.log.warn({ code: 'MH1413', err }, 'could not notify other nodes that a session ended'))
    })
    const stream = openEventStream(ctx.res, { log: host.log })
    const heard = heardBy(stream, session.offer, user)
    session.connect({
      send: message => heard.send(message),
      close(retry) {
        // A closing host first sends the responses of running calls, which all use this stream.
        if (retry === undefined) stream.end(RETRY)
      },
    })
    whenClosed(
      ctx.res,
      host.watchCaller({ route, params, user }, () => stream.end(RETRY)),
    )
    stream.event({ event: 'endpoint', data: endpointOf(route, params, session.id) })
  }
}

/** Toolset names whose route paths would conflict. */
const RESERVED = ['sse', 'message']

const OPTIONS = closed(
  {
    maxConcurrent: count(
      'Maximum concurrent requests of one session, if lower than sessions.maxCallsPerSession. Further requests get 429.',
    ),
  },
  { description: `HTTP with SSE (${HANDSHAKE_REVISIONS.at(-1)}): GET <route>/sse and POST <route>/message.` },
)

export interface TransportSseOptions extends OptionsOf<typeof OPTIONS> {}

export const transportSse = definePlugin<TransportSseOptions>({
  options: OPTIONS,
  provides: ['transport'],
  setup(host, { maxConcurrent }) {
    for (const { path, stateless, toolsets } of host.routes) {
      const at = ['routes', path]
      if (stateless) {
        const fix = `set plugins: { '${host.name}': false } on the route, or stateless: false`
        host.report(new StartError('MH2801', `it is stateless, and ${host.name} needs sessions; ${fix}`, { at }))
      }
      const clash = path.includes(':') ? toolsets.find(name => RESERVED.includes(name)) : undefined
      if (clash !== undefined) {
        const why = `the path of the toolset "${clash}" is a path of the SSE transport; rename the toolset`
        host.report(new StartError('MH1205', why, { at, also: [{ at: ['toolsets', clash] }] }))
      }
    }
    host.endpoint('/sse', route => ({ methods: { GET: createStreamGet(transportOf(host), route) } }))
    host.endpoint('/message', route => {
      return { methods: { POST: createMessagePost(transportOf(host), route, maxConcurrent) } }
    })
  },
})
