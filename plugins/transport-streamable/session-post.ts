// Serves POSTs of sessions (2025-03-26 to 2025-11-25). Calls continue when the connection closes.
import { HostError } from '../../core/index.ts'
import type { HostContext, McpRoute } from '../../core/plugin.ts'
import {
  HANDSHAKE_REVISIONS,
  isHandshakeRevision,
  MODERN_REVISION,
  type RequestId,
  receiveMessage,
  requireBatches,
  type Session,
  serveRequests,
  type Transport,
  type ValidMessage,
} from '../../core/transport.ts'
import { unsupported } from '../families/per-request/index.ts'
import { type ExchangeContext, PostExchange, type Request, respondAccepted } from './exchange.ts'
import { readVersionHeader } from './headers.ts'

const sessionHint = ({ method }: HostContext) =>
  method === 'POST'
    ? `call initialize first and send the Mcp-Session-Id of its response; or send this as a ${MODERN_REVISION} request, with ` +
      'its _meta and headers; or have the server set stateless: true on this route'
    : 'send the Mcp-Session-Id of the response to initialize'

/** Finds the session. `requests`: calls in this message. Throws `sessionIdMissing`, and like `SessionRegistry.find`. */
export function findSession(
  host: Transport,
  route: McpRoute,
  ctx: HostContext,
  requests: readonly RequestId[] = [],
): Session | Promise<Session> {
  const id = ctx.req.headers['mcp-session-id']
  if (typeof id !== 'string') throw new HostError('sessionIdMissing', { detail: sessionHint(ctx) })
  const { params, user } = ctx.state
  return host.sessions.find(id, { route, params, user, ip: ctx.ip, authorized: true }, host.name, requests)
}

/** Throws `unsupportedVersion` for a version header without a handshake version. The session continues. */
export function checkVersion({ req }: HostContext): void {
  const header = readVersionHeader(req.headers)
  if (header !== undefined && !isHandshakeRevision(header)) throw unsupported(header, HANDSHAKE_REVISIONS)
}

export function createSessionPostHandler(host: Transport, route: McpRoute, context: ExchangeContext) {
  /** Not async, because a promise per call would cost time. */
  function serveAll(session: Session, requests: readonly Request[], ctx: HostContext, batch: boolean) {
    const { req, state } = ctx
    const sender = { headers: req.headers, user: state.user, state, refusalRecorded: requests.length === 1 }
    let exchange: PostExchange | undefined
    return serveRequests(host, session, requests, sender, () => {
      ctx.respond = false
      exchange ??= new PostExchange(context, { ctx, requests, batch, session })
      return requests.length === 1 ? exchange : exchange.replyToOne()
    })
  }

  async function openSession(message: Request, ctx: HostContext) {
    const { params, user } = ctx.state
    const { headers } = ctx.req
    const signal = () => new AbortController().signal
    const facts = { route, params, user, headers, ip: ctx.ip, signal, authorized: true as const }
    const session = await host.sessions.open(facts, host.name)
    try {
      await serveAll(session, [message], ctx, false)
    } finally {
      if (session.revision === undefined) await host.sessions.end(session, new Error('the handshake failed'))
    }
  }

  async function namesSession(ctx: HostContext): Promise<boolean> {
    if (ctx.req.headers['mcp-session-id'] === undefined) return false
    try {
      await findSession(host, route, ctx)
      return true
    } catch (error) {
      if (HostError.is(error) && error.kind === 'sessionNotFound') return false
      throw error
    }
  }

  return async function serve(messages: readonly ValidMessage[], ctx: HostContext, batch: boolean): Promise<void> {
    const [first] = messages
    const isInitialize = first?.kind === 'request' && first.method === 'initialize'
    if (first && isInitialize && !(await namesSession(ctx))) return openSession(first, ctx)
    if (isInitialize) checkVersion(ctx)
    const requests: Request[] = []
    const ids: RequestId[] = []
    for (const message of messages) {
      if (message.kind !== 'request') continue
      requests.push(message)
      ids.push(message.id)
    }
    const found = findSession(host, route, ctx, ids)
    const session = found instanceof Promise ? await found : found
    try {
      if (isInitialize && session.revision !== undefined) {
        throw new HostError('invalidRequest', { detail: 'the session is already initialized' })
      }
      if (batch) requireBatches(session.revision)
      for (const message of messages) if (message.kind !== 'request') await receiveMessage(session, message)
      if (requests.length === 0) return respondAccepted(ctx)
      await serveAll(session, requests, ctx, batch)
    } catch (error) {
      session.abandon(ids)
      throw error
    }
  }
}
