// A session of a revision with a handshake: what the client said to open it, so that it can be opened again where the server
// has lost it, and what has to be said again then.
import { isObject } from '../../core/mcp/is-object.ts'
import { isSessionLost, isStream, readJson, refusal } from './answers.ts'
import { readEvents } from './event-stream.ts'
import type { Exchange } from './exchange.ts'
import { POST_HEADERS } from './headers.ts'
import { type Link, MAX_MESSAGE } from './link.ts'
import { answeredId, Failure, type Fields, parse, readMessages } from './messages.ts'
import type { Send } from './send.ts'

/** Nobody waits for the answer. */
const PING = JSON.stringify({ jsonrpc: '2.0', id: 'mcp-host-proxy-ping', method: 'ping' })
/** Subscriptions that are made again. */
const MAX_KEPT = 1_000

export interface KeptSession {
  /** Of the server; undefined: it has none, or is not initialized. */
  readonly id: string | undefined
  /** Counts how often it was opened. */
  readonly epoch: number
  /** Of a request in it. */
  headers(): Record<string, string>
  /** Resolves when it is open, where it is being opened again. Rejects where that failed. */
  ready(): Promise<void>
  /** What the server answered the client's `initialize` with. */
  opened(exchange: Exchange, response: Response, result: Fields): void
  /** Keeps what has to be said again. */
  remember(exchange: Exchange): void
  /** Asks the server with a ping whether it does not know the session any more. Rejects where it cannot be asked. */
  isLost(): Promise<boolean>
  /** Opens it again, once for all who found it lost. */
  reopen(epoch: number): Promise<void>
}

const LISTS = ['tools', 'prompts', 'resources'] as const

/** The lists may be others now. */
function changesOf(result: Fields): string[] {
  const capabilities = isObject(result['capabilities']) ? result['capabilities'] : {}
  return LISTS.filter(list => {
    const capability = capabilities[list]
    return isObject(capability) && capability['listChanged'] === true
  }).map(list => JSON.stringify({ jsonrpc: '2.0', method: `notifications/${list}/list_changed` }))
}

/** The first answer in a response. */
async function readAnswer(response: Response): Promise<Fields | undefined> {
  const isAnswer = (message: Fields) => answeredId(message) !== undefined
  if (!isStream(response)) return readMessages((await readJson(response)) ?? '').find(isAnswer)
  if (!response.body) return undefined
  for await (const { data } of readEvents(response.body, MAX_MESSAGE)) {
    const answer = readMessages(data).find(isAnswer)
    if (answer) return answer
  }
  return undefined
}

const failed = (url: string, why: string) =>
  new Failure('session lost', `${url} has lost the session, and no other could be opened: ${why}; restart the client`)

/** `reopened`: the session is another one. */
export function createKeptSession(link: Link, send: Send, reopened: () => void): KeptSession {
  const { url, signal } = link
  let id: string | undefined
  let version: string | undefined
  let epoch = 0
  let initialize: string | undefined
  let initialized: string | undefined
  let level: string | undefined
  const subscribed = new Map<string, string>()
  let opening: Promise<void> | undefined

  const headers = () => ({
    ...POST_HEADERS,
    ...(id !== undefined && { 'Mcp-Session-Id': id }),
    ...(version !== undefined && { 'MCP-Protocol-Version': version }),
  })
  const post = (body: string) => send({ method: 'POST', headers: headers(), body, harmless: true, signal })

  /** Nobody waits for the answer. */
  async function say(body: string | undefined) {
    if (body === undefined) return
    const response = await post(body)
    await response.body?.cancel()
  }

  async function open(body: string) {
    id = undefined
    const before = version
    version = undefined
    const response = await post(body)
    const answer = await readAnswer(response)
    const result = answer?.['result']
    if (!isObject(result)) throw failed(url, answer ? 'initialize was refused' : refusal(url, response.status).message)
    id = response.headers.get('mcp-session-id') ?? undefined
    version = String(result['protocolVersion'])
    if (version !== before) throw failed(url, `it speaks ${version} now, and the client was told ${before}`)
    await say(initialized)
    for (const text of [level, ...subscribed.values()]) await say(text)
    link.note('opened a new session in the place of one that the server has lost')
    epoch++
    reopened()
    for (const change of changesOf(result)) await link.hear(change)
  }

  return {
    get id() {
      return id
    },
    get epoch() {
      return epoch
    },
    headers,
    ready: () => opening ?? Promise.resolve(),
    opened({ out }, response, result) {
      initialize = out.text
      initialized = level = undefined
      subscribed.clear()
      id = response.headers.get('mcp-session-id') ?? undefined
      version = typeof result['protocolVersion'] === 'string' ? result['protocolVersion'] : undefined
      epoch++
    },
    remember({ out: { text, requests, notification } }) {
      if (notification?.method === 'notifications/initialized') initialized = text
      const [request] = requests
      if (request?.method === 'logging/setLevel') level = text
      const uri = request?.params['uri']
      if (typeof uri !== 'string') return
      if (request?.method === 'resources/unsubscribe') subscribed.delete(uri)
      else if (request?.method === 'resources/subscribe' && subscribed.size < MAX_KEPT) subscribed.set(uri, text)
    },
    async isLost() {
      await opening
      const named = id
      const response = await send({
        method: 'POST',
        headers: headers(),
        body: PING,
        harmless: true,
        signal,
        patience: 0,
      })
      if (!response.ok) return hasLost(named, response.status, await readJson(response))
      await response.body?.cancel()
      return false
    },
    reopen(lost) {
      if (lost !== epoch && !opening) return Promise.resolve()
      if (initialize === undefined) return Promise.reject(failed(url, 'the client has not initialized one'))
      opening ??= open(initialize).finally(() => {
        opening = undefined
      })
      return opening
    },
  }
}

/** What the server says of the session that a request named: that it does not know it. */
export const hasLost = (named: string | undefined, status: number, text: string | undefined): boolean =>
  named !== undefined && isSessionLost(status, text)

/** The result of an `initialize` in a server's text. */
export function resultIn(text: string): Fields | undefined {
  const parsed = parse(text)
  const result = isObject(parsed) ? parsed['result'] : undefined
  return isObject(result) ? result : undefined
}
