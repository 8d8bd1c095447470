// Follows a stream that another node writes. If that node is gone, its open requests get an error.
import type { Timer } from '../http/clock.ts'
import { isUnavailable } from '../http/errors.ts'
import { type EventStream, RETRY } from '../http/sse.ts'
import { encodeError, nodeLost } from '../mcp/wire/message.ts'
import type { RequestId } from '../mcp/wire/protocol.ts'
import {
  type EventId,
  hasAllAfter,
  type ReadPlace,
  readPage,
  type SharedStreams,
  StreamFenced,
  type StreamState,
  sendStored,
} from './event-store.ts'
import type { PeerMessage } from './peers.ts'
import { formatStreamInfo, parseStreamInfo } from './resumable-stream.ts'
import type { Session, ThisNode } from './session.ts'

/** Poll interval without notifications, milliseconds. */
const CHECK_INTERVAL = 1_000
/** Interval of subscriptions and liveness checks, milliseconds. */
const FOLLOW_INTERVAL = 5_000
/** Subscription lifetime, milliseconds. */
const FOLLOWER_LIFETIME = 60_000

export interface FollowerParts {
  readonly node: ThisNode
  /** Calls `task` after each write, until the returned function is called. `over`: the writer has stopped. */
  whenWritten(stream: string, task: (over: boolean) => void): () => void
}

async function findOpenRequests(requests: readonly RequestId[], place: ReadPlace): Promise<RequestId[]> {
  const answered = new Set<unknown>()
  for (let seq: number | undefined = place.seq; seq !== undefined; ) {
    const page: Awaited<ReturnType<typeof readPage>> = await readPage({ ...place, seq }, () => true)
    for (const { message } of page ?? []) {
      const { id, method } = JSON.parse(message)
      if (method === undefined) answered.add(id)
    }
    seq = page?.at(-1)?.seq
  }
  return requests.filter(id => !answered.has(id))
}

async function failLostRequests(
  { name: node, events, log }: ThisNode,
  session: Session,
  { stream, state, seen, isOver }: { stream: string; state: StreamState; seen: number; isOver: boolean },
) {
  const { requests } = parseStreamInfo(state.facts)
  const store = events(session)
  const writer = { epoch: state.epoch + 1, facts: formatStreamInfo({ node, requests }) }
  const claimed = await store.shared?.claim(session.digest, stream, writer)
  if (!claimed || claimed.finished) return
  const seq = (await hasAllAfter(store, session.digest, stream, 0)) ? 0 : seen
  const open = await findOpenRequests(requests, { store, session: session.digest, stream, seq, owner: session.holder })
  let { last } = claimed
  for (const id of open) {
    const response = encodeError(nodeLost(), { id, revision: session.revision })
    last = await store.append(session.digest, stream, response, last, { ...writer, finished: id === open.at(-1) })
  }
  if (open.length === 0) await store.shared?.finish(session.digest, stream, writer)
  if (isOver)
    log.warn({ code: 'MH1418', requests: open.length }, 'the event store lost the end of a stream: its requests failed')
  else log.warn({ code: 'MH1419', requests: open.length }, 'failed the requests of a lost node')
}

export async function followStream(
  parts: FollowerParts,
  streams: SharedStreams,
  session: Session,
  { stream, seq }: EventId,
  reader: EventStream,
): Promise<void> {
  const { name, peers, clock, events, log } = parts.node
  let sent = seq
  let askedAt = Number.NEGATIVE_INFINITY
  let notified = false
  let isOver = false
  let wake: (() => void) | undefined
  const notify = (over = false) => {
    notified = true
    isOver ||= over
    wake?.()
  }
  const stop = parts.whenWritten(stream, notify)
  reader.whenClosed(() => notify())

  async function whenMore() {
    if (!notified) {
      let timer: Timer | undefined
      await new Promise<void>(resolve => {
        wake = resolve
        timer = clock.setTimeout(resolve, CHECK_INTERVAL)
      })
      clock.clear(timer)
    }
    notified = false
  }

  const sendUntil = (until: number) =>
    sendStored({ store: events(session), session: session.digest, stream, seq: sent, owner: session.holder }, reader, {
      until,
      sent: last => {
        sent = last
      },
      isWanted: () => !session.disposed,
    })

  async function step(wasOver: boolean): Promise<boolean> {
    const state = await streams.state(session.digest, stream)
    if (!state || !(await sendUntil(state.last)) || session.disposed || state.finished) return true
    const { node } = parseStreamInfo(state.facts)
    const runsHere = node === name
    if (runsHere ? !session.streams.has(stream) : wasOver || !(await peers.isAlive(node))) {
      await failLostRequests(parts.node, session, { stream, state, seen: sent, isOver: runsHere || wasOver })
      return step(wasOver)
    }
    if (clock.monotonic() - askedAt >= FOLLOW_INTERVAL) {
      askedAt = clock.monotonic()
      await peers.send(node, { type: 'follow', session: session.digest, stream, node: name })
    }
    return false
  }

  try {
    while (!reader.closed) {
      try {
        if (await step(isOver)) break
      } catch (error) {
        if (!isUnavailable(error) && !StreamFenced.is(error)) throw error
      }
      await whenMore()
    }
  } catch (err) {
    log.error({ code: 'MH1417', err }, 'a stream could not be followed')
  } finally {
    stop()
    // When this node closes, the client can resume on another node.
    if (!reader.closed) reader.end(session.disposed ? RETRY : undefined)
  }
}

interface Follower {
  notifying: boolean
  more: boolean
}

export function createFollowers({ peers, clock, sessions }: ThisNode) {
  const followers = new Map<string, Map<string, Follower>>()

  /** Sends one notification for all messages written during the previous one. */
  async function notifyOne(node: string, follower: Follower, session: string, stream: string) {
    follower.more = true
    if (follower.notifying) return
    follower.notifying = true
    try {
      while (follower.more) {
        follower.more = false
        await peers.send(node, { type: 'written', session, stream })
      }
    } catch {
      // If the notification fails, the follower still checks every second.
    } finally {
      follower.notifying = false
    }
  }

  return {
    add({ session, stream, node }: Extract<PeerMessage, { type: 'follow' }>) {
      if (!sessions.get(session)?.streams.has(stream)) {
        // The store may have lost the end of the stream. The follower repeats its request if this message is lost.
        peers.send(node, { type: 'written', session, stream, over: true }).catch(() => undefined)
        return
      }
      const nodes = followers.get(stream) ?? new Map<string, Follower>()
      const follower = nodes.get(node) ?? { notifying: false, more: false }
      if (!nodes.has(node)) {
        followers.set(stream, nodes.set(node, follower))
        const forget = () => {
          nodes.delete(node)
          if (nodes.size === 0) followers.delete(stream)
        }
        clock.setTimeout(forget, FOLLOWER_LIFETIME).unref()
      }
      void notifyOne(node, follower, session, stream)
    },
    notify(session: Session, stream: string) {
      for (const [node, follower] of followers.get(stream) ?? []) void notifyOne(node, follower, session.digest, stream)
    },
  }
}
