// Requests that name their own revision (2026-07-28): a POST each, whose response ends with the answer. To close it is to
// cancel; a subscription that breaks is asked for again.
import { isObject } from '../../core/mcp/is-object.ts'
import { errorIn, explainRefusal, isStream, readJson } from './answers.ts'
import { readEvents } from './event-stream.ts'
import { type Exchange, isHarmless } from './exchange.ts'
import { ownHeaders, type ToolHeaders } from './headers.ts'
import { broken, createBackOff, type Link, MAX_MESSAGE, sleep } from './link.ts'
import { type Fields, readMessages } from './messages.ts'
import type { Send } from './send.ts'

const HEADER_MISMATCH = -32_020
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
/** Filters of a subscription, and what tells of each. */
const CHANGES: Readonly<Record<string, string>> = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
}

/** What may have changed while nobody listened, as the subscription would have said it. */
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

export function createOwnExchanges(link: Link, send: Send, tools: ToolHeaders) {
  const { url, note, timing, signal: over } = link

  const post = (exchange: Exchange) =>
    send({
      method: 'POST',
      headers: ownHeaders(exchange, tools),
      body: exchange.out.text,
      harmless: isHarmless(exchange),
      signal: exchange.signal,
    })

  /** Hands on all that comes; `again` where the client was told before that its subscription holds. */
  async function hearAll(response: Response, again: boolean): Promise<void> {
    if (!response.body) return
    for await (const { event, data } of readEvents(response.body, MAX_MESSAGE)) {
      if (event !== 'message' || data === '') continue
      const [message] = again ? readMessages(data) : []
      if (message?.['method'] !== ACKNOWLEDGED) await link.hear(data)
      else for (const change of missed(message)) await link.hear(change)
    }
  }

  /** The client has not seen the list of tools, or an older one: asks in its name what goes into headers. */
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

  /** True where it is to be sent again. */
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
