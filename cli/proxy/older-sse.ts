// HTTP+SSE (2024-11-05): one stream for all responses, whose first event contains the message URL. A broken stream ends the
// session.

import { readEvents } from './event-stream.ts'
import { POST_HEADERS, SSE_TYPE } from './headers.ts'
import {
  broken,
  createBackOff,
  createSend,
  explainRefusal,
  isStream,
  type Link,
  MAX_MESSAGE,
  type Remote,
  readJson,
  type Send,
  sleep,
} from './link.ts'
import type { Exchange } from './messages.ts'
import { answeredId, Failure, readMessages } from './messages.ts'

/** The id of the relay's own `initialize` when it reopens a session. */
const OWN_ID = 'mcp-host-proxy-initialize'

interface Line {
  readonly send: Send
  readonly ended: Promise<void>
}

/** Only URLs of the server's origin, so that the user's token is not sent elsewhere. */
function endpointOf(url: string, data: string): string {
  const endpoint = URL.canParse(data, url) ? new URL(data, url) : undefined
  if (endpoint && endpoint.origin === new URL(url).origin) return endpoint.href
  throw new Failure('wrong endpoint', `${url} names an address of another server for messages; nothing is sent there`)
}

export function createOlderSse(link: Link): Remote {
  const { url, timing, signal: over, note } = link
  const get = createSend(link)
  const exchanges = new Set<{ exchange: Exchange; fail: (why: Failure) => void; done: () => void }>()
  let line: Promise<Line> | undefined
  let initialize: string | undefined
  let initialized: string | undefined
  let reinitialized: (() => void) | undefined
  const backOff = createBackOff(timing)

  async function hear(text: string) {
    const own = readMessages(text).some(message => answeredId(message) === OWN_ID)
    if (own) return reinitialized?.()
    backOff.reset()
    await link.hear(text)
    for (const waiting of exchanges) if (waiting.exchange.open.size === 0) waiting.done()
  }

  async function connect(patience: number = timing.patience): Promise<Line> {
    const response = await get({ method: 'GET', headers: { accept: SSE_TYPE }, harmless: true, signal: over, patience })
    if (!isStream(response) || !response.body) throw explainRefusal(url, response, await readJson(response))
    const events = readEvents(response.body, MAX_MESSAGE)
    for (;;) {
      const { value, done } = await events.next()
      if (done) throw broken(url)
      if (value.event !== 'endpoint') continue
      const address = endpointOf(url, value.data)
      return { send: createSend({ ...link, url: address }), ended: read(events) }
    }
  }

  async function read(events: ReturnType<typeof readEvents>) {
    const begun = performance.now()
    try {
      for await (const { event, data } of events) if (event === 'message' && data !== '') await hear(data)
    } catch (error) {
      note(`the stream broke: ${error}`)
    }
    backOff.ended(begun)
    line = undefined
    for (const { fail } of [...exchanges]) fail(broken(url))
    if (initialize !== undefined && !over.aborted) void reconnect()
  }

  const post = ({ send }: Line, body: string, signal: AbortSignal) =>
    send({ method: 'POST', headers: { ...POST_HEADERS }, body, harmless: false, signal })

  async function reopen(): Promise<Line> {
    const opened = await connect(0)
    if (initialize === undefined) return opened
    const answered = new Promise<void>(resolve => {
      reinitialized = resolve
    })
    await post(opened, JSON.stringify({ ...(JSON.parse(initialize) as object), id: OWN_ID }), over)
    await Promise.race([answered, opened.ended.then(() => Promise.reject(broken(url)))])
    if (initialized !== undefined) await post(opened, initialized, over)
    note('opened a new session in the place of one whose stream broke')
    for (const list of ['tools', 'prompts', 'resources']) {
      await link.hear(JSON.stringify({ jsonrpc: '2.0', method: `notifications/${list}/list_changed` }))
    }
    return opened
  }

  async function reconnect() {
    while (!line && !over.aborted) {
      await sleep(backOff.pause, over).catch(() => undefined)
      if (over.aborted) return
      const opening = reopen()
      line = opening
      await opening.catch(error => {
        note(String(error))
        if (line === opening) line = undefined
      })
    }
  }

  /** While a stream is being opened, its failure is the failure of this message. */
  async function current(): Promise<Line> {
    line ??= connect()
    try {
      return await line
    } catch (error) {
      line = undefined
      throw error
    }
  }

  return {
    async carry(exchange) {
      const { text, requests, notification } = exchange.out
      const open = await current()
      if (requests[0]?.method === 'initialize') initialize = text
      if (notification?.method === 'notifications/initialized') initialized = text
      const answered = new Promise<void>((done, fail) => {
        const waiting = { exchange, fail, done }
        exchanges.add(waiting)
        exchange.signal.addEventListener('abort', () => done(), { once: true })
        if (requests.length === 0) done()
      })
      try {
        const posted = post(open, text, exchange.signal)
        const response = await (requests.length === 0 ? posted : Promise.race([posted, answered.then(() => undefined)]))
        if (response && !response.ok) throw explainRefusal(url, response, await readJson(response))
        await response?.body?.cancel()
        await answered
      } finally {
        answered.catch(() => undefined)
        for (const waiting of exchanges) if (waiting.exchange === exchange) exchanges.delete(waiting)
      }
    },
    leave: async () => undefined,
  }
}
