// Streamable HTTP: one POST per client line, with and without sessions; falls back to HTTP+SSE.

import { Cancellation } from '../../core/mcp/cancellation.ts'
import { isObject } from '../../core/mcp/is-object.ts'
import type { HttpTarget } from '../connection-types.ts'
import { isTooLarge, RemoteError } from '../errors.ts'
import { type Exchange, type Fields, isIdempotent, readMessages, resultIn } from '../messages.ts'
import { readEvents } from './event-stream.ts'
import { JSON_TYPE, ownHeaders, POST_HEADERS, type ToolHeaders } from './headers.ts'
import {
  type BackOff,
  broken,
  createBackOff,
  createFarewell,
  createSend,
  errorIn,
  isOk,
  isStream,
  type Link,
  mayBeOlder,
  notEndpoint,
  Post,
  printableUrl,
  readJson,
  refusal,
  type Send,
  sleep,
  type Transport,
  typeOf,
} from './link.ts'
import { createOlderSse } from './older-sse.ts'
import { createKeptSession, createSessionStreams, hasLost } from './session.ts'
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
function missed(acknowledgement: Fields): string[] {
  const params = isObject(acknowledgement['params']) ? acknowledgement['params'] : {}
  const filters = isObject(params['notifications']) ? params['notifications'] : {}
  const id = isObject(params['_meta']) ? params['_meta'][SUBSCRIPTION] : undefined
  const tell = (method: string, more: Fields = {}) =>
    JSON.stringify({ jsonrpc: '2.0', method, params: { ...more, _meta: { [SUBSCRIPTION]: id } } })
  const uris = Array.isArray(filters['resourceSubscriptions']) ? filters['resourceSubscriptions'] : []
  return [
    ...Object.entries(CHANGES).flatMap(([filter, method]) => (filters[filter] === true ? [tell(method)] : [])),
    ...uris.map(uri => tell('notifications/resources/updated', { uri })),
  ]
}

function createOwnExchanges(link: Link, send: Send, tools: ToolHeaders) {
  const { url, note, timing, over } = link

  async function receiveAll(response: WireResponse, exchange: Exchange, again: boolean): Promise<void> {
    const farewell = createFarewell(exchange, exchange.cancellation)
    try {
      for await (const { event, data } of readEvents(response.chunks(), exchange.limit)) {
        if (event !== 'message' || data === '') continue
        const [message] = again ? readMessages(data) : []
        if (message?.['method'] === ACKNOWLEDGED)
          for (const change of missed(message)) await link.receive(change, exchange)
        else {
          const passed = link.receive(data, exchange)
          farewell.check()
          if (passed) await passed
        }
      }
    } catch (error) {
      if (isTooLarge(error)) throw error
      note(`a stream broke: ${error}`)
    } finally {
      farewell.stop()
    }
  }

  /** Requests the tool list on behalf of the client, to learn which arguments become headers. */
  async function learnTools({ out, version, cancellation, headers: added }: Exchange): Promise<void> {
    const _meta = out.requests[0]?.params['_meta']
    let cursor: unknown
    for (let page = 0; page < 100; page++) {
      const params = { _meta, ...(cursor !== undefined && { cursor }) }
      const listed = { out: { ...out, requests: [{ id: 1, method: 'tools/list', params }] }, version }
      const response = await send({
        method: 'POST',
        headers: { ...ownHeaders(listed, tools), ...added },
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
    const [request] = exchange.out.requests
    const response = await send(new Post(exchange, ownHeaders(exchange, tools)))
    const isListening = request?.method === 'subscriptions/listen'
    if (isStream(response)) {
      await receiveAll(response, exchange, isListening && tries > 0)
      if (exchange.open.size === 0 || exchange.cancellation.aborted) return false
      if (isListening || (isIdempotent(exchange) && tries === 0)) return true
      throw broken(url)
    }
    const text = await readJson(response, exchange.limit)
    if (isOk(response)) {
      const passed = text ? link.receive(text, exchange) : undefined
      if (passed) await passed
      if (exchange.open.size > 0) throw noResponse(url, response)
      return false
    }
    if (errorIn(text)?.['code'] === HEADER_MISMATCH && request?.method === 'tools/call' && tries === 0) {
      await learnTools(exchange)
      return true
    }
    if (isListening && tries > 0 && response.status >= 500) return true
    throw refusal(url, response, text)
  }

  return {
    async perform(exchange: Exchange): Promise<void> {
      let backOff: BackOff | undefined
      for (let tries = 0; await attempt(exchange, tries); tries++) {
        if (exchange.out.requests[0]?.method !== 'subscriptions/listen') continue
        backOff ??= createBackOff(timing)
        await sleep(backOff.pause, exchange.cancellation, over)
      }
    },
  }
}

/** The server refused the POST, so it is possibly a legacy server. `refused`: its response. */
class MaybeOlder extends Error {
  readonly refused: RemoteError
  constructor(refused: RemoteError) {
    super('the server may be a legacy server')
    this.refused = refused
  }
}

/** The error for a success without a response to the request. */
function noResponse(url: string, response: WireResponse): RemoteError {
  const { status } = response
  const type = typeOf(response)
  if (type === undefined || type === JSON_TYPE || status !== 200)
    return new RemoteError('invalid', `${printableUrl(url)} sent no response to the request; see its log`, {
      executed: 'maybe',
    })
  return notEndpoint(url, type.slice(0, 100), { status, executed: 'maybe' })
}

function createStreamable(link: Link, tools: ToolHeaders): Transport {
  const { url } = link
  const send = createSend(link, () => session.id !== undefined)
  const session = createKeptSession(link, send, () => void streams.listen())
  const streams = createSessionStreams(link, send, session)
  const own = createOwnExchanges(link, send, tools)

  /** Passes on a response. Undefined if it succeeded, otherwise the refusal and its text. */
  async function take(
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
    if (exchange.open.size > 0 && !exchange.cancellation.aborted) throw noResponse(url, response)
    return undefined
  }

  async function open(exchange: Exchange): Promise<void> {
    const end = new Cancellation()
    const response = await send(new Post(exchange, POST_HEADERS, end))
    const received = (text: string) => {
      const result = resultIn(text)
      if (result && typeof result['protocolVersion'] === 'string') session.opened(exchange, response, result)
    }
    const refused = await take(response, exchange, end, received)
    if (!refused) return
    const error = refusal(url, response, refused.text)
    throw mayBeOlder(refused.status, refused.text) ? new MaybeOlder(error) : error
  }

  async function performInSession(exchange: Exchange): Promise<void> {
    session.remember(exchange)
    for (let attempt = 0; ; attempt++) {
      await session.ready()
      const { epoch, id } = session
      const end = new Cancellation()
      const response = await send(new Post(exchange, session.headers(), end))
      const refused = await take(response, exchange, end)
      if (!refused) break
      if (attempt > 0 || !hasLost(id, refused.status, refused.text)) throw refusal(url, response, refused.text)
      await session.reopen(epoch)
      if (exchange.out.requests.length === 0 && !exchange.out.notification) return
    }
    if (exchange.out.notification?.method !== 'notifications/initialized') return
    void streams.listen()
  }

  return {
    perform(exchange) {
      if (exchange.version !== undefined) return own.perform(exchange)
      return exchange.out.requests[0]?.method === 'initialize' ? open(exchange) : performInSession(exchange)
    },
    async leave(cancellation) {
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
  let current = transport === 'sse' ? createOlderSse(link) : createStreamable(link, tools)
  return {
    async perform(exchange) {
      try {
        return await current.perform(exchange)
      } catch (error) {
        if (!(error instanceof MaybeOlder)) throw error
        if (transport !== 'auto') throw error.refused
        const [newer, older] = [current, createOlderSse(link)]
        current = older
        try {
          await older.perform(exchange)
        } catch (failure) {
          current = newer
          link.note(`HTTP+SSE: ${failure}`)
          throw error.refused
        }
        link.note('using HTTP+SSE (2024-11-05)')
      }
    },
    leave: cancellation => current.leave(cancellation),
    get sessionId() {
      return current.sessionId
    },
    cancelsByClosing: exchange => current.cancelsByClosing(exchange),
  }
}
