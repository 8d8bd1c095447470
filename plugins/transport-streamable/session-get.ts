// Serves GET and DELETE of sessions: new and resumed streams, and the end of a session (2025-11-25 basic/transports).
import { HostError } from '../../core/index.ts'
import { addCount } from '../../core/internal.ts'
import type { HostContext, McpRoute } from '../../core/plugin.ts'
import {
  type EventStream,
  filterUpdates,
  isModernRevision,
  MAX_OPEN_GETS,
  type Offer,
  openEventStream,
  parseEventId,
  RETRY,
  type ResumableStream,
  type Session,
  type Transport,
  whenClosed,
} from '../../core/transport.ts'
import { isPrimed } from './exchange.ts'
import { readVersionHeader, requireEventStream } from './headers.ts'
import { checkVersion, findSession } from './session-post.ts'

/** Refuses a version without sessions with `methodNotAllowed`. */
function refuseModern({ req, method }: HostContext) {
  const revision = readVersionHeader(req.headers)
  if (!isModernRevision(revision)) return
  throw new HostError('methodNotAllowed', { detail: `${method} in ${revision}`, headers: { Allow: 'POST' } })
}

export function createSessionGetHandlers(host: Transport, route: McpRoute) {
  /** Number of open GETs by session, by stream, or by the name of a stream before it is found. */
  const openGets = new Map<Session | ResumableStream | string, number>()

  function acquireSlot(target: Session | ResumableStream | string): () => void {
    if ((openGets.get(target) ?? 0) >= MAX_OPEN_GETS)
      throw new HostError('conflict', { detail: `${MAX_OPEN_GETS} streams are open for the same messages` })
    addCount(openGets, target, 1)
    return () => addCount(openGets, target, -1)
  }

  function openReader(session: Session, offer: Offer, { res, state }: HostContext): EventStream {
    const { user, params } = state
    whenClosed(res, session.use())
    const reader = openEventStream(res, { headers: { 'Mcp-Session-Id': session.id }, log: host.log })
    whenClosed(
      res,
      host.watchCaller({ route, params, user }, () => reader.end(RETRY)),
    )
    return filterUpdates(reader, offer, user)
  }

  /** Opens a stream for messages that belong to no call. The previous one stays open and silent. */
  async function openStandalone(session: Session, offer: Offer, ctx: HostContext) {
    const release = acquireSlot(session)
    let stream: ResumableStream
    try {
      stream = await host.streams.openStandalone(session)
    } catch (error) {
      release()
      throw error
    }
    ctx.respond = false
    const reader = openReader(session, offer, ctx)
    whenClosed(ctx.res, release)
    if (isPrimed(session)) stream.prime(reader, RETRY)
    void stream.attach(reader, 0)
    if (host.sessions.released) stream.disconnect(RETRY)
  }

  /** Resumes a stream. It counts until its response is closed and reading has ended, even after a disconnection. */
  async function resume(session: Session, offer: Offer, lastEventId: string, ctx: HostContext) {
    const position = parseEventId(lastEventId)
    const releases: Array<() => void> = []
    const release = () => {
      for (const releaseSlot of releases) releaseSlot()
    }
    try {
      if (position) releases.push(acquireSlot(`${session.id} ${position.stream}`))
      const { awaited, check, attach } = await host.streams.resume(session, position)
      releases.push(acquireSlot(awaited))
      await check()
      ctx.respond = false
      // A closed connection must not take the stream from another reader.
      if (!ctx.res.destroyed) await attach(openReader(session, offer, ctx))
    } catch (error) {
      release()
      throw error
    }
    whenClosed(ctx.res, release)
  }

  async function get(ctx: HostContext) {
    refuseModern(ctx)
    requireEventStream(ctx.req.headers.accept)
    const lastEventId = ctx.req.headers['last-event-id']
    checkVersion(ctx)
    const session = await findSession(host, route, ctx)
    const offer = await session.offerFor(ctx.state.user)
    if (typeof lastEventId === 'string') return resume(session, offer, lastEventId, ctx)
    return openStandalone(session, offer, ctx)
  }

  async function end(ctx: HostContext) {
    refuseModern(ctx)
    checkVersion(ctx)
    await host.sessions.end(await findSession(host, route, ctx), new Error('the client ended the session'))
    ctx.status = 204
  }

  return { get, end }
}
