// Makes this node the one that sends what belongs to no call of a session: the node before is fenced off, and the changes
// that came after the last one it stored are sent from here, each once.
import { HostError } from '../../http/errors.ts'
import { StreamFenced, type StreamState } from '../event-store.ts'
import { eventsGone, sessionGone } from '../refusals.ts'
import type { ResumableStream } from '../resumable-stream.ts'
import type { Session } from '../session.ts'
import type { StreamClaim } from '../session-store.ts'
import type { StreamParts } from '../stream-parts.ts'
import { writeFacts } from '../stream-writing.ts'

const underWay = new WeakMap<Session, Promise<unknown>>()

interface Fenced {
  /** Where the node before had come on the bus; undefined: nobody was before, or nobody knows. */
  readonly place: string | undefined
  /** The stream that is gone on with. */
  readonly resumed: StreamState | undefined
}

/** After this nothing that the node before writes is stored. */
async function fence(
  { node, sharedWith }: StreamParts,
  session: Session,
  { epoch, before }: StreamClaim,
  resuming: string | undefined,
): Promise<Fenced> {
  const streams = sharedWith(session)
  const writer = { epoch, facts: writeFacts({ node: node.name, requests: [] }) }
  const resumed = resuming === undefined ? undefined : await streams?.claim(session.id, resuming, writer)
  const previous =
    before && before.stream !== resuming ? await streams?.claim(session.id, before.stream, writer) : resumed
  return { place: previous?.bus || undefined, resumed }
}

type Placed = readonly [message: string, place: string | undefined]

/** Where this node's messages go: first they wait, then older ones are sent, then they. */
function createOutlet(isAfter: (one: string, other: string) => boolean) {
  const waiting: Placed[] = []
  let stream: ResumableStream | undefined
  let last: string | undefined

  function write([message, place]: Placed) {
    if (place !== undefined && last !== undefined && !isAfter(place, last)) return
    last = place ?? last
    stream?.write(message, place)
  }

  return {
    send(message: string, place?: string) {
      if (stream) write([message, place])
      else waiting.push([message, place])
    },
    /** The messages that `replay` makes the session send, without those that wait. */
    collect(replay: () => void): Placed[] {
      const live = waiting.length
      replay()
      return waiting.splice(live)
    },
    /** Sends the `older` messages, all of them if there is no `start` on the bus; then those that waited; then all that come. */
    open(opened: ResumableStream, older: readonly Placed[], start: string | undefined) {
      stream = opened
      last = start
      for (const each of [...older, ...waiting.splice(0)]) write(each)
    },
  }
}

/**
 * The stream on which this node sends them from now on: a new one of this name, or the one that is resumed. Throws
 * `sessionNotFound` where that is gone, and `conflict` where yet another node took over meanwhile.
 */
export async function takeOver(
  parts: StreamParts,
  session: Session,
  name: string,
  isResumed: boolean,
): Promise<ResumableStream> {
  // One after the other: the last one to come has the session in the end.
  const before = underWay.get(session) ?? Promise.resolve()
  const taking = before.then(() => takeOverStream(parts, session, name, isResumed))
  const over = taking.then(forget, forget)
  underWay.set(session, over)
  function forget() {
    if (underWay.get(session) === over) underWay.delete(session)
  }
  try {
    return await taking
  } catch (error) {
    if (!StreamFenced.is(error)) throw error
    throw new HostError('conflict', { detail: 'another stream for the same messages was opened meanwhile' })
  }
}

async function takeOverStream(parts: StreamParts, session: Session, name: string, isResumed: boolean) {
  const { name: node, store, peers, log } = parts.node
  const claim = await store.claimStream(session.digest, name)
  if (!claim || session.disposed) throw sessionGone()
  const { before, epoch } = claim
  const here = session.streams.get(name)
  if (here && before?.node === node && before.stream === name && session.claim?.epoch === epoch) return here
  const { place, resumed } = await fence(parts, session, claim, isResumed ? name : undefined)
  // It may have ended meanwhile, and what ended with it would begin again.
  if (session.disposed) throw sessionGone()
  if (isResumed && !resumed) throw eventsGone()
  session.claim = { stream: name, epoch }
  here?.abandon(true)
  // This node stores what it wrote before, unless it has fenced itself off.
  const isGapless = !before || (before.node === node && !parts.sharedWith(session))
  const stream = await connect(parts, session, { name, epoch, place, begunUntil: resumed?.last, isGapless })
  parts.addStandalone(session, stream)
  if (session.relieved > epoch) {
    // Another node took over meanwhile, and has said so.
    session.disconnect()
    stream.abandon(true)
    session.onDispose(() => stream.disconnect())
  }
  if (before && before.node !== node) {
    // One that does not hear finds out when it next writes.
    const told = peers.send(before.node, { type: 'released', session: session.digest, epoch })
    told.catch(err => log.debug({ err }, 'a node could not be told that it was relieved'))
  }
  return stream
}

interface Connecting {
  readonly name: string
  readonly epoch: number
  readonly place: string | undefined
  readonly begunUntil: number | undefined
  /** Nothing that came before can be missing: nobody had such a stream, or it has all of it. */
  readonly isGapless: boolean
}

async function connect(
  parts: StreamParts,
  session: Session,
  { name, epoch, place, begunUntil, isGapless }: Connecting,
) {
  const history = parts.node.bus(session).history
  const position = history?.position
  const outlet = createOutlet(history?.isAfter ?? (() => true))
  parts.connect(session, outlet.send)
  // Read after the session is subscribed: every change is in what is read, or comes, or both.
  const missed = await missedSince()
  if (session.disposed) {
    session.disconnect()
    throw sessionGone()
  }
  const fenced = () => {
    if (session.claim?.epoch === epoch) session.disconnect()
    if (stream.attended) session.onDispose(() => stream.disconnect())
  }
  const older = outlet.collect(() => {
    if (missed) for (const { change, place } of missed) session.replay(change, place)
    else if (!isGapless) session.replay({ kind: 'missed' }, undefined)
  })
  // Where the changes since `place` are gone, these messages tell the client that anything may have changed. Only the last of
  // them moves the stream to the present place: a node that takes over before it is stored sends them again, a later one does not.
  const last = missed ? undefined : older.pop()
  if (last) older.push([last[0], position])
  const start = missed || last ? place : position
  const writer = parts.writerOf(session, [], { epoch, fenced, ...(start !== undefined && { place: start }) })
  const stream = parts.make(session, { name, writer, begunUntil })
  outlet.open(stream, older, last ? undefined : start)
  return stream

  async function missedSince() {
    try {
      return place === undefined ? undefined : await history?.since(place)
    } catch (error) {
      session.disconnect()
      throw error
    }
  }
}
