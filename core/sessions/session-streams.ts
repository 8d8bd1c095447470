// The streams of sessions, for transports: for the answers of calls, for what belongs to no call, and for clients that
// come back to one. One node writes each; where the event store is shared, others read along and take over (nodes/).
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../kernel/user.ts'
import type { RequestId } from '../mcp/protocol.ts'
import type { McpRoute } from '../mcp/routes.ts'
import { withoutCredentials } from './callers.ts'
import { createStreamName, type EventId, isStreamOf } from './event-id.ts'
import { followStream } from './nodes/follow-stream.ts'
import { createFollowers } from './nodes/followers.ts'
import type { StreamMessage } from './nodes/messages.ts'
import { takeOver } from './nodes/take-over.ts'
import { isWholeAfter, sendStored } from './read-page.ts'
import { eventsGone, notSure, sessionGone } from './refusals.ts'
import type { ResumableStream } from './resumable-stream.ts'
import type { Session } from './session.ts'
import { cannotResume, createParts, type Resumption, resumeHere, type StreamsSettings } from './stream-parts.ts'
import { readFacts } from './stream-writing.ts'

/** A message that a client POSTed to another node than the one with its stream. */
export interface ForwardedMessage {
  readonly text: string
  /** Without its credentials. */
  readonly headers: IncomingHttpHeaders
  readonly user: User | undefined
}

/** The streams of a node's sessions. */
export interface SessionStreams {
  /** A stream whose messages a client can come back for, with the answers to these requests. */
  open(session: Session, requests: readonly RequestId[]): ResumableStream
  /**
   * The session's new stream for what belongs to no call. It takes over from the one before, which stays open and silent,
   * on whatever node that is.
   */
  openStandalone(session: Session): Promise<ResumableStream>
  /** Throws `invalidRequest` for a place that is not the session's, `sessionNotFound` where nothing is known of its stream. */
  resume(session: Session, place: EventId | undefined): Promise<Resumption>
  /** Brings a message to the node that has the session's one stream; undefined where that is here. Throws `sessionNotFound`. */
  forward(session: Session, message: ForwardedMessage): Promise<void> | undefined
  /** Takes messages that other nodes forwarded, for the sessions of one transport and route. */
  receive(transport: string, route: McpRoute, take: (session: Session, message: ForwardedMessage) => void): void
}

/** Those who wait for more on a stream that another node writes. */
function createWaiting() {
  const waiting = new Map<string, Set<(over: boolean) => void>>()
  return {
    whenWritten(stream: string, task: (over: boolean) => void) {
      const tasks = waiting.get(stream) ?? new Set()
      waiting.set(stream, tasks.add(task))
      return () => {
        tasks.delete(task)
        if (tasks.size === 0) waiting.delete(stream)
      }
    },
    wake(stream: string, over: boolean) {
      for (const task of [...(waiting.get(stream) ?? [])]) task(over)
    },
  }
}

/** Another node has the session's standalone stream; the readers here stay, and hear nothing. */
function release(session: Session, epoch: number) {
  session.relieved = Math.max(session.relieved, epoch)
  if (!session.claim || session.claim.epoch >= epoch) return
  const { stream } = session.claim
  session.claim = undefined
  session.disconnect()
  const left = session.streams.get(stream)
  left?.abandon(true)
  if (left?.attended) session.onDispose(() => left.disconnect())
}

/** `receiveFromPeer` takes what other nodes say that concerns streams. */
export function createSessionStreams(
  settings: StreamsSettings,
): SessionStreams & { readonly receiveFromPeer: (message: StreamMessage) => void } {
  const { node, registry } = settings
  const { name, store, peers, events, sessions } = node
  const takers = new Map<string, (session: Session, message: ForwardedMessage) => void>()
  const followers = createFollowers(node)
  const { whenWritten, wake } = createWaiting()
  const parts = createParts({ ...settings, whenWritten }, followers.tell)

  /** What is left of a stream that is finished. */
  function resumeFinished(session: Session, { stream, seq }: EventId): Resumption {
    const store = events(session)
    return {
      awaited: session,
      async check() {
        if (!(await isWholeAfter(store, session.id, stream, seq))) throw eventsGone()
      },
      async attach(reader) {
        await sendStored({ store, session: session.id, stream, seq, owner: session.holder }, reader)
        // Where something went meanwhile, the client comes back and is told so.
        if (!reader.closed) reader.end()
      },
    }
  }

  return {
    open: (session, requests) => parts.make(session, { writer: parts.writerOf(session, requests) }),
    openStandalone: session => takeOver(parts, session, createStreamName(session.id), false),
    async resume(session, place) {
      if (!place || !isStreamOf(session.id, place.stream)) throw cannotResume()
      const here = session.streams.get(place.stream)
      const shared = parts.sharedWith(session)
      if (!shared) return here ? resumeHere(here, place, parts, session) : resumeFinished(session, place)
      const state = await shared.state(session.id, place.stream)
      if (!state) throw store.unsure ? notSure() : eventsGone()
      const facts = readFacts(state.facts)
      if (facts.requests.length === 0 && !state.finished) {
        const stream = await takeOver(parts, session, place.stream, true)
        return resumeHere(stream, place, parts, session)
      }
      if (here && facts.node === name) return resumeHere(here, place, parts, session)
      return followStream(parts, shared, session, place)
    },
    forward(session, { text, headers, user }) {
      if (session.home === name) return undefined
      const message = { text, headers: withoutCredentials(headers), user }
      const sent = peers.send(session.home, { type: 'message', session: session.digest, ...message })
      return sent.then(async there => {
        if (there) return
        // The stream went with its node, and the session with its stream.
        await registry.end(session, new Error('the node with the stream is gone'))
        throw sessionGone()
      })
    },
    receive: (transport, route, take) => void takers.set(`${transport} ${route.path}`, take),
    receiveFromPeer(message) {
      const session = sessions.get(message.session)
      if (message.type === 'written') wake(message.stream, message.over ?? false)
      else if (message.type === 'follow') followers.add(message)
      else if (!session) return
      else if (message.type === 'released') release(session, message.epoch)
      else takers.get(`${session.transport} ${session.offer.route.path}`)?.(session, message)
    },
  }
}
