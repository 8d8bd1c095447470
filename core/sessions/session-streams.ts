// The streams of a node's sessions. One node writes a stream; other nodes follow it (follow-stream.ts) or take over.
import { HostError } from '../http/errors.ts'
import { type EventStream, RETRY } from '../http/sse.ts'
import type { McpRoute } from '../mcp/routes/routes.ts'
import type { RequestId } from '../mcp/wire/protocol.ts'
import { withoutCredentials } from './credentials.ts'
import {
  createStreamName,
  type EventId,
  hasAllAfter,
  isStreamOf,
  type SharedStreams,
  StreamFenced,
  sendStored,
} from './event-store.ts'
import { createFollowers, type FollowerParts, followStream } from './follow-stream.ts'
import type { StreamMessage } from './node-messages.ts'
import type { PeerMessage } from './peers.ts'
import type { SessionRegistry } from './registry.ts'
import {
  createResumableStream,
  formatStreamInfo,
  parseStreamInfo,
  type ResumableStream,
  type ResumableStreamSettings,
  type WriterSettings,
} from './resumable-stream.ts'
import type { Session, ThisNode } from './session.ts'
import { cannotResume, eventsExpired, restoring, sessionNotFound } from './session-errors.ts'
import type { StreamClaim } from './session-store.ts'

/** A client message for another node's stream. */
export type ForwardedMessage = Pick<Extract<PeerMessage, { type: 'message' }>, 'text' | 'headers' | 'user'>

/** A stream position to resume from. */
export interface Resumption {
  readonly awaited: Session | ResumableStream
  /** Checks the store before the response begins. Throws `sessionNotFound` if a message is gone. */
  check(): Promise<void>
  /** Sends missed and new messages. Resolves when stored messages are no longer read. */
  attach(reader: EventStream): Promise<void>
}

export interface SessionStreams {
  open(session: Session, requests: readonly RequestId[]): ResumableStream
  /** Creates a stream for messages that belong to no call. The previous one stays open and silent. */
  openStandalone(session: Session): Promise<ResumableStream>
  /** Throws `invalidRequest` for a position of another session, `sessionNotFound` for an unknown stream. */
  resume(session: Session, place: EventId | undefined): Promise<Resumption>
  /** Undefined if this node has the session's single stream. Throws `sessionNotFound`. */
  forward(session: Session, message: ForwardedMessage): Promise<void> | undefined
  receive(transport: string, route: McpRoute, take: (session: Session, message: ForwardedMessage) => void): void
}

const MAX_STANDALONE = 3

interface StreamsSettings {
  readonly node: ThisNode
  readonly registry: SessionRegistry
}

export interface StreamParts extends StreamsSettings, FollowerParts {
  sharedWith(session: Session): SharedStreams | undefined
  writerOf(session: Session, requests: readonly RequestId[], more?: Partial<WriterSettings>): WriterSettings | undefined
  make(session: Session, more?: Partial<ResumableStreamSettings>): ResumableStream
  connect(session: Session, send: (message: string, place?: string) => void): void
  addStandalone(session: Session, stream: ResumableStream): void
  isStandalone(session: Session, stream: ResumableStream): boolean
}

export function createStreamParts(
  settings: StreamsSettings & FollowerParts,
  written: (session: Session, stream: string) => void,
): StreamParts {
  const { node, registry } = settings
  const { name: own, store, events, log } = node
  const leaving = () => registry.released
  const sharedWith = (session: Session) => (store ? events(session).shared : undefined)
  const standalone = new WeakMap<Session, readonly ResumableStream[]>()
  return {
    ...settings,
    sharedWith,
    writerOf(session, requests, more = {}) {
      if (!sharedWith(session)) return undefined
      const facts = formatStreamInfo({ node: own, requests })
      return { epoch: 0, facts, leaving, written: stream => written(session, stream), ...more }
    },
    make(session, more = {}) {
      const stream = createResumableStream({
        store: events(session),
        session: session.digest,
        owner: session.holder,
        finished: name => {
          if (session.streams.get(name) === stream) session.streams.delete(name)
        },
        failed: err => log.error({ code: 'MH1416', err }, 'cannot store an event: its stream cannot be resumed'),
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
    addStandalone(session, stream) {
      const streams = [...(standalone.get(session) ?? []).filter(({ name }) => name !== stream.name), stream]
      const isFull = streams.length > MAX_STANDALONE
      const excess = isFull ? (streams.find(({ hasReader }) => !hasReader) ?? streams[0]) : undefined
      excess?.finish()
      standalone.set(
        session,
        streams.filter(one => one !== excess),
      )
    },
  }
}

/** Another node has the standalone stream; readers here stay open and silent. */
function release(session: Session, epoch: number) {
  session.supersededEpoch = Math.max(session.supersededEpoch, epoch)
  if (!session.claim || session.claim.epoch >= epoch) return
  const { stream } = session.claim
  session.claim = undefined
  session.disconnect()
  const left = session.streams.get(stream)
  left?.abandon(true)
  if (left?.hasReader) session.onDispose(() => left.disconnect())
}

export function createSessionStreams(
  settings: StreamsSettings,
): SessionStreams & { readonly receiveFromPeer: (message: StreamMessage) => void } {
  const { node, registry } = settings
  const { name, store, peers, events, sessions } = node
  const handlers = new Map<string, (session: Session, message: ForwardedMessage) => void>()
  const followers = createFollowers(node)
  const waiting = new Map<string, Set<(over: boolean) => void>>()

  function whenWritten(stream: string, task: (over: boolean) => void) {
    const tasks = waiting.get(stream) ?? new Set()
    waiting.set(stream, tasks.add(task))
    return () => {
      tasks.delete(task)
      if (tasks.size === 0) waiting.delete(stream)
    }
  }
  const parts = createStreamParts({ ...settings, whenWritten }, followers.notify)

  const checkComplete = async (session: Session, { stream, seq }: EventId) => {
    if (!(await hasAllAfter(events(session), session.digest, stream, seq))) throw eventsExpired()
  }

  function resumeHere(stream: ResumableStream, place: EventId, session: Session): Resumption {
    return {
      awaited: stream,
      async check() {
        if (!stream.endsAt(place.seq)) await checkComplete(session, place)
        if (!stream.isWhole) throw eventsExpired()
      },
      async attach(reader) {
        if (!(await stream.attach(reader, place.seq))) reader.end()
        if (registry.released && parts.isStandalone(session, stream)) stream.disconnect(RETRY)
      },
    }
  }

  const resumeFinished = (session: Session, place: EventId): Resumption => ({
    awaited: session,
    check: () => checkComplete(session, place),
    async attach(reader) {
      await sendStored({ ...place, store: events(session), session: session.digest, owner: session.holder }, reader)
      // If a message is gone meanwhile, the client resumes again and gets 404.
      if (!reader.closed) reader.end()
    },
  })

  return {
    open: (session, requests) => parts.make(session, { writer: parts.writerOf(session, requests) }),
    openStandalone: session => takeOver(parts, session, createStreamName(session.digest), false),
    async resume(session, place) {
      if (!place || !isStreamOf(session.digest, place.stream)) throw cannotResume()
      const here = session.streams.get(place.stream)
      const shared = parts.sharedWith(session)
      if (!shared) return here ? resumeHere(here, place, session) : resumeFinished(session, place)
      const state = await shared.state(session.digest, place.stream)
      if (!state) throw store?.isRecovering ? restoring() : eventsExpired()
      const facts = parseStreamInfo(state.facts)
      if (facts.requests.length === 0 && !state.finished) {
        return resumeHere(await takeOver(parts, session, place.stream, true), place, session)
      }
      if (here && facts.node === name) return resumeHere(here, place, session)
      return {
        awaited: session,
        check: () => checkComplete(session, place),
        attach: reader => followStream(parts, shared, session, place, reader),
      }
    },
    forward(session, { text, headers, user }) {
      if (session.home === name) return undefined
      const message = { text, headers: withoutCredentials(headers), user }
      const sent = peers.send(session.home, { type: 'message', session: session.digest, ...message })
      return sent.then(async there => {
        if (there) return
        await registry.end(session, new Error('the node that wrote the stream was lost'))
        throw sessionNotFound()
      })
    },
    receive: (transport, route, take) => void handlers.set(`${transport} ${route.path}`, take),
    receiveFromPeer(message) {
      const session = sessions.get(message.session)
      if (message.type === 'written') {
        for (const task of [...(waiting.get(message.stream) ?? [])]) task(message.over ?? false)
      } else if (message.type === 'follow') followers.add(message)
      else if (!session) return
      else if (message.type === 'released') release(session, message.epoch)
      else handlers.get(`${session.transport} ${session.offer.route.path}`)?.(session, message)
    },
  }
}

const takingOver = new WeakMap<Session, Promise<unknown>>()

/** Throws `sessionNotFound` if the resumed stream is gone and `conflict` on a concurrent takeover. */
export async function takeOver(
  parts: StreamParts,
  session: Session,
  name: string,
  isResumed: boolean,
): Promise<ResumableStream> {
  const before = takingOver.get(session) ?? Promise.resolve()
  const taking = before.then(() => takeOverStream(parts, session, name, isResumed))
  const done = taking.then(forget, forget)
  takingOver.set(session, done)
  function forget() {
    if (takingOver.get(session) === done) takingOver.delete(session)
  }
  try {
    return await taking
  } catch (error) {
    if (!StreamFenced.is(error)) throw error
    throw new HostError('conflict', { detail: 'another stream for the same messages was opened meanwhile' })
  }
}

function claimHere({ claim }: Session, node: string, stream: string): StreamClaim {
  const { epoch = 0 } = claim ?? {}
  return {
    epoch: claim?.stream === stream ? epoch : epoch + 1,
    before: claim && { node, stream: claim.stream },
  }
}

async function takeOverStream(parts: StreamParts, session: Session, name: string, isResumed: boolean) {
  const { name: node, store, peers, log } = parts.node
  const claim = await (store ? store.claimStream(session.digest, name) : claimHere(session, node, name))
  if (!claim || session.disposed) throw sessionNotFound()
  const { before, epoch } = claim
  const here = session.streams.get(name)
  if (here && before?.node === node && before.stream === name && session.claim?.epoch === epoch) return here
  // After these claims, writes of the previous node are rejected.
  const streams = parts.sharedWith(session)
  const writer = { epoch, facts: formatStreamInfo({ node, requests: [] }) }
  const resumed = isResumed ? await streams?.claim(session.digest, name, writer) : undefined
  const isOther = before && (!isResumed || before.stream !== name)
  const previous = isOther ? await streams?.claim(session.digest, before.stream, writer) : resumed
  if (session.disposed) throw sessionNotFound()
  if (isResumed && !resumed) throw eventsExpired()
  session.claim = { stream: name, epoch }
  here?.abandon(true)
  // Gapless without a previous stream, or if this node has all of it.
  const isGapless = !before || (before.node === node && !streams)
  const place = previous?.bus || undefined
  const stream = await connect(parts, session, { name, epoch, place, startedUntil: resumed?.last, isGapless })
  parts.addStandalone(session, stream)
  if (session.supersededEpoch > epoch) {
    // Another node has taken over and sent a notification.
    session.disconnect()
    stream.abandon(true)
    session.onDispose(() => stream.disconnect())
  }
  if (before && before.node !== node) {
    // A node that misses this detects it with its next write.
    const notified = peers.send(before.node, { type: 'released', session: session.digest, epoch })
    notified.catch(err => log.debug({ err }, 'could not notify a node that its stream moved'))
  }
  return stream
}

interface Connecting {
  readonly name: string
  readonly epoch: number
  readonly place: string | undefined
  readonly startedUntil: number | undefined
  readonly isGapless: boolean
}

type Placed = readonly [message: string, place: string | undefined]

async function connect(
  parts: StreamParts,
  session: Session,
  { name, epoch, place, startedUntil, isGapless }: Connecting,
) {
  const history = parts.node.bus(session).history
  const position = history?.position
  const waiting: Placed[] = []
  let stream: ResumableStream | undefined
  let written: string | undefined

  function write(opened: ResumableStream, [message, place]: Placed) {
    if (place !== undefined && written !== undefined && history?.isAfter(place, written) === false) return
    written = place ?? written
    opened.write(message, place)
  }
  parts.connect(session, (message, place) => {
    if (stream) write(stream, [message, place])
    else waiting.push([message, place])
  })
  // Read after the subscription, so every change is in one or both.
  const missed = await missedSince()
  if (session.disposed) {
    session.disconnect()
    throw sessionNotFound()
  }
  const older = collect(() => {
    if (missed) for (const { change, place } of missed) session.replay(change, place)
    else if (!isGapless) session.replay({ kind: 'missed' }, undefined)
  })
  // If changes since `place` are gone, every list is announced as changed. Only the last message advances the position,
  // so a takeover before it is stored repeats the announcements.
  const last = missed ? undefined : older.pop()
  if (last) older.push([last[0], position])
  const start = missed || last ? place : position
  const fenced = () => {
    if (session.claim?.epoch === epoch) session.disconnect()
    if (opened.hasReader) session.onDispose(() => opened.disconnect())
  }
  const writer = parts.writerOf(session, [], { epoch, fenced, ...(start !== undefined && { place: start }) })
  const opened = parts.make(session, { name, writer, startedUntil })
  stream = opened
  written = last ? undefined : start
  for (const each of [...older, ...waiting.splice(0)]) write(opened, each)
  return opened

  function collect(replay: () => void): Placed[] {
    const live = waiting.length
    replay()
    return waiting.splice(live)
  }

  async function missedSince() {
    try {
      return place === undefined ? undefined : await history?.since(place)
    } catch (error) {
      session.disconnect()
      throw error
    }
  }
}
