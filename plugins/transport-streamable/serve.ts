// One POST from its body to its answer, for requests that need no session: every one of 2026-07-28, and the older
// revisions' on a stateless route.
import {
  encodeError,
  encodeNotification,
  encodeResult,
  type HostContext,
  HostError,
  type Message,
  MODERN_REVISION,
  type PluginHost,
  type RequestId,
  type Route,
  readMessages,
} from '../../core/index.ts'
import { allowsBatch, classify, revisionHint, type Speech } from './classify.ts'
import { createExchange, type Exchange } from './exchange.ts'
import { negotiate } from './negotiate.ts'
import { readBody } from './read-body.ts'
import { checkNotificationHeaders, checkStandardHeaders, checkToolHeaders } from './standard-headers.ts'

type Request = Extract<Message, { kind: 'request' }>

/** Refusals that an older client is told by HTTP as well: it must sign in, or come back later. */
const STATUS_FOR_ALL: ReadonlySet<number> = new Set([401, 403, 429, 503])

/** Answers 202, or a refusal, to what expects no answer of its own. */
function accept(ctx: HostContext) {
  ctx.body = null
  ctx.status = 202
}

function refuse(ctx: HostContext, error: HostError, id?: RequestId) {
  ctx.status = error.status
  for (const [name, value] of Object.entries(error.headers ?? {})) ctx.set(name, value)
  ctx.type = 'json'
  ctx.body = encodeError(error, { id, revision: revisionHint(ctx.req.headers) })
}

/** The refusal of a message, or undefined where it may go on. */
function firstRefusal(messages: readonly Message[], ctx: HostContext, batch: boolean): HostError | undefined {
  if (!batch) return undefined
  if (!allowsBatch(ctx.req.headers)) {
    return new HostError('invalidRequest', { detail: 'only revision 2025-03-26 has batches' })
  }
  if (messages.some(message => message.kind === 'request' && message.method === 'initialize')) {
    return new HostError('invalidRequest', { detail: 'initialize cannot be part of a batch' })
  }
  return undefined
}

/** Serves the POSTs of one route. */
export function createPostHandler(host: PluginHost, route: Route) {
  function speechOf(message: Exclude<Message, { kind: 'invalid' | 'response' }>, ctx: HostContext): Speech {
    const speech = classify(message, ctx.req.headers, route.revisions)
    if (speech.revision !== MODERN_REVISION) return speech
    if (message.kind === 'request') checkStandardHeaders(ctx.req.headers, message.method, message.params)
    else checkNotificationHeaders(ctx.req.headers, message.method)
    return speech
  }

  async function answer(request: Request, speech: Speech, ctx: HostContext, exchange: Exchange) {
    const { id, method, params } = request
    const { headers } = ctx.req
    const modern = speech.revision === MODERN_REVISION
    const signal = () => exchange.signal()
    try {
      const { user } = ctx.state
      const session = await host.openSession({ route, params: ctx.state.params, user, headers, ip: ctx.ip, signal })
      if (modern) checkToolHeaders(headers, session.view, method, params)
      const call = host.createCall({
        id,
        method,
        params,
        session,
        signal,
        revision: speech.revision,
        client: speech.client,
        logLevel: speech.logLevel,
        notify: (name, fields) => exchange.notify(encodeNotification(name, fields)),
        ...(modern && { asks: 'input_required' as const }),
      })
      let text = ''
      await session.run(async () => {
        const result = await host.answer(call)
        try {
          text = encodeResult(call, result)
        } catch (err) {
          // What JSON cannot hold is a failure of the handler, as a throw is.
          host.log.error({ err, method, route: route.path }, 'a result cannot be written as JSON')
          throw new HostError('internal', { cause: err }).within200()
        }
      })
      exchange.respond(text)
    } catch (thrown) {
      const error = HostError.is(thrown) ? thrown : new HostError('internal')
      if (!HostError.is(thrown)) host.log.error({ err: thrown, method, route: route.path }, 'a call failed')
      // An older client takes 404 for the end of its session, and 400 for a bug of its own.
      const status = modern || STATUS_FOR_ALL.has(error.status) ? error.status : 200
      exchange.respond(encodeError(error, { id, revision: speech.revision }), status, error.headers)
    }
  }

  /** Answers the requests among these messages on one exchange. */
  async function exchangeAll(requests: ReadonlyArray<[Request, Speech]>, ctx: HostContext, batch: boolean) {
    ctx.respond = false
    const exchange = createExchange(ctx.res, { expected: requests.length, batch, log: host.log })
    const leave = host.inFlight(reason => exchange.cancel(reason))
    try {
      const [only] = requests
      if (only && requests.length === 1) await answer(...only, ctx, exchange)
      else await Promise.all(requests.map(([request, speech]) => answer(request, speech, ctx, exchange)))
    } finally {
      leave()
    }
  }

  async function serveBatch(messages: readonly Message[], ctx: HostContext) {
    const refusal = firstRefusal(messages, ctx, true)
    if (refusal) return refuse(ctx, refusal)
    const invalid = messages.find(message => message.kind === 'invalid')
    if (invalid) return refuse(ctx, invalid.error)
    const requests = messages.flatMap((message): Array<[Request, Speech]> => {
      if (message.kind === 'response' || message.kind === 'invalid') return []
      const speech = speechOf(message, ctx)
      if (speech.revision === MODERN_REVISION) {
        throw new HostError('invalidRequest', { detail: `revision ${MODERN_REVISION} has no batches` })
      }
      return message.kind === 'request' ? [[message, speech]] : []
    })
    if (requests.length === 0) return accept(ctx)
    return exchangeAll(requests, ctx, true)
  }

  function serveOne(message: Message, ctx: HostContext) {
    if (message.kind === 'invalid') return refuse(ctx, message.error, message.id)
    if (message.kind === 'response') {
      const modern = revisionHint(ctx.req.headers) === MODERN_REVISION
      return modern
        ? refuse(ctx, new HostError('invalidRequest', { detail: 'clients send no responses' }))
        : accept(ctx)
    }
    const id = message.kind === 'request' ? message.id : undefined
    let speech: Speech
    try {
      speech = speechOf(message, ctx)
    } catch (error) {
      if (HostError.is(error)) return refuse(ctx, error, id)
      throw error
    }
    return message.kind === 'request' ? exchangeAll([[message, speech]], ctx, false) : accept(ctx)
  }

  return async (ctx: HostContext) => {
    try {
      negotiate(ctx.req.headers)
      const messages = readMessages(await readBody(ctx.req, host.http.maxBodySize))
      return await ('kind' in messages ? serveOne(messages, ctx) : serveBatch(messages, ctx))
    } catch (error) {
      if (!HostError.is(error)) throw error
      host.log.debug({ refused: error.kind, detail: error.detail, path: ctx.path }, 'refused a request')
      return refuse(ctx, error)
    }
  }
}
