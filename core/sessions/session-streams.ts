// The streams of sessions, for transports: for the answers of calls, for what belongs to no call, and for clients that
// come back to one. Where nodes share sessions, core/sessions/nodes/ does what goes beyond this node.
import type { IncomingHttpHeaders } from 'node:http'
import type { Route } from '../kernel/route.ts'
import type { User } from '../kernel/user.ts'
import type { RequestId } from '../mcp/protocol.ts'
import { type EventId, isStreamOf } from './event-id.ts'
import { eventsGone } from './nodes/refusals.ts'
import type { OtherMessage } from './nodes/shared-sessions.ts'
import { createSharedStreams, type SharedStreamFunctions } from './nodes/shared-streams.ts'
import type { ResumableStream } from './resumable-stream.ts'
import type { Session } from './session.ts'
import { cannotResume, createParts, type Resumption, resumeHere, type StreamsSettings } from './stream-parts.ts'

export type { Resumption } from './stream-parts.ts'

/** A message that a client POSTed to another node than the one with its stream. */
export interface ForwardedMessage {
  readonly text: string
  /** Without its credentials. */
  readonly headers: IncomingHttpHeaders
  readonly user: User | undefined
}

export interface SessionStreams {
  /** A stream whose messages a client can come back for, with the answers to these requests. */
  open(session: Session, requests: readonly RequestId[]): ResumableStream
  /**
   * The session's new stream for what belongs to no call. It takes over from the one before, which stays open and silent,
   * on whatever node that is.
   */
  openStandalone(session: Session): ResumableStream | Promise<ResumableStream>
  /** Throws `invalidRequest` for a place that is not the session's, `sessionNotFound` where what came after it is gone. */
  resume(session: Session, place: EventId | undefined): Promise<Resumption>
  /** Brings a message to the node that has the session's one stream; undefined where that is here. Throws `sessionNotFound`. */
  forward(session: Session, message: ForwardedMessage): Promise<void> | undefined
  /** Takes messages that other nodes forwarded, for the sessions of one transport and route. */
  receive(transport: string, route: Route, take: (session: Session, message: ForwardedMessage) => void): void
}

export function createSessionStreams(
  settings: StreamsSettings,
): SessionStreams & { readonly receiveFromPeer: (message: OtherMessage) => void } {
  const parts = createParts(settings)
  const { registry, events } = settings
  const takers = new Map<string, (session: Session, message: ForwardedMessage) => void>()
  let functions: SharedStreamFunctions | undefined

  function shared(): SharedStreamFunctions | undefined {
    const { shared } = registry()
    if (shared) functions ??= createSharedStreams(shared, parts)
    return functions
  }

  /** What is left of a stream that is finished. */
  async function resumeFinished(session: Session, { stream, seq }: EventId): Promise<Resumption> {
    const stored = await events().after(session.id, stream, seq)
    if (!stored) throw eventsGone()
    return {
      awaited: session,
      async attach(reader) {
        for (const { seq, message } of stored) {
          if (!reader.send(message, `${stream}.${seq}`)) return
          await reader.drained()
        }
        reader.end()
      },
    }
  }

  return {
    open: (session, requests) => shared()?.open(session, requests) ?? parts.make(session),
    openStandalone(session) {
      const opened = shared()?.openStandalone(session)
      if (opened) return opened
      const stream = parts.make(session)
      parts.connect(session, message => stream.write(message))
      parts.addStandalone(session, stream)
      return stream
    },
    async resume(session, place) {
      if (!place || !isStreamOf(session.id, place.stream)) throw cannotResume()
      const together = shared()
      if (together) return together.resume(session, place)
      const stream = session.streams.get(place.stream)
      return stream ? resumeHere(stream, place, parts, session) : resumeFinished(session, place)
    },
    forward: (session, message) => shared()?.forward(session, message),
    receive: (transport, route, take) => void takers.set(`${transport} ${route.path}`, take),
    receiveFromPeer(message) {
      if (message.type !== 'message') return shared()?.receive(message)
      const session = registry().shared?.local.get(message.session)
      if (session) takers.get(`${session.transport} ${session.opened.route.path}`)?.(session, message)
    },
  }
}
