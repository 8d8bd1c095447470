// HTTP+SSE (2024-11-05): one stream for all responses, whose first event contains the message URL. A broken stream ends the
// session.
import { RemoteError } from '../errors.ts'
import { type Exchange, MAX_MESSAGE, readMessages, responseId } from '../messages.ts'
import { readEvents } from './event-stream.ts'
import { POST_HEADERS, SSE_TYPE } from './headers.ts'
import {
  brokenError,
  createBackOff,
  createSend,
  isOk,
  isStream,
  type Link,
  printableUrl,
  readJson,
  refusalError,
  type Send,
  sleep,
  type Transport,
} from './link.ts'

/** The id of the `initialize` that reopens a session. */
const REOPEN_ID = 'mcp-host-initialize'

interface OpenStream {
  readonly send: Send
  readonly ended: Promise<void>
}

/** Accepts only URLs of the server's origin, so that the user's token is not sent elsewhere. */
function readEndpoint(url: string, data: string): string {
  const endpoint = URL.canParse(data, url) ? new URL(data, url) : undefined
  if (endpoint && endpoint.origin === new URL(url).origin) return endpoint.href
  throw new RemoteError('invalid', `${printableUrl(url)} has a message URL with another origin, which is not allowed`)
}

export function createLegacySse(link: Link): Transport {
  const { url, timing, closing, debug } = link
  const get = createSend(link)
  const exchanges = new Set<{ exchange: Exchange; fail: (why: RemoteError) => void; done: () => void }>()
  let session: string | undefined
  let stream: Promise<OpenStream> | undefined
  let initialize: string | undefined
  let initialized: string | undefined
  let reinitialized: (() => void) | undefined
  const backOff = createBackOff(timing)

  async function receive(text: string) {
    const own = readMessages(text).some(message => responseId(message) === REOPEN_ID)
    if (own) return reinitialized?.()
    backOff.reset()
    await link.receive(text, undefined)
    for (const waiting of exchanges) if (waiting.exchange.open.size === 0) waiting.done()
  }

  async function connect(retryTimeout: number = timing.retryTimeout): Promise<OpenStream> {
    const response = await get({
      method: 'GET',
      headers: { accept: SSE_TYPE },
      idempotent: true,
      cancellations: [],
      retryTimeout,
    })
    if (!isStream(response)) throw refusalError(url, response, await readJson(response))
    const events = readEvents(response.chunks(), MAX_MESSAGE)
    for (;;) {
      const { value, done } = await events.next()
      if (done) throw brokenError(url)
      if (value.event !== 'endpoint') continue
      const address = readEndpoint(url, value.data)
      session = address
      return { send: createSend({ ...link, url: address }), ended: read(events) }
    }
  }

  async function read(events: ReturnType<typeof readEvents>) {
    const startedAt = performance.now()
    try {
      for await (const { event, data } of events) if (event === 'message' && data !== '') await receive(data)
    } catch (error) {
      debug(`the stream broke: ${error}`)
    }
    backOff.ended(startedAt)
    stream = undefined
    for (const { fail } of [...exchanges]) fail(brokenError(url))
    if (initialize !== undefined && !closing.aborted) void reconnect()
  }

  const post = ({ send }: OpenStream, body: string, exchange?: Exchange) =>
    send({
      method: 'POST',
      headers: { ...POST_HEADERS, ...exchange?.headers },
      body,
      idempotent: false,
      cancellations: exchange ? [exchange.cancellation] : [],
      isPersonal: exchange?.headers !== undefined,
    })

  async function reopen(): Promise<OpenStream> {
    const opened = await connect(0)
    if (initialize === undefined) return opened
    const answered = new Promise<void>(resolve => {
      reinitialized = resolve
    })
    await post(opened, JSON.stringify({ ...(JSON.parse(initialize) as object), id: REOPEN_ID }))
    await Promise.race([answered, opened.ended.then(() => Promise.reject(brokenError(url)))])
    if (initialized !== undefined) await post(opened, initialized)
    debug('opened a new session, because the stream of the previous one broke')
    link.reopened()
    for (const list of ['tools', 'prompts', 'resources']) {
      await link.receive(JSON.stringify({ jsonrpc: '2.0', method: `notifications/${list}/list_changed` }), undefined)
    }
    return opened
  }

  async function reconnect() {
    while (!stream && !closing.aborted) {
      await sleep(backOff.pause, closing).catch(() => undefined)
      if (closing.aborted) return
      const reopening = reopen()
      stream = reopening
      await reopening.catch(error => {
        debug(String(error))
        if (stream === reopening) stream = undefined
      })
    }
  }

  /** The failure of a stream that is being opened is the failure of this message. */
  async function current(): Promise<OpenStream> {
    stream ??= connect()
    try {
      return await stream
    } catch (error) {
      stream = undefined
      throw error
    }
  }

  return {
    async perform(exchange) {
      const { text, requests, notification } = exchange.message
      const open = await current()
      if (requests[0]?.method === 'initialize') initialize = text
      if (notification?.method === 'notifications/initialized') initialized = text
      const answered = new Promise<void>((done, fail) => {
        const waiting = { exchange, fail, done }
        exchanges.add(waiting)
        exchange.cancellation.add(() => done())
        if (requests.length === 0) done()
      })
      try {
        const posted = post(open, text, exchange)
        const response = await (requests.length === 0 ? posted : Promise.race([posted, answered.then(() => undefined)]))
        if (response && !isOk(response)) throw refusalError(url, response, await readJson(response))
        response?.discard()
        await answered
      } finally {
        answered.catch(() => undefined)
        for (const waiting of exchanges) if (waiting.exchange === exchange) exchanges.delete(waiting)
      }
    },
    endSession: async () => undefined,
    // The stream is the session; this URL contains the session id.
    get sessionId() {
      return session
    },
    cancelsByClosing: () => false,
  }
}
