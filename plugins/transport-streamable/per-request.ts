// Requests that need no session: every one of 2026-07-28, and the older revisions' on a stateless route.
import {
  encodeAnswer,
  encodeError,
  type HostContext,
  HostError,
  type Message,
  MODERN_REVISION,
  openEventStream,
  type PluginHost,
  type Route,
} from '../../core/index.ts'
import type { Speech } from './classify.ts'
import { createExchange, type Exchange, type Sink } from './exchange.ts'
import { answerStatus } from './refusals.ts'
import { checkToolHeaders } from './standard-headers.ts'

export type Request = Extract<Message, { kind: 'request' }>

/** Answers requests one by one, each as if it were the first. */
export function createPerRequest(host: PluginHost, route: Route) {
  function openSink(ctx: HostContext): Sink {
    const stream = openEventStream(ctx.res, {
      stalled: waiting => host.log.warn({ waiting }, 'closed a stream whose reader does not read'),
    })
    return {
      send: message => stream.send(message),
      end: message => (message === undefined ? stream.end() : stream.endWith(message)),
    }
  }

  async function answer({ id, method, params }: Request, speech: Speech, ctx: HostContext, exchange: Exchange) {
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
      exchange.respond(text)
    } catch (thrown) {
      const error = HostError.is(thrown) ? thrown : new HostError('internal')
      if (!HostError.is(thrown)) host.log.error({ err: thrown, method, route: route.path }, 'a call failed')
      exchange.respond(encodeError(error, { id, revision }), answerStatus(error, modern), error.headers)
    }
  }

  /** Answers these requests on one exchange. */
  return async function answerAll(requests: ReadonlyArray<[Request, Speech]>, ctx: HostContext, batch: boolean) {
    let exchange: Exchange | undefined
    const leave = host.inFlight(reason => exchange?.cancel(reason))
    ctx.respond = false
    const open = () => openSink(ctx)
    exchange = createExchange(ctx.res, { expected: requests.length, batch, open, cancelledByClose: true })
    try {
      const [only] = requests
      if (only && requests.length === 1) await answer(...only, ctx, exchange)
      else await Promise.all(requests.map(([request, speech]) => answer(request, speech, ctx, exchange)))
    } finally {
      leave()
    }
  }
}
