// A client comes back to a call's stream at another node than the one that runs the call: what is stored is sent, and
// what its node still writes as it comes. Where that node is gone, or has written the end and the store has lost it, its
// requests are answered with an error.

import type { Timer } from '../../http/clock.ts'
import { isUnavailable, nodeLost } from '../../http/errors.ts'
import { type EventStream, RETRY } from '../../http/sse.ts'
import { encodeError } from '../../mcp/message.ts'
import type { RequestId } from '../../mcp/protocol.ts'
import type { EventId } from '../event-id.ts'
import { type SharedStreams, type StoredEvent, StreamFenced, type StreamState } from '../event-store.ts'
import { isWholeAfter, type ReadPlace, readPage, sendStored } from '../read-page.ts'
import { eventsGone } from '../refusals.ts'
import type { Session } from '../session.ts'
import type { Resumption, StreamParts } from '../stream-parts.ts'
import { readFacts, writeFacts } from '../stream-writing.ts'

/** How often a stream is looked at whose writer tells nothing, milliseconds. */
const LOOK_INTERVAL = 1_000
/** How often its writer is asked to tell, and whether it still writes, milliseconds. */
const FOLLOW_INTERVAL = 5_000

/** The requests that no message after a place answers, or up to where something is gone. */
async function unanswered(requests: readonly RequestId[], place: ReadPlace): Promise<RequestId[]> {
  const answered = new Set<unknown>()
  for (let seq: number | undefined = place.seq; seq !== undefined; ) {
    const page: readonly StoredEvent[] = (await readPage({ ...place, seq }, () => true)) ?? []
    for (const { message } of page) {
      const { id, method } = JSON.parse(message)
      if (method === undefined) answered.add(id)
    }
    seq = page.at(-1)?.seq
  }
  return requests.filter(id => !answered.has(id))
}

interface Lost {
  readonly stream: string
  readonly state: StreamState
  /** The number of the last message that the client has. */
  readonly seen: number
  /** Its node is there, and writes it no more. */
  readonly isOver: boolean
}

/** Answers, as the stream's new writer, what its node cannot answer any more. */
async function answerLost(parts: StreamParts, session: Session, { stream, state, seen, isOver }: Lost) {
  const { name: node, events, log } = parts.node
  const { requests } = readFacts(state.facts)
  const store = events(session)
  const writer = { epoch: state.epoch + 1, facts: writeFacts({ node, requests }) }
  const claimed = await store.shared?.claim(session.id, stream, writer)
  if (!claimed || claimed.finished) return
  const seq = (await isWholeAfter(store, session.id, stream, 0)) ? 0 : seen
  const open = await unanswered(requests, { store, session: session.id, stream, seq, owner: session.holder })
  let { last } = claimed
  for (const id of open) {
    const answer = encodeError(nodeLost(), { id, revision: session.revision })
    last = await store.append(session.id, stream, answer, last, { ...writer, finished: id === open.at(-1) })
  }
  if (open.length === 0) await store.shared?.finish(session.id, stream, writer)
  if (isOver) log.warn({ requests: open.length }, 'the store lost the end of a stream: answered its requests as lost')
  else log.warn({ requests: open.length }, 'answered requests of a node that is gone')
}

interface More {
  /** Resolves when there may be more, at the latest after a second, or when the reader is gone. */
  next(): Promise<void>
  /** The stream's writer said that it writes it no more. */
  readonly isOver: boolean
  stop(): void
}

function whenMore(parts: StreamParts, stream: string, reader: EventStream): More {
  let told = false
  let isOver = false
  let wake: (() => void) | undefined
  const tell = (over = false) => {
    told = true
    isOver ||= over
    wake?.()
  }
  const stop = parts.whenWritten(stream, tell)
  reader.whenClosed(() => tell())
  return {
    stop,
    get isOver() {
      return isOver
    },
    async next() {
      if (!told) {
        let timer: Timer | undefined
        await new Promise<void>(resolve => {
          wake = resolve
          timer = parts.node.clock.setTimeout(resolve, LOOK_INTERVAL)
        })
        parts.node.clock.clear(timer)
      }
      told = false
    },
  }
}

class Following {
  readonly #parts: StreamParts
  readonly #session: Session
  readonly #stream: string
  readonly #streams: SharedStreams
  #sent: number
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(parts: StreamParts, session: Session, { stream, seq }: EventId, streams: SharedStreams) {
    this.#parts = parts
    this.#session = session
    this.#stream = stream
    this.#streams = streams
    this.#sent = seq
  }

  async follow(reader: EventStream) {
    const more = whenMore(this.#parts, this.#stream, reader)
    try {
      while (!reader.closed) {
        try {
          if (await this.#step(reader, more.isOver)) break
        } catch (error) {
          // The store is away: so is what would be sent.
          if (!isUnavailable(error) && !StreamFenced.is(error)) throw error
        }
        await more.next()
      }
    } catch (err) {
      this.#parts.node.log.error({ err }, 'a stream could not be followed')
    } finally {
      more.stop()
      // Where this node goes, another can be followed at.
      if (!reader.closed) reader.end(this.#session.disposed ? RETRY : undefined)
    }
  }

  /**
   * Sends what there is; true where no more will come, or what would come is gone. `isOver`: what its writer had was in the
   * store before this began.
   */
  async #step(reader: EventStream, isOver: boolean): Promise<boolean> {
    const { id } = this.#session
    const { name, peers } = this.#parts.node
    const state = await this.#streams.state(id, this.#stream)
    if (!state || !(await this.#sendUntil(state.last, reader)) || this.#session.disposed) return true
    if (state.finished) return true
    const { node } = readFacts(state.facts)
    const runsHere = node === name
    if (runsHere ? !this.#session.streams.has(this.#stream) : isOver || !(await peers.isAlive(node))) {
      const lost = { stream: this.#stream, state, seen: this.#sent, isOver: runsHere || isOver }
      await answerLost(this.#parts, this.#session, lost)
      return this.#step(reader, isOver)
    }
    await this.#askToTell(node)
    return false
  }

  /** What is stored up to this number at least; false where something of it is gone, or the reader is. */
  #sendUntil(until: number, reader: EventStream): Promise<boolean> {
    const { id, holder } = this.#session
    const store = this.#parts.node.events(this.#session)
    const place = { store, session: id, stream: this.#stream, seq: this.#sent, owner: holder }
    const sent = (seq: number) => {
      this.#sent = seq
    }
    return sendStored(place, reader, { until, sent, isWanted: () => !this.#session.disposed })
  }

  async #askToTell(node: string) {
    const { name, peers, clock } = this.#parts.node
    if (clock.monotonic() - this.#askedAt < FOLLOW_INTERVAL) return
    this.#askedAt = clock.monotonic()
    const { digest } = this.#session
    await peers.send(node, { type: 'follow', session: digest, stream: this.#stream, node: name })
  }
}

/** Another node's stream, or one of the past: what it has after a place. */
export function followStream(parts: StreamParts, streams: SharedStreams, session: Session, place: EventId): Resumption {
  return {
    awaited: session,
    async check() {
      if (!(await isWholeAfter(parts.node.events(session), session.id, place.stream, place.seq))) throw eventsGone()
    },
    attach: reader => new Following(parts, session, place, streams).follow(reader),
  }
}
