// GET and DELETE of sessions: the stream for messages that belong to no call, coming back to a stream that broke, and
// the end of a session (2025-11-25 basic/transports).
import {
  type EventStream,
  type HostContext,
  HostError,
  MODERN_REVISION,
  openEventStream,
  type PluginHost,
  parseEventId,
  RETRY,
  type ResumableStream,
  type Route,
  type Session,
  whenClosed,
  whenTokenExpires,
} from '../../core/index.ts'
import { demandStream } from './negotiate.ts'
import { checkVersion, findSession, isPrimed } from './session-post.ts'

/** GETs that may wait for the same messages at once: a laptop that slept is not locked out by its own past. */
export const MAX_OPEN_GETS = 3

/** A revision without sessions has neither verb, whatever the session header says. */
function refuseModern({ req, method }: HostContext) {
  if (req.headers['mcp-protocol-version'] !== MODERN_REVISION) return
  throw new HostError('methodNotAllowed', { detail: `${method} in ${MODERN_REVISION}`, headers: { Allow: 'POST' } })
}

export function createSessionGets(host: PluginHost, route: Route) {
  /** By what they wait for: a session's own messages, or a stream that broke. */
  const openGets = new WeakMap<Session | ResumableStream, number>()

  /** Throws `conflict` where too many wait for the same. */
  function admit(awaited: Session | ResumableStream) {
    if ((openGets.get(awaited) ?? 0) < MAX_OPEN_GETS) return
    throw new HostError('conflict', { detail: `${MAX_OPEN_GETS} streams are open for the same messages` })
  }

  /** The response as a stream; the session counts as used, and the stream as one of three, until it closes. */
  function openReader(session: Session, awaited: Session | ResumableStream, { res, state }: HostContext): EventStream {
    openGets.set(awaited, (openGets.get(awaited) ?? 0) + 1)
    const leave = session.use()
    whenClosed(res, () => {
      openGets.set(awaited, (openGets.get(awaited) ?? 1) - 1)
      leave()
    })
    const reader = openEventStream(res, {
      headers: { 'Mcp-Session-Id': session.id },
      stalled: waiting => host.log.warn({ waiting }, 'closed a stream whose reader does not read'),
    })
    whenClosed(
      res,
      whenTokenExpires(state.user, () => reader.end(RETRY)),
    )
    return reader
  }

  /** A new stream for what belongs to no call. It takes over from the one before, which stays open and silent. */
  function openStandalone(session: Session, ctx: HostContext) {
    admit(session)
    ctx.respond = false
    const stream = host.openStream(session)
    const reader = openReader(session, session, ctx)
    if (isPrimed(session)) stream.prime(reader, RETRY)
    void stream.attach(reader, 0)
    session.connect({
      send: message => stream.write(message),
      close(retry) {
        for (const each of standalone.get(session) ?? []) each.disconnect(retry)
      },
    })
    forgetOldest(session, stream)
  }

  const standalone = new WeakMap<Session, ResumableStream[]>()

  /** Few streams can be come back to: the oldest that nobody is connected to goes first, for its end would be seen. */
  function forgetOldest(session: Session, stream: ResumableStream) {
    const streams = [...(standalone.get(session) ?? []), stream]
    const excess =
      streams.length > MAX_OPEN_GETS ? (streams.find(({ attended }) => !attended) ?? streams[0]) : undefined
    excess?.finish()
    standalone.set(
      session,
      streams.filter(one => one !== excess),
    )
  }

  async function resume(session: Session, lastEventId: string, ctx: HostContext) {
    const place = parseEventId(lastEventId)
    const gone = new HostError('invalidRequest', { detail: 'nothing can be resumed from this Last-Event-ID' })
    if (!place) throw gone
    const stream = session.streams.get(place.stream)
    if (stream) admit(stream)
    const events = stream?.endsAt(place.seq) ? [] : await host.storedEvents(session, place.stream, place.seq)
    if (!events) throw gone
    ctx.respond = false
    const reader = openReader(session, stream ?? session, ctx)
    if (stream) {
      if (!(await stream.attach(reader, place.seq))) reader.end()
      return
    }
    for (const { seq, message } of events) {
      if (!reader.send(message, `${place.stream}.${seq}`)) return
      await reader.drained()
    }
    reader.end()
  }

  async function get(ctx: HostContext) {
    refuseModern(ctx)
    demandStream(ctx.req.headers.accept)
    const lastEventId = ctx.req.headers['last-event-id']
    checkVersion(ctx)
    const session = findSession(host, route, ctx)
    if (typeof lastEventId === 'string') return resume(session, lastEventId, ctx)
    openStandalone(session, ctx)
  }

  function end(ctx: HostContext) {
    refuseModern(ctx)
    checkVersion(ctx)
    findSession(host, route, ctx).dispose(new Error('the client ended the session'))
    ctx.status = 204
  }

  return { get, end }
}
