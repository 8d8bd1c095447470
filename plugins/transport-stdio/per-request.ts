// Serves requests without a session (2026-07-28, basic/transports/stdio).
import { HostError, type User } from '../../core/index.ts'
import type { McpRoute } from '../../core/plugin.ts'
import {
  type CallReply,
  createLineReply,
  encodeError,
  isModernRevision,
  type ReplyLine,
  type RequestId,
  serveRequests,
  type Transport,
  type ValidMessage,
} from '../../core/transport.ts'
import { type RequestMeta, readRequestMeta, unsupported } from '../families/per-request/index.ts'

export interface Caller {
  readonly route: McpRoute
  readonly params: Readonly<Record<string, string>>
  readonly user: User | undefined
  readonly maxConcurrent: number
}

export function createPerRequest(host: Transport, { route, params, user, maxConcurrent }: Caller, line: ReplyLine) {
  const running = new Map<RequestId, Required<CallReply>>()
  const headers = {}
  const ip = 'stdio'

  function check(id: RequestId) {
    if (running.has(id)) {
      throw new HostError('invalidRequest', { detail: `request ${JSON.stringify(id)} is already running` })
    }
    if (running.size >= maxConcurrent) {
      throw new HostError('tooManyRequests', { detail: `at most ${maxConcurrent} concurrent requests` })
    }
  }

  return {
    async handle(request: Extract<ValidMessage, { kind: 'request' }>): Promise<void> {
      const { id, method } = request
      const reply = createLineReply(line)
      let meta: RequestMeta | undefined
      check(id)
      running.set(id, reply)
      try {
        meta = readRequestMeta(request.params['_meta'])
        const { version: revision, client, logLevel } = meta
        if (!isModernRevision(revision) || !route.revisions.includes(revision)) {
          throw unsupported(revision, route.revisions)
        }
        const facts = { route, params, user, headers, ip, signal: () => reply.cancellation.signal }
        await serveRequests(host, { facts, revision, client, logLevel }, [request], { headers, user }, () => reply)
      } catch (thrown) {
        const error = HostError.is(thrown) ? thrown : new HostError('internal')
        if (error !== thrown)
          host.log.error({ code: 'MH1610', err: thrown, method, route: route.path }, 'a call failed')
        const from = { client: meta?.client, revision: meta?.version, transport: undefined, sessionId: undefined }
        host.reportRefused({ error, method, headers, user, route, ip, ...from })
        reply.respond(encodeError(error, { id, revision: meta?.version }))
      } finally {
        running.delete(id)
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
