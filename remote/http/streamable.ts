// Streamable HTTP: one POST per client line, with and without sessions; falls back to HTTP+SSE.

import { Cancellation } from '../../core/mcp/wire/cancellation.ts'
import { isObject } from '../../core/mcp/wire/message.ts'
import type { HttpTarget } from '../connection-types.ts'
import { isTooLarge, RemoteError } from '../errors.ts'
import { type Exchange, type Fields, isIdempotent, readMessages, readResult } from '../messages.ts'
import { readEvents } from './event-stream.ts'
import { JSON_TYPE, POST_HEADERS, requestHeaders, type ToolHeaders } from './headers.ts'
import { createLegacySse } from './legacy-sse.ts'
import {
  type BackOff,
  brokenError,
  createBackOff,
  createCloseTimer,
  createSend,
  isOk,
  isStream,
  type Link,
  mayBeLegacy,
  notEndpointError,
  Post,
  printableUrl,
  readError,
  readJson,
  refusalError,
  type Send,
  sleep,
  type Transport,
  typeOf,
} from './link.ts'
import { createSession, createSessionStreams, hasLost } from './session.ts'
import type { WireResponse } from './wire.ts'

const HEADER_MISMATCH = -32_020
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const CHANGES: Readonly<Record<string, string>> = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
}

/** The change notifications that were possibly missed, according to the subscription. */
function missedChanges(acknowledgement: Fields): string[] {
  const params = isObject(acknowledgement['params']) ? acknowledgement['params'] : {}
  const filters = isObject(params['notifications']) ? params['notifications'] : {}
  const id = isObject(params['_meta']) ? params['_meta'][SUBSCRIPTION] : undefined
  const notification = (method: string, more: Fields = {}) =>
    JSON.stringify({ jsonrpc: '2.0', method, params: { ...more, _meta: { [SUBSCRIPTION]: id } } })
  const uris = Array.isArray(filters['resourceSubscriptions']) ? filters['resourceSubscriptions'] : []
  return [
    ...Object.entries(CHANGES).flatMap(([filter, method]) => (filters[filter] === true ? [notification(method)] : [])),
    ...uris.map(uri => notification('notifications/resources/updated', { uri })),
  ]
}

function createStatelessExchanges(link: Link, send: Send, tools: ToolHeaders) {
  const { url, debug, timing, closing } = link

  async function receiveAll(response: WireResponse, exchange: Exchange, isReopened: boolean): Promise<void> {
    const closeTimer = createCloseTimer(exchange, exchange.cancellation)
    try {
      for await (const { event, data } of readEvents(response.chunks(), exchange.limit)) {
        if (event !== 'message' || data === '') continue
        const [message] = isReopened ? readMessages(data) : []
        if (message?.['method'] === ACKNOWLEDGED)
          for (const change of missedChanges(message)) await link.receive(change, exchange)
        else {
          const passed = link.receive(data, exchange)
          closeTimer.check()
          if (passed) await passed
        }
      }
    } catch (error) {
      if (isTooLarge(error)) throw error
      debug(`a stream broke: ${error}`)
    } finally {
      closeTimer.stop()
    }
  }

  /** Requests the tool list on behalf of the client, to learn which arguments become headers. */
  async function learnTools({ message: out, version, cancellation, headers: added }: Exchange): Promise<void> {
    const _meta = out.requests[0]?.params['_meta']
    let cursor: unknown
    for (let page = 0; page < 100; page++) {
      const params = { _meta, ...(cursor !== undefined && { cursor }) }
      const listed = { message: { ...out, requests: [{ id: 1, method: 'tools/list', params }] }, version }
      const response = await send({
        method: 'POST',
        headers: { ...requestHeaders(listed, tools), ...added },
        body: JSON.stringify({ jsonrpc: '2.0', id: 'mcp-host-tools', method: 'tools/list', params }),
        idempotent: true,
        cancellations: [cancellation],
        isPersonal: added !== undefined,
      })
      const [message] = readMessages((await readJson(response)) ?? '')
      const result = isObject(message?.['result']) ? message['result'] : {}
      if (Array.isArray(result['tools'])) tools.learn(result['tools'])
      cursor = result['nextCursor']
      if (typeof cursor !== 'string') return
    }
  }

  async function attempt(exchange: Exchange, tries: number): Promise<boolean> {
    const [request] = exchange.message.requests
    const response = await send(new Post(exchange, requestHeaders(exchange, tools)))
    const isListening = request?.method === 'subscriptions/listen'
    if (isStream(response)) {
      await receiveAll(response, exchange, isListening && tries > 0)
      if (exchange.open.size === 0 || exchange.cancellation.aborted) return false
      if (isListening || (isIdempotent(exchange) && tries === 0)) return true
      throw brokenError(url)
    }
    const text = await readJson(response, exchange.limit)
    if (isOk(response)) {
      const passed = text ? link.receive(text, exchange) : undefined
      if (passed) await passed
      if (exchange.open.size > 0) throw noResponseError(url, response)
      return false
    }
    if (readError(text)?.['code'] === HEADER_MISMATCH && request?.method === 'tools/call' && tries === 0) {
      await learnTools(exchange)
      return true
    }
    if (isListening && tries > 0 && response.status >= 500) return true
    throw refusalError(url, response, text)
  }

  return {
    async perform(exchange: Exchange): Promise<void> {
      let backOff: BackOff | undefined
      for (let tries = 0; await attempt(exchange, tries); tries++) {
        if (exchange.message.requests[0]?.method !== 'subscriptions/listen') continue
        backOff ??= createBackOff(timing)
        await sleep(backOff.pause, exchange.cancellation, closing)
      }
    },
  }
}

/** The server refused the POST, so it is possibly a legacy server. `refused`: its response. */
class MaybeLegacyError extends Error {
  readonly refusal: RemoteError
  constructor(refused: RemoteError) {
    super('the server may be a legacy server')
    this.refusal = refused
  }
}

/** The error for a success without a response to the request. */
function noResponseError(url: string, response: WireResponse): RemoteError {
  const { status } = response
  const type = typeOf(response)
  if (type === undefined || type === JSON_TYPE || status !== 200)
    return new RemoteError('invalid', `${printableUrl(url)} sent no response to the request; see its log`, {
      executed: 'maybe',
    })
  return notEndpointError(url, type.slice(0, 100), { status, executed: 'maybe' })
}

function createStreamable(link: Link, tools: ToolHeaders): Transport {
  const { url } = link
  const send = createSend(link, () => session.id !== undefined)
  const session = createSession(link, send, () => void streams.listen())
  const streams = createSessionStreams(link, send, session)
  const stateless = createStatelessExchanges(link, send, tools)

  /** Passes on a response. Undefined if it succeeded, otherwise the refusal and its text. */
  async function passResponse(
    response: WireResponse,
    exchange: Exchange,
    end: Cancellation,
    received?: (text: string) => void,
  ) {
    if (isStream(response)) {
      await streams.follow(response, exchange, end, received)
      return undefined
    }
    const text = await readJson(response, exchange.limit)
    if (!isOk(response)) return { status: response.status, text }
    if (text) {
      received?.(text)
      const passed = link.receive(text, exchange)
      if (passed) await passed
    }
    if (exchange.open.size > 0 && !exchange.cancellation.aborted) throw noResponseError(url, response)
    return undefined
  }

  async function open(exchange: Exchange): Promise<void> {
    const end = new Cancellation()
    const response = await send(new Post(exchange, POST_HEADERS, end))
    const received = (text: string) => {
      const result = readResult(text)
      if (result && typeof result['protocolVersion'] === 'string') session.establish(exchange, response, result)
    }
    const refused = await passResponse(response, exchange, end, received)
    if (!refused) return
    const error = refusalError(url, response, refused.text)
    throw mayBeLegacy(refused.status, refused.text) ? new MaybeLegacyError(error) : error
  }

  async function performInSession(exchange: Exchange): Promise<void> {
    session.remember(exchange)
    for (let attempt = 0; ; attempt++) {
      await session.ready()
      const { epoch, id } = session
      const end = new Cancellation()
      const response = await send(new Post(exchange, session.headers(), end))
      const refused = await passResponse(response, exchange, end)
      if (!refused) break
      if (attempt > 0 || !hasLost(id, refused.status, refused.text)) throw refusalError(url, response, refused.text)
      await session.reopen(epoch)
      if (exchange.message.requests.length === 0 && !exchange.message.notification) return
    }
    if (exchange.message.notification?.method !== 'notifications/initialized') return
    void streams.listen()
  }

  return {
    perform(exchange) {
      if (exchange.version !== undefined) return stateless.perform(exchange)
      return exchange.message.requests[0]?.method === 'initialize' ? open(exchange) : performInSession(exchange)
    },
    async endSession(cancellation) {
      if (session.id === undefined) return
      const headers = session.headers()
      const cancellations = [cancellation]
      const response = await send({ method: 'DELETE', headers, idempotent: true, cancellations, retryTimeout: 0 })
      response.discard()
    },
    get sessionId() {
      return session.id
    },
    cancelsByClosing: ({ version }) => version !== undefined,
  }
}

export type TransportName = NonNullable<HttpTarget['transport']>

/** Creates a transport for Streamable HTTP, or HTTP+SSE. */
export function createHttpTransport(link: Link, tools: ToolHeaders, transport: TransportName): Transport {
  let current = transport === 'sse' ? createLegacySse(link) : createStreamable(link, tools)
  return {
    async perform(exchange) {
      try {
        return await current.perform(exchange)
      } catch (error) {
        if (!(error instanceof MaybeLegacyError)) throw error
        if (transport !== 'auto') throw error.refusal
        const [streamable, legacy] = [current, createLegacySse(link)]
        current = legacy
        try {
          await legacy.perform(exchange)
        } catch (failure) {
          current = streamable
          link.debug(`HTTP+SSE: ${failure}`)
          throw error.refusal
        }
        link.debug('using HTTP+SSE (2024-11-05)')
      }
    },
    endSession: cancellation => current.endSession(cancellation),
    get sessionId() {
      return current.sessionId
    },
    cancelsByClosing: exchange => current.cancelsByClosing(exchange),
  }
}
