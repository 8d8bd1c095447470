// GET <route>/sse: a new session, whose stream tells where its messages go and then carries every answer
// (2024-11-05 basic/transports, "HTTP with SSE"). When it closes, the session is over.
import type { IncomingHttpHeaders } from 'node:http'
import type { HostContext, McpRoute } from '../../core/index.ts'
import { heardBy, openEventStream, RETRY, shuttingDown, type Transport, whenClosed } from '../../core/transport.ts'

/** Where a session's messages go, as a path: the client resolves it against the stream's own address. */
function endpointOf(route: McpRoute, params: Readonly<Record<string, string>>, id: string): string {
  const { pathname } = new URL(route.url(params))
  return `${pathname.replace(/\/$/, '')}/message?sessionId=${id}`
}

export function createStreamGet(host: Transport, route: McpRoute) {
  return async (ctx: HostContext) => {
    // Its answers flow from here alone: it would end with this node.
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
      ended.catch(err => host.log.warn({ err }, 'other nodes could not be told that a session ended'))
    })
    const stream = openEventStream(ctx.res, { log: host.log })
    const heard = heardBy(stream, session.offer, user)
    session.connect({
      send: message => heard.send(message),
      close(retry) {
        // A host that closes lets what runs answer first: all answers go this way, and the session ends with it.
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
