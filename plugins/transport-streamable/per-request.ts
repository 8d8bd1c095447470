// Requests that need no session: every one of 2026-07-28, and the older revisions' on a stateless route.
import {
  encodeAnswer,
  encodeError,
  type HostContext,
  HostError,
  type McpRoute,
  type Message,
  MODERN_REVISION,
  nodeLost,
  openEventStream,
  type Transport,
} from '../../core/index.ts'
import type { Speech } from './classify.ts'
import { createExchange, type Exchange, type Sink } from './exchange.ts'
import { answerStatus } from './refusals.ts'
import { checkToolHeaders } from './standard-headers.ts'

export type Request = Extract<Message, { kind: 'request' }>

interface Answering {
  readonly exchange: Exchange
  /** Requests that are not answered yet. */
  readonly open: Map<Request, Speech>
}

/** Answers requests one by one, each as if it were the first. */
export function createPerRequest(host: Transport, route: McpRoute) {
  function openSink(ctx: HostContext): Sink {
    const stream = openEventStream(ctx.res, {
      stalled: waiting => host.log.warn({ waiting }, 'closed a stream whose reader does not read'),
    })
    return {
      send: message => stream.send(message),
      end: message => (message === undefined ? stream.end() : stream.endWith(message)),
    }
  }

  async function answer(request: Request, speech: Speech, ctx: HostContext, { exchange, open }: Answering) {
    const { id, method, params } = request
    const { headers } = ctx.req
    const { revision, client, logLevel } = speech
    const modern = revision === MODERN_REVISION
    const signal = () => exchange.signal()
    try {
      const { user } = ctx.state
      const session = await host.openSession({ route, params: ctx.state.params, user, headers, ip: ctx.ip, signal })
      if (modern) checkToolHeaders(headers, session.view, method, params)
      const send = (message: string) => exchange.send(message)
      const asks = modern ? { asks: 'input_required' as const } : {}
      const call = host.createCall({
        id,
        method,
        params,
        headers,
        revision,
        session,
        client,
        logLevel,
        send,
        signal,
        ...asks,
      })
      let text = ''
      await session.run(async () => {
        text = encodeAnswer(host, call, await host.answer(call))
      })
      if (open.delete(request)) exchange.respond(text)
    } catch (thrown) {
      const error = HostError.is(thrown) ? thrown : new HostError('internal')
      if (!HostError.is(thrown)) host.log.error({ err: thrown, method, route: route.path }, 'a call failed')
      if (!open.delete(request)) return
      exchange.respond(encodeError(error, { id, revision }), answerStatus(error, modern), error.headers)
    }
  }

  /** Answers these requests on one exchange. */
  return async function answerAll(requests: ReadonlyArray<[Request, Speech]>, ctx: HostContext, batch: boolean) {
    const open = new Map(requests)
    let exchange: Exchange | undefined
    const leave = host.inFlight(reason => {
      for (const [{ id }, { revision }] of open) exchange?.respond(encodeError(nodeLost(), { id, revision }))
      open.clear()
      exchange?.cancel(reason)
    })
    ctx.respond = false
    const expected = requests.length
    exchange = createExchange(ctx.res, { expected, batch, open: () => openSink(ctx), cancelledByClose: true })
    const answering = { exchange, open }
    try {
      const [only] = requests
      if (only && expected === 1) await answer(...only, ctx, answering)
      else await Promise.all(requests.map(([request, speech]) => answer(request, speech, ctx, answering)))
    } finally {
      leave()
    }
  }
}
