// Streamable HTTP: one POST per client line, with and without sessions; falls back to HTTP+SSE.
import { isObject } from '../../core/mcp/is-object.ts'
import { readEvents } from './event-stream.ts'
import { ownHeaders, POST_HEADERS, type ToolHeaders } from './headers.ts'
import {
  broken,
  createBackOff,
  createSend,
  errorIn,
  explainRefusal,
  isStream,
  type Link,
  MAX_MESSAGE,
  mayBeOlder,
  type Remote,
  readJson,
  type Send,
  sleep,
} from './link.ts'
import { type Exchange, Failure, type Fields, isHarmless, readMessages } from './messages.ts'
import { createOlderSse } from './older-sse.ts'
import { createKeptSession, createSessionStreams, hasLost, resultIn } from './session.ts'

const HEADER_MISMATCH = -32_020
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const CHANGES: Readonly<Record<string, string>> = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
}

/** Change notifications that may have been missed, according to the subscription. */
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
  const { url, note, timing, signal: over } = link

  const post = (exchange: Exchange) =>
    send({
      method: 'POST',
      headers: ownHeaders(exchange, tools),
      body: exchange.out.text,
      harmless: isHarmless(exchange),
      signal: exchange.signal,
    })

  async function hearAll(response: Response, again: boolean): Promise<void> {
    if (!response.body) return
    for await (const { event, data } of readEvents(response.body, MAX_MESSAGE)) {
      if (event !== 'message' || data === '') continue
      const [message] = again ? readMessages(data) : []
      if (message?.['method'] !== ACKNOWLEDGED) await link.hear(data)
      else for (const change of missed(message)) await link.hear(change)
    }
  }

  /** Requests the tool list on behalf of the client, to learn which arguments become headers. */
  async function learnTools({ out, version, signal }: Exchange): Promise<void> {
    const _meta = out.requests[0]?.params['_meta']
    let cursor: unknown
    for (let page = 0; page < 100; page++) {
      const params = { _meta, ...(cursor !== undefined && { cursor }) }
      const headers = ownHeaders(
        { out: { ...out, requests: [{ id: 1, method: 'tools/list', params }] }, version },
        tools,
      )
      const body = JSON.stringify({ jsonrpc: '2.0', id: 'mcp-host-proxy', method: 'tools/list', params })
      const response = await send({ method: 'POST', headers, body, harmless: true, signal })
      const [message] = readMessages((await readJson(response)) ?? '')
      const result = isObject(message?.['result']) ? message['result'] : {}
      if (Array.isArray(result['tools'])) tools.learn(result['tools'])
      cursor = result['nextCursor']
      if (typeof cursor !== 'string') return
    }
  }

  async function attempt(exchange: Exchange, tries: number): Promise<boolean> {
    const [request] = exchange.out.requests
    const response = await post(exchange)
    const isListening = request?.method === 'subscriptions/listen'
    if (isStream(response)) {
      await hearAll(response, isListening && tries > 0).catch(error => note(`a stream broke: ${error}`))
      if (exchange.open.size === 0 || exchange.signal.aborted) return false
      if (isListening || (isHarmless(exchange) && tries === 0)) return true
      throw broken(url)
    }
    const text = await readJson(response)
    if (response.ok) {
      if (text) await link.hear(text)
      if (exchange.open.size > 0) throw broken(url)
      return false
    }
    if (errorIn(text)?.['code'] === HEADER_MISMATCH && request?.method === 'tools/call' && tries === 0) {
      await learnTools(exchange)
      return true
    }
    if (isListening && tries > 0 && response.status >= 500) return true
    throw explainRefusal(url, response, text)
  }

  return {
    async carry(exchange: Exchange): Promise<void> {
      const backOff = createBackOff(timing)
      for (let tries = 0; await attempt(exchange, tries); tries++) {
        if (exchange.out.requests[0]?.method === 'subscriptions/listen')
          await sleep(backOff.pause, exchange.signal, over)
      }
    },
  }
}

/** The server refused the POST, so it may be a legacy server. `refused`: its response. */
class MaybeOlder extends Error {
  readonly refused: unknown
  constructor(refused: unknown) {
    super('the server may be an older one')
    this.refused = refused
  }
}

const nothing = (url: string) => new Failure('no answer', `${url} took the request and answered nothing; see its log`)

function createStreamable(link: Link, tools: ToolHeaders): Remote {
  const { url } = link
  const send = createSend(link)
  const session = createKeptSession(link, send, () => void streams.listen())
  const streams = createSessionStreams(link, send, session)
  const own = createOwnExchanges(link, send, tools)

  /** Passes on a response. Undefined if it succeeded, otherwise the refusal and its text. */
  async function take(response: Response, exchange: Exchange, end: AbortController, heard?: (text: string) => void) {
    if (isStream(response)) {
      await streams.follow(response, exchange, end, heard)
      return undefined
    }
    const text = await readJson(response)
    if (!response.ok) return { status: response.status, text }
    if (text) {
      heard?.(text)
      await link.hear(text)
    }
    if (exchange.open.size > 0 && !exchange.signal.aborted) throw nothing(url)
    return undefined
  }

  const post = (exchange: Exchange, headers: Record<string, string>, end: AbortController) =>
    send({
      method: 'POST',
      headers,
      body: exchange.out.text,
      harmless: isHarmless(exchange),
      signal: AbortSignal.any([exchange.signal, end.signal]),
    })

  async function open(exchange: Exchange): Promise<void> {
    const end = new AbortController()
    const response = await post(exchange, { ...POST_HEADERS }, end)
    const heard = (text: string) => {
      const result = resultIn(text)
      if (result && typeof result['protocolVersion'] === 'string') session.opened(exchange, response, result)
    }
    const refused = await take(response, exchange, end, heard)
    if (!refused) return
    const told = explainRefusal(url, response, refused.text)
    throw mayBeOlder(refused.status, refused.text) ? new MaybeOlder(told) : told
  }

  async function carryInSession(exchange: Exchange): Promise<void> {
    session.remember(exchange)
    for (let attempt = 0; ; attempt++) {
      await session.ready()
      const { epoch, id } = session
      const end = new AbortController()
      const response = await post(exchange, session.headers(), end)
      const refused = await take(response, exchange, end)
      if (!refused) break
      if (attempt > 0 || !hasLost(id, refused.status, refused.text)) throw explainRefusal(url, response, refused.text)
      await session.reopen(epoch)
      if (exchange.out.requests.length === 0 && !exchange.out.notification) return
    }
    if (exchange.out.notification?.method !== 'notifications/initialized') return
    void streams.listen()
  }

  return {
    carry(exchange) {
      if (exchange.version !== undefined) return own.carry(exchange)
      return exchange.out.requests[0]?.method === 'initialize' ? open(exchange) : carryInSession(exchange)
    },
    async leave(signal) {
      if (session.id === undefined) return
      const response = await send({ method: 'DELETE', headers: session.headers(), harmless: true, signal, patience: 0 })
      await response.body?.cancel()
    },
  }
}

export type TransportName = 'auto' | 'http' | 'sse'

export function createRemote(link: Link, tools: ToolHeaders, transport: TransportName): Remote {
  let remote = transport === 'sse' ? createOlderSse(link) : createStreamable(link, tools)
  return {
    async carry(exchange) {
      try {
        return await remote.carry(exchange)
      } catch (error) {
        if (!(error instanceof MaybeOlder)) throw error
        if (transport !== 'auto') throw error.refused
        const older = createOlderSse(link)
        try {
          await older.carry(exchange)
        } catch (failure) {
          link.note(`HTTP+SSE: ${failure}`)
          throw error.refused
        }
        link.note('the server is an older one: HTTP+SSE')
        remote = older
      }
    },
    leave: signal => remote.leave(signal),
  }
}
