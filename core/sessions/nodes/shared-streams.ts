// Streams that every node may go on with: one node writes each, others read along in the store, and take over when
// its node is gone or its client comes to them.
import type { RequestId } from '../../mcp/protocol.ts'
import { createStreamName, type EventId } from '../event-id.ts'
import type { SharedStreams } from '../event-store.ts'
import type { ResumableStream } from '../resumable-stream.ts'
import type { Session } from '../session.ts'
import type { ForwardedMessage } from '../session-streams.ts'
import { type Resumption, resumeHere, type StreamParts } from '../stream-parts.ts'
import type { WriterSettings } from '../stream-writing.ts'
import { followStream } from './follow-stream.ts'
import { createFollowers } from './followers.ts'
import { eventsGone, notSure, sessionGone } from './refusals.ts'
import type { OtherMessage, SharedSessions } from './shared-sessions.ts'
import { readFacts, writeFacts } from './stream-facts.ts'
import { takeOver } from './take-over.ts'
import { withoutCredentials } from './without-credentials.ts'

export interface SharedStreamFunctions {
  open(session: Session, requests: readonly RequestId[]): ResumableStream
  openStandalone(session: Session): Promise<ResumableStream>
  resume(session: Session, place: EventId): Promise<Resumption>
  forward(session: Session, message: ForwardedMessage): Promise<void> | undefined
  receive(message: OtherMessage): void
}

/** What functions of this folder work with. */
export interface SharedParts extends StreamParts {
  readonly sessions: SharedSessions
  /** Undefined where streams live in the memory of their node. */
  readonly streams: SharedStreams | undefined
  writerOf(session: Session, facts: string, more?: Partial<WriterSettings>): WriterSettings | undefined
  /** Resolves when a stream may have more. */
  whenWritten(stream: string, task: () => void): () => void
}

export function createSharedStreams(sessions: SharedSessions, base: StreamParts): SharedStreamFunctions {
  const { node, peers } = sessions
  const { registry, events } = base
  const followers = createFollowers(sessions)
  const waiting = new Map<string, Set<() => void>>()

  const parts: SharedParts = {
    ...base,
    sessions,
    streams: events().shared,
    writerOf(session, facts, more = {}) {
      if (!events().shared) return undefined
      const written = (stream: string) => followers.tell(session, stream)
      return { epoch: 0, facts, leaving: () => registry().released, written, ...more }
    },
    whenWritten(stream, task) {
      const tasks = waiting.get(stream) ?? new Set()
      waiting.set(stream, tasks.add(task))
      return () => {
        tasks.delete(task)
        if (tasks.size === 0) waiting.delete(stream)
      }
    },
  }

  /** Another node has the session's standalone stream; the readers here stay, and hear nothing. */
  function release(session: Session, epoch: number) {
    const { shared } = session
    if (!shared) return
    shared.relieved = Math.max(shared.relieved ?? 0, epoch)
    if (!shared.claim || shared.claim.epoch >= epoch) return
    const { stream } = shared.claim
    shared.claim = undefined
    session.disconnect()
    const left = session.streams.get(stream)
    left?.abandon(true)
    if (left?.attended) session.onDispose(() => left.disconnect())
  }

  return {
    open: (session, requests) =>
      base.make(session, { writer: parts.writerOf(session, writeFacts({ node, requests })) }),
    openStandalone: session => takeOver(parts, session, createStreamName(session.id), false),
    async resume(session, place) {
      const here = session.streams.get(place.stream)
      if (!parts.streams) {
        if (!here) throw eventsGone()
        return resumeHere(here, place, parts, session)
      }
      const state = await parts.streams.state(session.id, place.stream)
      if (!state) throw sessions.store.unsure ? notSure() : eventsGone()
      const facts = readFacts(state.facts)
      if (facts.requests.length === 0 && !state.finished) {
        const stream = await takeOver(parts, session, place.stream, true)
        return resumeHere(stream, place, parts, session)
      }
      if (here && facts.node === node) return resumeHere(here, place, parts, session)
      return followStream(parts, session, place)
    },
    forward(session, { text, headers, user }) {
      const { shared } = session
      if (!shared || shared.home === node) return undefined
      return peers
        .send(shared.home, {
          type: 'message',
          session: session.digest,
          text,
          headers: withoutCredentials(headers),
          user,
        })
        .then(async there => {
          if (there) return
          // The stream went with its node, and the session with its stream.
          await sessions.end(session, new Error('the node with the stream is gone'))
          throw sessionGone()
        })
    },
    receive(message) {
      const session = sessions.local.get(message.session)
      if (message.type === 'written') for (const task of [...(waiting.get(message.stream) ?? [])]) task()
      else if (message.type === 'follow') followers.add(message)
      else if (message.type === 'released' && session) release(session, message.epoch)
    },
  }
}
