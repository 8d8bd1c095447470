// What the functions about a session's streams share, on one node and across them: how a stream is made, how a session
// is connected to one, and how a client comes back to one that is here.

import { HostError } from '../http/errors.ts'
import { type EventStream, RETRY } from '../http/sse.ts'
import type { RequestId } from '../mcp/protocol.ts'
import type { EventId } from './event-id.ts'
import type { SharedStreams } from './event-store.ts'
import { isWholeAfter } from './read-page.ts'
import { eventsGone } from './refusals.ts'
import type { SessionRegistry } from './registry.ts'
import { createResumableStream, type ResumableStream, type ResumableStreamSettings } from './resumable-stream.ts'
import type { Session } from './session.ts'
import { type WriterSettings, writeFacts } from './stream-writing.ts'
import type { ThisNode } from './this-node.ts'

/** Standalone streams of a session that can be come back to. */
const MAX_STANDALONE = 3

/** What a client that comes back is given. */
export interface Resumption {
  /** What it waits for; connections are counted by it. */
  readonly awaited: Session | ResumableStream
  /** Asks the store, before an answer begins. Throws `sessionNotFound` where something of what the client missed is gone. */
  check(): Promise<void>
  /** Sends what the client missed, and what comes; ends the reader where it cannot. Resolves when it reads no more of the past. */
  attach(reader: EventStream): Promise<void>
}

export interface StreamsSettings {
  readonly node: ThisNode
  readonly registry: SessionRegistry
}

/** What the parts of this share: how a stream is made, and how a session is connected to one. */
export interface StreamParts extends StreamsSettings {
  /** The streams of a session, where other nodes could go on with them; undefined where nobody else has the session. */
  sharedWith(session: Session): SharedStreams | undefined
  /** How this node writes a stream that answers these requests; undefined where nobody else could go on with it. */
  writerOf(session: Session, requests: readonly RequestId[], more?: Partial<WriterSettings>): WriterSettings | undefined
  /** Calls `task` when a stream may have more; `over`: its writer writes it no more. Gives what ends that. */
  whenWritten(stream: string, task: (over: boolean) => void): () => void
  make(session: Session, more?: Partial<ResumableStreamSettings>): ResumableStream
  /** Sends what belongs to no call to `send`; when the host closes, whoever reads is told to come back. */
  connect(session: Session, send: (message: string, place?: string) => void): void
  addStandalone(session: Session, stream: ResumableStream): void
  /** Whether it is for what belongs to no call. */
  isStandalone(session: Session, stream: ResumableStream): boolean
}

export const cannotResume = () =>
  new HostError('invalidRequest', { detail: 'this Last-Event-ID is not one of this session' })

/** `written` is called when there is more on a stream in a shared store. */
export function createParts(
  settings: StreamsSettings & Pick<StreamParts, 'whenWritten'>,
  written: (session: Session, stream: string) => void,
): StreamParts {
  const { node, registry } = settings
  const { name: own, store, events, log } = node
  const leaving = () => registry.released
  const sharedWith = (session: Session) => (store.shared ? events(session).shared : undefined)
  const standalone = new WeakMap<Session, readonly ResumableStream[]>()
  return {
    ...settings,
    sharedWith,
    writerOf(session, requests, more = {}) {
      if (!sharedWith(session)) return undefined
      const facts = writeFacts({ node: own, requests })
      return { epoch: 0, facts, leaving, written: stream => written(session, stream), ...more }
    },
    make(session, more = {}) {
      const stream = createResumableStream({
        store: events(session),
        session: session.id,
        owner: session.holder,
        finished: name => {
          if (session.streams.get(name) === stream) session.streams.delete(name)
        },
        failed: err => log.error({ err }, 'an event could not be stored: nobody can come back to its stream'),
        ...more,
      })
      session.streams.set(stream.name, stream)
      return stream
    },
    connect(session, send) {
      session.connect({
        send,
        close(retry) {
          for (const each of standalone.get(session) ?? []) each.disconnect(retry)
        },
      })
    },
    isStandalone: (session, { name }) => standalone.get(session)?.some(other => other.name === name) ?? false,
    /** The oldest that nobody is connected to goes first, for its end would be seen. */
    addStandalone(session, stream) {
      const streams = [...(standalone.get(session) ?? []).filter(({ name }) => name !== stream.name), stream]
      const excess =
        streams.length > MAX_STANDALONE ? (streams.find(({ attended }) => !attended) ?? streams[0]) : undefined
      excess?.finish()
      standalone.set(
        session,
        streams.filter(one => one !== excess),
      )
    },
  }
}

/** A stream of this node: what it has after a place. `check` is to be asked soon. */
export function resumeHere(
  stream: ResumableStream,
  { seq, stream: name }: EventId,
  { node, registry, isStandalone }: StreamParts,
  session: Session,
): Resumption {
  return {
    awaited: stream,
    async check() {
      const known = stream.endsAt(seq) || (await isWholeAfter(node.events(session), session.id, name, seq))
      if (!known || !stream.isWhole) throw eventsGone()
    },
    async attach(reader) {
      if (!(await stream.attach(reader, seq))) reader.end()
      // It would never end by itself.
      if (registry.released && isStandalone(session, stream)) stream.disconnect(RETRY)
    },
  }
}
