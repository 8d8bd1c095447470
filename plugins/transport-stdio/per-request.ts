// Serves requests without a session (2026-07-28, basic/transports/stdio).
import { HostError, type User } from '../../core/index.ts'
import type { McpRoute } from '../../core/plugin.ts'
import {
  type ClientFacts,
  createLineReply,
  encodeAnswer,
  encodeError,
  isModernRevision,
  nodeLost,
  type ReplyLine,
  type RequestId,
  type SessionReply,
  type Transport,
  type ValidMessage,
} from '../../core/transport.ts'
import { readRequestMeta, unsupported } from '../families/per-request/index.ts'

type Request = Extract<ValidMessage, { kind: 'request' }>
type Reply = Required<SessionReply>

export interface Caller {
  readonly route: McpRoute
  readonly params: Readonly<Record<string, string>>
  readonly user: User | undefined
  readonly maxConcurrent: number
}

interface Known {
  revision: string | undefined
  client: ClientFacts | undefined
  isCall: boolean
}

export function createPerRequest(
  host: Transport,
  { route, params: place, user, maxConcurrent }: Caller,
  line: ReplyLine,
) {
  const running = new Map<RequestId, Reply>()
  const headers = {}
  const ip = 'stdio'

  async function serve({ id, method, params }: Request, reply: Reply, known: Known): Promise<string> {
    const { version, client, logLevel } = readRequestMeta(params['_meta'])
    Object.assign(known, { revision: version, client })
    if (!isModernRevision(version) || !route.revisions.includes(version)) throw unsupported(version, route.revisions)
    const signal = () => reply.signal()
    const offer = await host.makeOffer({ route, params: place, user, headers, ip, signal })
    const call = host.createCall({
      id,
      method,
      params,
      headers,
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

  return {
    async answer(request: Request): Promise<void> {
      const { id, method } = request
      const reply = createLineReply(line)
      const known: Known = { revision: undefined, client: undefined, isCall: false }
      let left: (() => void) | undefined
      const fail = (error: HostError) => reply.respond(encodeError(error, { id, revision: known.revision }))
      check(id)
      running.set(id, reply)
      try {
        left = host.inFlight(reason => {
          fail(nodeLost())
          reply.cancel(reason)
        })
        reply.respond(await serve(request, reply, known))
      } catch (thrown) {
        const error = HostError.is(thrown) ? thrown : new HostError('internal')
        if (error !== thrown) host.log.error({ err: thrown, method, route: route.path }, 'a call failed')
        const { revision, client, isCall } = known
        const none = { transport: undefined, sessionId: undefined }
        if (!isCall) host.tellRefused({ error, method, headers, user, route, ip, client, revision, ...none })
        fail(error)
      } finally {
        running.delete(id)
        left?.()
      }
    },
    cancel(id: unknown, reason: Error): boolean {
      const reply = running.get(id as RequestId)
      reply?.cancel(reason)
      return reply !== undefined
    },
    cancelAll(reason: Error): void {
      for (const reply of running.values()) reply.cancel(reason)
    },
  }
}
