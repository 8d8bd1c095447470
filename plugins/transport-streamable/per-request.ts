// Serves requests without a session: those of 2026-07-28, and older ones on a stateless route.
import { HostError } from '../../core/index.ts'
import type { HostContext, McpRoute } from '../../core/plugin.ts'
import {
  type EncodedAnswer,
  encodeAnswer,
  encodeError,
  type Message,
  nodeLost,
  openEventStream,
  rulesOf,
  statusOf,
  type Transport,
} from '../../core/transport.ts'
import { createOpener, type Exchange, headerList, type Sink } from './exchange.ts'
import { checkToolHeaders, type Speech } from './headers.ts'

export type Request = Extract<Message, { kind: 'request' }>

interface Answering {
  readonly exchange: Exchange
  readonly open: Array<readonly [Request, Speech]>
  readonly several: boolean
}

function take(open: Answering['open'], request: Request): boolean {
  const at = open.findIndex(([one]) => one === request)
  if (at !== -1) open.splice(at, 1)
  return at !== -1
}

export function createPerRequest(host: Transport, route: McpRoute) {
  const openFor = createOpener(host.clock)

  function openSink(ctx: HostContext): Sink {
    const stream = openEventStream(ctx.res, { log: host.log })
    return {
      send: message => stream.send(message),
      end: message => (message === undefined ? stream.end() : stream.endWith(message)),
      disconnect: undefined,
    }
  }

  async function answer(request: Request, speech: Speech, ctx: HostContext, { exchange, open, several }: Answering) {
    const { id, method, params } = request
    const { ip } = ctx
    const { headers } = ctx.req
    const { params: place, user } = ctx.state
    const { revision, client, logLevel } = speech
    const rules = rulesOf(revision)
    const signal = () => exchange.signal()
    let isCall = false
    try {
      const made = host.makeOffer({ route, params: place, user, headers, ip, signal, admitted: true })
      const offer = made instanceof Promise ? await made : made
      const call = host.createCall({
        id,
        method,
        params,
        headers,
        user,
        revision,
        offer,
        session: undefined,
        client,
        logLevel,
        channel: exchange,
        asks: rules.handshake ? undefined : 'input_required',
      })
      if (call.modern) checkToolHeaders(call)
      let encoded: EncodedAnswer = ''
      await offer.run(async () => {
        isCall = true
        ctx.state.hasRecords = true
        encoded = encodeAnswer(host, call, await host.answer(call))
      })
      if (take(open, request)) exchange.respond(encoded)
    } catch (thrown) {
      const error = HostError.is(thrown) ? thrown : new HostError('internal')
      if (!HostError.is(thrown)) host.log.error({ err: thrown, method, route: route.path }, 'a call failed')
      if (!take(open, request)) return
      if (several && !isCall) {
        ctx.state.hasRecords = true
        const none = { transport: undefined, sessionId: undefined }
        host.tellRefused({ error, method, headers, user, route, ip, client, revision, ...none })
      }
      ctx.state.refusal = error
      exchange.respond(encodeError(error, { id, revision }), statusOf(error, rules), headerList(error))
    }
  }

  return async function answerAll(
    requests: ReadonlyArray<readonly [Request, Speech]>,
    ctx: HostContext,
    batch: boolean,
  ) {
    const open = [...requests]
    let exchange: Exchange | undefined
    const leave = host.inFlight(reason => {
      for (const [{ id }, { revision }] of open) exchange?.respond(encodeError(nodeLost(), { id, revision }))
      open.length = 0
      exchange?.cancel(reason)
    })
    ctx.respond = false
    const expected = requests.length
    exchange = openFor(ctx.res, { expected, batch, open: () => openSink(ctx), cancelledByClose: true })
    const answering = { exchange, open, several: expected > 1 }
    try {
      const [only] = requests
      if (only && expected === 1) await answer(...only, ctx, answering)
      else await Promise.all(requests.map(([request, speech]) => answer(request, speech, ctx, answering)))
    } finally {
      leave()
    }
  }
}
