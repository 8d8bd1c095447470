// A session of a protocol version with `initialize`: its streams, and how it is reopened after a loss.

import type { Cancellation } from '../../core/mcp/wire/cancellation.ts'
import { isObject } from '../../core/mcp/wire/message.ts'
import { isTooLarge, RemoteError } from '../errors.ts'
import { type Exchange, type Fields, MAX_MESSAGE, readMessages, responseId } from '../messages.ts'
import { readEvents } from './event-stream.ts'
import { POST_HEADERS, SSE_TYPE } from './headers.ts'
import {
  type BackOff,
  brokenError,
  type CloseTimer,
  createBackOff,
  createCloseTimer,
  isOk,
  isSessionLost,
  isStream,
  type Link,
  printableUrl,
  readJson,
  refusalError,
  type Send,
  sleep,
} from './link.ts'
import type { WireResponse } from './wire.ts'

const PING = JSON.stringify({ jsonrpc: '2.0', id: 'mcp-host-ping', method: 'ping' })
const MAX_KEPT = 1_000

type Session = ReturnType<typeof createSession>

const LISTS = ['tools', 'prompts', 'resources'] as const

function listChanges(result: Fields): string[] {
  const capabilities = isObject(result['capabilities']) ? result['capabilities'] : {}
  return LISTS.filter(list => {
    const capability = capabilities[list]
    return isObject(capability) && capability['listChanged'] === true
  }).map(list => JSON.stringify({ jsonrpc: '2.0', method: `notifications/${list}/list_changed` }))
}

async function readResponse(response: WireResponse): Promise<Fields | undefined> {
  const isResponse = (message: Fields) => responseId(message) !== undefined
  if (!isStream(response)) return readMessages((await readJson(response)) ?? '').find(isResponse)
  for await (const { data } of readEvents(response.chunks(), MAX_MESSAGE)) {
    const answer = readMessages(data).find(isResponse)
    if (answer) return answer
  }
  return undefined
}

const failed = (url: string, why: string) =>
  new RemoteError('lost', `${printableUrl(url)} has lost the session, and no other could be opened: ${why}`)

export function createSession(link: Link, send: Send, reopened: () => void) {
  const { url } = link
  let id: string | undefined
  let version: string | undefined
  let epoch = 0
  let initialize: string | undefined
  let initialized: string | undefined
  let level: string | undefined
  const subscribed = new Map<string, string>()
  let opening: Promise<void> | undefined

  const headers = (): Record<string, string> => ({
    ...POST_HEADERS,
    ...(id !== undefined && { 'mcp-session-id': id }),
    ...(version !== undefined && { 'mcp-protocol-version': version }),
  })
  const post = (body: string, own = headers()) =>
    send({ method: 'POST', headers: own, body, idempotent: true, cancellations: [] })

  async function resend(body: string | undefined) {
    if (body !== undefined) (await post(body)).discard()
  }

  async function open(body: string) {
    const response = await post(body, POST_HEADERS)
    const answer = await readResponse(response)
    const result = answer?.['result']
    if (!isObject(result)) throw failed(url, answer ? 'initialize was refused' : refusalError(url, response).message)
    const newVersion = result['protocolVersion']
    if (newVersion !== version) throw failed(url, `its protocol version has changed from ${version} to ${newVersion}`)
    id = response.header('mcp-session-id')
    await resend(initialized)
    for (const text of [level, ...subscribed.values()]) await resend(text)
    link.debug('opened a new session, because the server lost the previous one')
    epoch++
    reopened()
    link.reopened()
    for (const change of listChanges(result)) await link.receive(change, undefined)
  }

  return {
    /** The server's session id; undefined before `initialize`, or for a server without sessions. */
    get id() {
      return id
    },
    get epoch() {
      return epoch
    },
    headers,
    ready: () => opening ?? Promise.resolve(),
    establish({ message: out }: Exchange, response: WireResponse, result: Fields): void {
      initialize = out.text
      initialized = level = undefined
      subscribed.clear()
      id = response.header('mcp-session-id')
      version = typeof result['protocolVersion'] === 'string' ? result['protocolVersion'] : undefined
      epoch++
    },
    remember({ message: { text, requests, notification } }: Exchange): void {
      if (notification?.method === 'notifications/initialized') initialized = text
      const [request] = requests
      if (request?.method === 'logging/setLevel') level = text
      const uri = request?.params['uri']
      if (typeof uri !== 'string') return
      if (request?.method === 'resources/unsubscribe') subscribed.delete(uri)
      else if (request?.method === 'resources/subscribe' && subscribed.size < MAX_KEPT) subscribed.set(uri, text)
    },
    /** Sends a ping to find out whether the session is lost. Rejects if the server is unreachable. */
    async isLost(): Promise<boolean> {
      await opening
      const sentId = id
      const response = await send({
        method: 'POST',
        headers: headers(),
        body: PING,
        idempotent: true,
        cancellations: [],
        retryTimeout: 0,
      })
      if (!isOk(response)) return hasLost(sentId, response.status, await readJson(response))
      response.discard()
      return false
    },
    /** Reopens the session, once for all concurrent callers. */
    reopen(lost: number): Promise<void> {
      if (lost !== epoch && !opening) return Promise.resolve()
      if (initialize === undefined) return Promise.reject(failed(url, 'the client has not initialized a session'))
      const before = id
      // The next request finds the session lost again.
      const restore = (error: unknown) => {
        id = before
        throw error
      }
      opening ??= open(initialize)
        .catch(restore)
        .finally(() => {
          opening = undefined
        })
      return opening
    },
  }
}

export const hasLost = (sentId: string | undefined, status: number, text: string | undefined): boolean =>
  sentId !== undefined && isSessionLost(status, text)

interface Cursor {
  id: string | undefined
  retry: number | undefined
  wasOpen: boolean
}

const startCursor = (): Cursor => ({ id: undefined, retry: undefined, wasOpen: false })

/** An event id as a header value, one character per byte (HTML, "Last-Event-ID"). */
const toHeaderValue = (id: string): string | undefined =>
  /^[\t -~\u0080-\uffff]+$/.test(id) ? Buffer.from(id).toString('latin1') : undefined

const lostDuringRequest = (url: string): RemoteError =>
  new RemoteError(
    'lost',
    `${printableUrl(url)} lost the session during the request, which it may have executed; a new session is open`,
    { executed: 'maybe' },
  )

/** Passes on every message of a response, and returns the resume cursor. Rejects on a broken connection. */
async function receiveAll(
  link: Link,
  response: WireResponse,
  cursor: Cursor,
  received: (text: string) => void,
  exchange?: Exchange,
  closeTimer?: CloseTimer,
): Promise<void> {
  for await (const { event, data, id, retry } of readEvents(response.chunks(), exchange?.limit ?? MAX_MESSAGE)) {
    if (id !== undefined) cursor.id = toHeaderValue(id)
    if (retry !== undefined) cursor.retry = retry
    if (event !== 'message' || data === '') continue
    received(data)
    const passed = link.receive(data, exchange)
    closeTimer?.check()
    if (passed) await passed
  }
}

export function createSessionStreams(link: Link, send: Send, session: Session) {
  const { url, timing, closing, debug } = link
  /** Shared by successive sessions, so that a server that keeps losing sessions is retried with delays. */
  const listenBackOff = createBackOff(timing)

  const get = (cursor: Cursor, cancellation: Cancellation) =>
    send({
      method: 'GET',
      headers: { ...session.headers(), accept: SSE_TYPE, ...(cursor.id && { 'last-event-id': cursor.id }) },
      idempotent: true,
      cancellations: [cancellation],
      retryTimeout: 0,
    })

  const isLost = () => session.isLost().catch(error => void debug(`the session: ${error}`))

  /** Resumes a stream. Undefined: retry later. Throws a RemoteError if the stream cannot be resumed. */
  async function resume(cursor: Cursor, epoch: number, cancellation: Cancellation): Promise<WireResponse | undefined> {
    const { id } = session
    const response = await get(cursor, cancellation).catch(error => {
      if (cancellation.aborted || closing.aborted) throw error
      debug(String(error))
      return undefined
    })
    if (!response || isStream(response)) return response
    const text = await readJson(response)
    // Servers that cannot resume streams also respond with 404, so a ping detects whether the session is lost.
    const lost = hasLost(id, response.status, text) && (await isLost())
    if (lost === undefined) return undefined
    if (lost || session.epoch !== epoch) {
      session.reopen(epoch).catch(error => debug(String(error)))
      throw lostDuringRequest(url)
    }
    if (response.status >= 500 || response.status === 429 || response.status === 409) return undefined
    throw brokenError(url)
  }

  async function resumeStream(
    cursor: Cursor,
    epoch: number,
    cancellation: Cancellation,
    backOff: BackOff,
  ): Promise<WireResponse> {
    const until = performance.now() + timing.resumeTimeout
    for (;;) {
      await sleep(Math.max(cursor.retry ?? 0, backOff.pause), cancellation, closing)
      const response = await resume(cursor, epoch, cancellation)
      if (response) return response
      if (performance.now() > until) throw brokenError(url)
    }
  }

  async function listenOnce(cursor: Cursor, epoch: number): Promise<boolean> {
    const { id } = session
    const response = await get(cursor, closing).catch(error => {
      debug(`the stream of the session: ${error}`)
      return undefined
    })
    if (!response) return true
    if (isStream(response)) {
      cursor.wasOpen = true
      await receiveAll(link, response, cursor, () => undefined).catch(error =>
        debug(`the stream of the session: ${error}`),
      )
      return true
    }
    const text = await readJson(response).catch(() => undefined)
    // If this stream never existed, 404 does not mean a lost session.
    const lost = cursor.wasOpen && hasLost(id, response.status, text) && (await isLost())
    if (lost === undefined) return true
    if (lost) {
      await session.reopen(epoch).catch(error => debug(String(error)))
      return false
    }
    if ([400, 404].includes(response.status) && cursor.id !== undefined) {
      cursor.id = undefined
      return true
    }
    return response.status >= 500 || [401, 403, 409, 429].includes(response.status)
  }

  return {
    /** Reads a streamed response to its end. Rejects with a RemoteError if requests remain without a response. */
    async follow(
      first: WireResponse,
      exchange: Exchange,
      end: Cancellation,
      received: (text: string) => void = () => undefined,
    ): Promise<void> {
      const { epoch } = session
      const cursor = startCursor()
      const backOff = createBackOff(timing)
      const closeTimer = createCloseTimer(exchange, end)
      const reset = (text: string) => {
        received(text)
        backOff.reset()
      }
      try {
        for (let response = first; ; response = await resumeStream(cursor, epoch, exchange.cancellation, backOff)) {
          const startedAt = performance.now()
          await receiveAll(link, response, cursor, reset, exchange, closeTimer).catch(error => {
            if (isTooLarge(error)) throw error
            debug(`a stream broke: ${error}`)
          })
          if (exchange.open.size === 0) return
          backOff.ended(startedAt)
          if (cursor.id === undefined) throw brokenError(url)
        }
      } finally {
        closeTimer.stop()
      }
    },

    async listen(): Promise<void> {
      const { epoch } = session
      const cursor = startCursor()
      while (session.epoch === epoch && !closing.aborted) {
        const startedAt = performance.now()
        if (!(await listenOnce(cursor, epoch))) return
        listenBackOff.ended(startedAt)
        await sleep(Math.max(cursor.retry ?? 0, listenBackOff.pause), closing).catch(() => undefined)
      }
    },
  }
}
