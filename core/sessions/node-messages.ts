// Session messages between nodes: responses, cancellations, ends, and client settings.
import { tooManyWatched } from '../mcp/methods/session-settings.ts'
import type { RequestId } from '../mcp/wire/protocol.ts'
import type { PeerMessage } from './peers.ts'
import type { Session, ThisNode } from './session.ts'
import type { Changed, SessionRecord, StateChange } from './session-store.ts'

export type StreamMessage = Extract<PeerMessage, { type: 'released' | 'follow' | 'written' | 'message' }>

/** Maximum remembered responses per session, forwarded to other nodes. */
const MAX_FORWARDED = 256
/** Maximum time to wait for the reply of a node, milliseconds. */
const REPLY_TIMEOUT = 2_000

const isForStreams = (message: PeerMessage): message is StreamMessage =>
  message.type === 'released' || message.type === 'follow' || message.type === 'written' || message.type === 'message'

export function createNodeMessages(node: ThisNode) {
  const { name, store, peers, clock, sessions, requestIds } = node
  const receiveChange = createChangeReceiver(node)
  const forwardedResponses = new WeakMap<Session, Map<RequestId, Promise<void>>>()
  const pending = new Map<string, Set<(running: boolean | undefined) => void>>()
  const keyOf = (session: string, request: RequestId) => `${session} ${JSON.stringify(request)}`

  function awaitReply(key: string): Promise<boolean | undefined> {
    return new Promise(resolve => {
      const waiting = pending.get(key) ?? new Set()
      pending.set(key, waiting)
      const settle = (running: boolean | undefined) => {
        clock.clear(timer)
        waiting.delete(settle)
        if (waiting.size === 0) pending.delete(key)
        resolve(running)
      }
      const timer = clock.setTimeout(() => settle(undefined), REPLY_TIMEOUT)
      waiting.add(settle)
    })
  }

  function receive(message: Exclude<PeerMessage, StreamMessage>) {
    if (message.type === 'plugin') return
    const session = sessions.get(message.session)
    if (message.type === 'runs?') {
      const { request } = message
      const running = session?.runs(request) ?? false
      // If this message is lost, the other node repeats its request when the client retries.
      peers.send(message.node, { type: 'runs', session: message.session, request, running }).catch(() => undefined)
    } else if (message.type === 'runs') {
      for (const settle of [...(pending.get(keyOf(message.session, message.request)) ?? [])]) settle(message.running)
    } else if (!session) return
    else if (message.type === 'answer') void session.receiveResponse(message.id, message.body)
    else if (message.type === 'cancel') session.cancelHere(message.request, message.reason)
    else if (message.type === 'ended') session.dispose(new Error(message.reason))
    else if (message.type === 'restored') applyRecord(session, { ...message, home: session.home }, name)
    else receiveChange(session, message)
  }

  /** Sends a message to nodes. A node that misses it detects the change with its next request. Undefined: no nodes. */
  function notify(nodes: readonly string[], message: PeerMessage): Promise<unknown> | undefined {
    return nodes.length === 0 ? undefined : Promise.all(nodes.map(to => peers.send(to, message)))
  }

  function applyStored(session: Session, change: StateChange, changed: Changed | 'full' | undefined) {
    if (changed === undefined) return undefined
    if (changed === 'full') {
      // The store limit includes requests on other nodes.
      if ('watch' in change) session.unwatch(change.watch)
      throw tooManyWatched()
    }
    const { record, nodes } = changed
    const { version } = record
    if (version === session.version + 1 && record.home === session.home) {
      session.version = version
      applyChange(session, change)
    } else applyRecord(session, record, name)
    return notify(nodes, { type: 'changed', session: session.digest, version, change })?.then(() => undefined)
  }

  return {
    notify,
    async isRunningAt(at: string, session: string, request: RequestId): Promise<boolean | undefined> {
      if (!(await peers.isAlive(at))) return false
      const reply = awaitReply(keyOf(session, request))
      await peers.send(at, { type: 'runs?', session, request, node: name })
      return reply
    },
    listen(receiveOther: (message: StreamMessage) => void) {
      peers.receive(message => (isForStreams(message) ? receiveOther(message) : receive(message)))
    },
    keep(session: Session, change: StateChange): Promise<void> | undefined {
      return store?.change(session.digest, change).then(changed => applyStored(session, change, changed))
    },
    requestIdSeries: (session: Session) => requestIds.series(session.digest),
    forwardResponse(
      session: Session,
      id: RequestId,
      body: Readonly<Record<string, unknown>>,
    ): Promise<void> | undefined {
      const sender = requestIds.senderOf(session.digest, id)
      if (sender === undefined || sender === name) return undefined
      const forwarded = forwardedResponses.get(session) ?? new Map<RequestId, Promise<void>>()
      forwardedResponses.set(session, forwarded)
      const before = forwarded.get(id)
      if (before) return before
      const forwarding = peers.send(sender, { type: 'answer', session: session.digest, id, body }).then(
        () => undefined,
        error => {
          forwarded.delete(id)
          throw error
        },
      )
      forwarded.set(id, forwarding)
      const [oldest] = forwarded.keys()
      if (forwarded.size > MAX_FORWARDED && oldest !== undefined) forwarded.delete(oldest)
      return forwarding
    },
    forwardCancel(session: Session, id: RequestId, reason: string): Promise<void> | undefined {
      return store?.nodeOf(session.digest, id).then(async at => {
        if (at === undefined || at === name) return
        await peers.send(at, { type: 'cancel', session: session.digest, request: id, reason })
      })
    },
  }
}

export function applyRecord(session: Session, record: Omit<SessionRecord, 'opening'>, node: string): void {
  const { version, home, state } = record
  if (session.version >= version || session.isUnrestored) return
  session.version = version
  // Another node considered this one dead and runs `runSession` now.
  if (session.home === node && home !== node) session.endRun()
  session.home = home
  const { revision, client, logLevel, watched } = state
  Object.assign(session, { revision, client, logLevel })
  const wanted = new Set(watched)
  for (const uri of session.watched) if (!wanted.has(uri)) session.unwatch(uri)
  for (const uri of wanted) session.watch(uri, true)
}

function applyChange(session: Session, change: StateChange) {
  if ('watch' in change) session.watch(change.watch, true)
  else if ('unwatch' in change) session.unwatch(change.unwatch)
  else Object.assign(session, change)
}

/** Applies changes from other nodes. Reads the record after a missed message. */
export function createChangeReceiver({ name, store, limits, log }: Omit<ThisNode, 'sessions'>) {
  const reading = new Map<Session, boolean>()

  async function read(session: Session) {
    if (reading.has(session)) return void reading.set(session, true)
    try {
      do {
        reading.set(session, false)
        const found = await store?.enter(session.digest, { version: session.version, requests: [], from: [] }, limits)
        if (found?.kind === 'entered' && found.record && !session.disposed) applyRecord(session, found.record, name)
      } while (reading.get(session) && !session.disposed)
    } catch (err) {
      log.debug({ err }, 'cannot read changes that a client made at another node; they are read with its next request')
    } finally {
      reading.delete(session)
    }
  }

  return (session: Session, { version, change }: Extract<PeerMessage, { type: 'changed' }>) => {
    if (version <= session.version) return
    if (version > session.version + 1) return void read(session)
    session.version = version
    applyChange(session, change)
  }
}
