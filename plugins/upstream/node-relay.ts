// Relays the response of a client to the node that holds the call.
import { randomUUID } from 'node:crypto'
import type { CallContext } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import type { Call } from '../../core/plugin.ts'
import { Cancellation, contextCancellation, LOG_LEVELS, type PeerMessage, type Peers } from '../../core/transport.ts'
import { RemoteError } from '../../remote/index.ts'
import type { Json, RequestClient } from './upstream-request.ts'

/** The result of a relayed response. `gone`: the node does not hold the call. `isLost`: the node does not respond. */
export type RelayResult =
  | { readonly result: Json }
  | { readonly requests: Json; readonly held: string }
  | { readonly failure: Pick<RemoteError, 'reason' | 'message' | 'code' | 'data' | 'status' | 'executed'> }
  | { readonly refusal: string }
  | { readonly gone: true }
  | { readonly isLost: true }

/** The response of the client, as sent to the node of the call. */
export interface Resume {
  readonly server: string
  /** The id of the held call. */
  readonly held: string
  readonly responses: Json
  readonly capabilities: RequestClient['capabilities']
  readonly logLevel: Call['logLevel']
}

type Body =
  | (Resume & { readonly kind: 'resume'; readonly request: string; readonly node: string })
  | { readonly kind: 'cancel'; readonly request: string }
  | { readonly kind: 'giveUp'; readonly server: string; readonly held: string }
  | Reply
type Reply =
  | { readonly kind: 'accepted'; readonly request: string }
  | { readonly kind: 'progress'; readonly request: string; readonly values: Progress }
  | { readonly kind: 'log'; readonly request: string; readonly values: LogMessage }
  | { readonly kind: 'ended'; readonly request: string; readonly end: RelayResult }

// Objects: in a list, JSON turns `undefined` into `null`.
interface Progress {
  readonly progress: number
  readonly total: number | undefined
  readonly message: string | undefined
}
interface LogMessage {
  readonly level: Parameters<CallContext['log']>[0]
  readonly data: unknown
  readonly logger: string | undefined
}

/** Time in which the other node must accept a request, milliseconds. */
const ACCEPT_TIMEOUT = 5_000
/** Interval of checks that the other node is alive, milliseconds. */
const CHECK_INTERVAL = 2_000
/** Maximum unsent notifications of a call. Further ones are dropped. */
const MAX_UNSENT = 32

/** Continues and gives up the held calls of a server. Both methods ignore unknown ids. */
interface HeldCallClient {
  continueHeld(id: string, responses: Json, client: RequestClient): Promise<RelayResult>
  giveUpHeld(id: string): void
}

type RelayHost = Pick<InternalHost, 'services' | 'clock' | 'log' | 'name' | 'routes' | 'onStart'>

export function createNodeRelay(host: RelayHost, findCalls: (server: string) => HeldCallClient | undefined) {
  const { clock, log } = host
  const pending = new Map<string, (reply: Reply) => void>()
  const running = new Map<string, Cancellation>()

  const post = (peers: Peers, node: string, session: string, body: Body) =>
    peers.send(node, { type: 'plugin', plugin: host.name, session, body })
  const postQuietly = (...message: Parameters<typeof post>) =>
    post(...message).catch(err => log.debug({ err }, 'could not notify a node about a held call'))

  const giveUp = (peers: Peers, node: string, server: string, held: string) =>
    void postQuietly(peers, node, held, { kind: 'giveUp', server, held })

  async function serve(peers: Peers, { request, node, held, ...resume }: Extract<Body, { kind: 'resume' }>) {
    const calls = findCalls(resume.server)
    if (!calls) return
    const reply = (body: Reply) => postQuietly(peers, node, held, body)
    const cancellation = new Cancellation()
    let leave: () => void
    try {
      leave = host.services.trackRequest(reason => cancellation.abort(reason))
    } catch {
      return reply({ kind: 'ended', request, end: { gone: true } })
    }
    let unsent = 0
    const notify = (body: Reply) => {
      if (unsent >= MAX_UNSENT) return
      unsent++
      void reply(body).finally(() => unsent--)
    }
    const client: RequestClient = {
      cancellation,
      capabilities: resume.capabilities,
      progress: (progress, total, message) =>
        notify({ kind: 'progress', request, values: { progress, total, message } }),
      log(level, data, logger) {
        const min = resume.logLevel === undefined ? Number.POSITIVE_INFINITY : LOG_LEVELS.indexOf(resume.logLevel)
        if (LOG_LEVELS.indexOf(level) >= min) notify({ kind: 'log', request, values: { level, data, logger } })
      },
    }
    running.set(request, cancellation)
    try {
      notify({ kind: 'accepted', request })
      await reply({ kind: 'ended', request, end: await calls.continueHeld(held, resume.responses, client) })
    } finally {
      running.delete(request)
      leave()
    }
  }

  function receive(peers: Peers, message: PeerMessage) {
    if (message.type !== 'plugin' || message.plugin !== host.name) return
    const body = message.body as Body
    if (body.kind === 'resume') void serve(peers, body)
    else if (body.kind === 'cancel') running.get(body.request)?.abort(new Error('the call was cancelled'))
    else if (body.kind === 'giveUp') findCalls(body.server)?.giveUpHeld(body.held)
    else pending.get(body.request)?.(body)
  }

  host.onStart(() => {
    for (const peers of new Set(host.routes.map(route => host.services.slot('peers', route))))
      peers.receive(message => receive(peers, message))
  })

  const peersOf = ({ offer }: Call) => host.services.slot('peers', offer.route)

  return {
    nodeOf: (call: Call) => peersOf(call).node,
    giveUp: (call: Call, node: string, server: string, held: string) => giveUp(peersOf(call), node, server, held),
    /**
     * Sends the response to the node of the call, and waits for the next requests or the result. `timeout`: maximum time
     * between messages of the other node, milliseconds.
     */
    async forward(ctx: CallContext, call: Call, node: string, resume: Resume, timeout: number): Promise<RelayResult> {
      const peers = peersOf(call)
      // If this check fails, nothing was sent, so the client can retry.
      if (!(await peers.isAlive(node))) return { isLost: true }
      const cancellation = contextCancellation(ctx)
      if (cancellation.aborted) return { failure: cancelled() }
      const request = randomUUID()
      return new Promise(resolve => {
        let silence = clock.setTimeout(endAsLost, ACCEPT_TIMEOUT)
        let check = clock.setTimeout(checkNode, CHECK_INTERVAL)
        let wasAlive = true
        let hasEnded = false
        const abort = () => abandon({ failure: cancelled() })
        function endAsLost() {
          abandon({ isLost: true })
        }
        function end(result: RelayResult) {
          clock.clear(silence)
          clock.clear(check)
          cancellation.remove(abort)
          pending.delete(request)
          hasEnded = true
          resolve(result)
        }
        /** Cancels the call at its node. A call whose further requests are already in transit is held there, and is given up. */
        function abandon(result: RelayResult) {
          if (hasEnded) return
          end(result)
          void postQuietly(peers, node, resume.held, { kind: 'cancel', request })
          const forget = clock.setTimeout(() => pending.delete(request), ACCEPT_TIMEOUT).unref()
          pending.set(request, reply => {
            if (reply.kind !== 'ended') return
            pending.delete(request)
            clock.clear(forget)
            if ('held' in reply.end) giveUp(peers, node, resume.server, reply.end.held)
          })
        }
        async function checkNode() {
          const isAlive = await peers.isAlive(node).catch(() => true)
          // The last message of a node that has ended can still arrive.
          if (!isAlive && !wasAlive) return endAsLost()
          wasAlive = isAlive
          if (!hasEnded) check = clock.setTimeout(checkNode, CHECK_INTERVAL)
        }
        pending.set(request, reply => {
          if (reply.kind === 'ended') return end(reply.end)
          clock.clear(silence)
          silence = clock.setTimeout(endAsLost, timeout + ACCEPT_TIMEOUT)
          if (reply.kind === 'progress') ctx.progress(reply.values.progress, reply.values.total, reply.values.message)
          else if (reply.kind === 'log') ctx.log(reply.values.level, reply.values.data, reply.values.logger)
        })
        cancellation.add(abort)
        const body = { kind: 'resume', ...resume, request, node: peers.node } as const
        post(peers, node, resume.held, body).then(isSent => isSent || endAsLost(), endAsLost)
      })
    },
  }
}

export type NodeRelay = ReturnType<typeof createNodeRelay>

const cancelled = () => new RemoteError('cancelled', 'the call was cancelled')
