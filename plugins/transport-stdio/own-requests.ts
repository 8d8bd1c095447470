// Requests that carry their own version, client and capabilities (2026-07-28): each is served by itself, and ends with its
// answer or with `notifications/cancelled` (basic/transports/stdio).
import { HostError } from '../../core/index.ts'
import {
  type ClientFacts,
  createLineReply,
  encodeAnswer,
  encodeError,
  isModernRevision,
  nodeLost,
  type RequestId,
  type SessionReply,
  type Transport,
  type ValidMessage,
} from '../../core/transport.ts'
import { readRequestMeta, unsupported } from '../families/per-request/index.ts'
import type { Output } from './output.ts'
import type { Caller } from './streams.ts'

type Request = Extract<ValidMessage, { kind: 'request' }>

type Reply = Required<SessionReply>

/** What is known of a request by now. */
interface Known {
  revision: string | undefined
  client: ClientFacts | undefined
  isCall: boolean
}

export interface OwnRequests {
  answer(request: Request): Promise<void>
  /** False where no request of this id runs. */
  cancel(id: unknown, reason: Error): boolean
  /** The client is gone. */
  cancelAll(reason: Error): void
}

export function createOwnRequests(host: Transport, caller: Caller, output: Output): OwnRequests {
  const { route, params: place, user, maxConcurrent } = caller
  const running = new Map<RequestId, Reply>()

  async function serve(request: Request, reply: Reply, known: Known): Promise<string> {
    const { id, method, params } = request
    const { version, client, logLevel } = readRequestMeta(params['_meta'])
    known.revision = version
    known.client = client
    if (!isModernRevision(version) || !route.revisions.includes(version)) throw unsupported(version, route.revisions)
    // It asks the route's `authorize`: nobody here came through `admit`.
    const signal = () => reply.signal()
    const offer = await host.makeOffer({ route, params: place, user, headers: {}, ip: 'stdio', signal })
    const call = host.createCall({
      id,
      method,
      params,
      headers: {},
      user,
      revision: version,
      offer,
      session: undefined,
      client,
      logLevel,
      channel: reply,
      asks: 'input_required',
    })
    let text = ''
    await offer.run(async () => {
      known.isCall = true
      text = String(encodeAnswer(host, call, await host.answer(call)))
    })
    return text
  }

  function check(id: RequestId) {
    if (running.has(id)) {
      throw new HostError('invalidRequest', { detail: `a request with the id ${JSON.stringify(id)} is running` })
    }
    if (running.size >= maxConcurrent) {
      throw new HostError('tooManyRequests', { detail: `at most ${maxConcurrent} requests run at once` })
    }
  }

  async function answer(request: Request): Promise<void> {
    const { id, method } = request
    const reply = createLineReply(output)
    const known: Known = { revision: undefined, client: undefined, isCall: false }
    let left: (() => void) | undefined
    const fail = (error: HostError) => reply.respond(encodeError(error, { id, revision: known.revision }))
    function refuse(error: HostError) {
      const { revision, client } = known
      const transport = undefined
      if (!known.isCall) {
        const told = { error, method, headers: {}, user, route, ip: 'stdio', client, revision, transport }
        host.tellRefused({ ...told, sessionId: undefined })
      }
      fail(error)
    }
    check(id)
    running.set(id, reply)
    try {
      left = host.inFlight(reason => {
        fail(nodeLost())
        reply.cancel(reason)
      })
      reply.respond(await serve(request, reply, known))
    } catch (thrown) {
      if (!HostError.is(thrown)) host.log.error({ err: thrown, method, route: route.path }, 'a call failed')
      refuse(HostError.is(thrown) ? thrown : new HostError('internal'))
    } finally {
      running.delete(id)
      left?.()
    }
  }

  return {
    answer,
    cancel(id, reason) {
      const reply = running.get(id as RequestId)
      reply?.cancel(reason)
      return reply !== undefined
    },
    cancelAll(reason) {
      for (const reply of running.values()) reply.cancel(reason)
    },
  }
}
