// A connection over a transport: request ids, requests of the server, notifications, progress, cancellation and time limits.

import { Cancellation } from '../core/mcp/wire/cancellation.ts'
import { isObject } from '../core/mcp/wire/message.ts'
import { type Implementation, type JsonObject, META, type ServerCapabilities } from '../core/mcp/wire/protocol.ts'
import { MODERN_REVISION, type Revision } from '../core/mcp/wire/revisions.ts'
import type {
  Connection,
  ConnectOptions,
  Era,
  ListenFilters,
  Listening,
  Progress,
  RequestOptions,
} from './connection-types.ts'
import { RemoteError } from './errors.ts'
import { createToolHeaders, lowerCase, type ToolHeaders } from './http/headers.ts'
import type { Transport } from './http/link.ts'
import { Exchange, type Fields, isId, isTooDeep, MAX_MESSAGE, type Outgoing, parse } from './messages.ts'

/** Maximum pending requests of one connection, and maximum running requests of its server. */
const MAX_PENDING = 1_000
const MAX_RUNNING = 100
/** Bytes of a stdio message that is parsed in any case. */
const PARSED_SIZE = 1_048_576
const RESPONSE_ID = /^\{(?:"jsonrpc":"2\.0",)?"id":(\d+),(?!"method")|"id":(\d+)(?:,"jsonrpc":"2\.0")?\}$/
/** Default request timeout, milliseconds. */
const TIMEOUT = 60_000
const MAX_TIME = 600_000
const CLOSE_TIMEOUT = 2_000

const METHOD_NOT_FOUND = -32_601
const INVALID_PARAMS = -32_602
const INTERNAL_ERROR = -32_603
const CANCELLED = 'notifications/cancelled'
const PROGRESS = 'notifications/progress'
const LISTEN = 'subscriptions/listen'
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'

/** Methods during which a server can send requests. */
const METHODS_WITH_SERVER_REQUESTS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/** The capability that permits a request of the server. */
const REQUIRED_CAPABILITY = {
  'elicitation/create': 'elicitation',
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
} as const

/** A request without a response yet. */
class Pending {
  readonly id: number
  slot = 0
  readonly method: string
  readonly options: RequestOptions
  readonly exchange: Exchange
  readonly resolve: (result: JsonObject) => void
  readonly reject: (error: Error | undefined) => void
  idle: NodeJS.Timeout | undefined = undefined
  total: NodeJS.Timeout | undefined = undefined
  abort: (() => void) | undefined = undefined

  constructor(
    { id, method }: Pick<Pending, 'id' | 'method'>,
    options: RequestOptions,
    exchange: Exchange,
    { resolve, reject }: Pick<Pending, 'resolve' | 'reject'>,
  ) {
    this.id = id
    this.method = method
    this.options = options
    this.exchange = exchange
    this.resolve = resolve
    this.reject = reject
  }
}

const messageOf = (fields: Fields): string => JSON.stringify({ jsonrpc: '2.0', ...fields })

const responseOf = (fields: Fields): Outgoing => ({
  text: messageOf(fields),
  requests: [],
  notification: undefined,
})

function readProgress(params: JsonObject): Progress | undefined {
  const { progress, total, message } = params
  if (typeof progress !== 'number') return undefined
  return {
    progress,
    ...(typeof total === 'number' && { total }),
    ...(typeof message === 'string' && { message }),
  }
}

function rpcError(error: Fields): RemoteError {
  const { code, message, data } = error
  return new RemoteError('rpc', typeof message === 'string' ? message : 'the server sent an error without a message', {
    code: typeof code === 'number' ? code : INTERNAL_ERROR,
    data,
  })
}

const noResult = () => new RemoteError('invalid', 'the server sent a response without a result', { executed: 'maybe' })
const tooLargeError = (max: number) =>
  new RemoteError('too-large', `the response has more than ${max} bytes`, { executed: 'maybe' })
const closedError = () => new RemoteError('closed', 'the connection is closed')

/** Reads the id of a response from its first or last bytes. */
function readResponseId(line: Buffer): number {
  const ends = line.toString('latin1', 0, 200) + line.toString('latin1', line.length - 200)
  const [, first, last] = RESPONSE_ID.exec(ends.replace(/\s/g, '')) ?? []
  return Number(first ?? last)
}

/** The part of a connection that exists before its protocol version is known. */
export class BaseConnection implements Connection {
  era: Era = 'modern'
  revision: Revision = MODERN_REVISION
  server: Partial<Implementation> = {}
  capabilities: ServerCapabilities = {}
  instructions: string | undefined
  readonly tools: ToolHeaders
  readonly #options: ConnectOptions
  /** Has free slots: a Map, or an array that shrinks, would keep ended requests in memory until a full garbage collection. */
  readonly #pending: Array<Pending | undefined> = []
  #count = 0
  readonly #running = new Map<unknown, AbortController>()
  #transport: Transport | undefined
  #end: (() => Promise<void>) | undefined
  #lastId = 0
  #isOpen = false
  #closed: RemoteError | undefined
  #closing: Promise<void> | undefined

  constructor(options: ConnectOptions) {
    this.#options = options
    this.tools = createToolHeaders(text => this.#debug(text))
  }

  /** Attaches the transport. `end` releases its resources. */
  attach(transport: Transport, end: () => Promise<void>): void {
    this.#transport = transport
    this.#end = end
  }

  /** The handshake is complete. */
  markOpen(): void {
    this.#isOpen = true
    if (this.#closed) this.#options.onClosed?.(this.#closed)
  }

  get sessionId(): string | undefined {
    return this.#transport?.sessionId
  }

  /** The version that each request contains; undefined for versions with a handshake. */
  get #version(): string | undefined {
    return this.era === 'modern' ? this.revision : undefined
  }

  /** Adds the metadata of the request. Assignments give all requests the same hidden class; spreads do not. */
  #withMeta(params: JsonObject, { capabilities, logLevel, onProgress }: RequestOptions, id: number): JsonObject {
    const isModern = this.era === 'modern'
    if (!isModern && !onProgress) return params
    const meta: Record<string, unknown> = { ...(params['_meta'] as object | undefined) }
    if (isModern) {
      meta[META.protocolVersion] = this.revision
      meta[META.clientInfo] = this.#options.client
      meta[META.clientCapabilities] = capabilities ?? this.#options.capabilities ?? {}
      if (logLevel !== undefined) meta[META.logLevel] = logLevel
    }
    if (onProgress) meta['progressToken'] = id
    return { ...params, _meta: meta }
  }

  request(method: string, params: JsonObject = {}, options: RequestOptions = {}): Promise<JsonObject> {
    const { signal, timeout = TIMEOUT, maxTime = MAX_TIME, maxResult } = options
    if (this.#closed) return Promise.reject(this.#closed)
    if (signal?.aborted) return Promise.reject(new RemoteError('cancelled', 'the request was cancelled'))
    if (this.#count >= MAX_PENDING)
      return Promise.reject(new RemoteError('refused', `${MAX_PENDING} requests are pending at the server`))
    const id = ++this.#lastId
    const call = { jsonrpc: '2.0', id, method, params: this.#withMeta(params, options, id) }
    const out = { text: JSON.stringify(call), requests: [call], notification: undefined }
    const exchange = new Exchange(out, {
      version: this.#version,
      headers: options.headers && lowerCase(options.headers),
      limit: maxResult ?? this.#options.maxMessage ?? MAX_MESSAGE,
    })
    return new Promise((resolve, reject) => {
      const pending = new Pending(call, options, exchange, { resolve, reject })
      const freeSlot = this.#pending.indexOf(undefined)
      pending.slot = freeSlot === -1 ? this.#pending.length : freeSlot
      this.#pending[pending.slot] = pending
      this.#count++
      if (timeout > 0) pending.idle = setTimeout(() => this.#expire(pending, `within ${timeout / 1_000} s`), timeout)
      if (maxTime > 0) {
        const expire = () => this.#expire(pending, `in ${maxTime / 1_000} s, the maximum time`)
        pending.total = setTimeout(expire, maxTime)
      }
      if (signal) {
        pending.abort = () =>
          this.#abandon(pending, new RemoteError('cancelled', 'the request was cancelled', { executed: 'maybe' }))
        if (signal instanceof Cancellation) signal.add(pending.abort)
        else signal.addEventListener('abort', pending.abort, { once: true })
      }
      this.#transport?.perform(exchange).catch((error: unknown) => {
        if (exchange.open.size > 0) this.#settle(pending, undefined, error as Error)
      })
    })
  }

  /** False if the request is no longer pending. */
  #settle(pending: Pending, result: JsonObject | undefined, error?: Error): boolean {
    const { slot, idle, total, abort } = pending
    if (this.#pending[slot] !== pending) return false
    this.#pending[slot] = undefined
    this.#count--
    clearTimeout(idle)
    clearTimeout(total)
    const { signal } = pending.options
    if (signal instanceof Cancellation) {
      if (abort) signal.remove(abort)
    } else if (abort) signal?.removeEventListener('abort', abort)
    if (result) pending.resolve(result)
    else pending.reject(error)
    return true
  }

  #expire(pending: Pending, what: string): void {
    this.#abandon(pending, new RemoteError('timeout', `the server did not respond ${what}`, { executed: 'maybe' }))
  }

  #abandon(pending: Pending, error: RemoteError): void {
    if (this.#settle(pending, undefined, error)) this.#cancel(pending, error.message)
  }

  #cancel({ id, method, exchange }: Pending, reason: string): void {
    const transport = this.#transport
    const drop = () => exchange.abandon(id, reason)
    if (!transport || method === 'initialize' || transport.cancelsByClosing(exchange)) drop()
    else
      this.#send({ method: CANCELLED, params: { requestId: id, reason } })
        .catch(error => this.#debug(`the cancellation was not sent: ${error}`))
        .finally(drop)
  }

  #debug(text: string): void {
    this.#options.onDebug?.(text)
  }

  #send(fields: { readonly method: string; readonly params: Fields }): Promise<void> {
    const out = { text: messageOf(fields), requests: [], notification: fields }
    return this.#transport?.perform(new Exchange(out, { version: this.#version })) ?? Promise.reject(closedError())
  }

  async notify(method: string, params: JsonObject = {}): Promise<void> {
    if (this.#closed) throw this.#closed
    await this.#send({ method, params })
  }

  listen(filters: ListenFilters, onActive?: () => void): Listening {
    const stop = new AbortController()
    const end = () => stop.abort()
    const options = { signal: stop.signal, timeout: 0, maxTime: 0, ...(onActive && { onActive }) }
    const ended =
      this.era === 'legacy'
        ? new Promise<void>(resolve => stop.signal.addEventListener('abort', () => resolve()))
        : this.request(LISTEN, { notifications: filters }, options).then(
            () => undefined,
            (error: unknown) => {
              if (!stop.signal.aborted) throw error
            },
          )
    ended.catch(() => undefined)
    return { ended, end }
  }

  /** Handles a line of a stdio server. Does not parse a line that is larger than all pending requests accept. */
  receiveLine(line: Buffer): void {
    const isAccepted = line.length <= PARSED_SIZE || this.#pending.some(one => one && line.length <= one.exchange.limit)
    const pending = isAccepted ? undefined : this.#find(readResponseId(line))
    if (isAccepted) this.receive(line.toString('utf8'), undefined)
    else if (pending) this.#settle(pending, undefined, tooLargeError(pending.exchange.limit))
    else this.#debug(`ignored a message of ${line.length} bytes`)
  }

  /** Handles a message of the server. `exchange`: the exchange on whose response the message arrived, if any. */
  receive(text: string, exchange: Exchange | undefined): void {
    const parsed = parse(text)
    const messages = Array.isArray(parsed) ? parsed : [parsed]
    for (const message of messages) {
      if (!isObject(message) || message['jsonrpc'] !== '2.0') this.#debug('ignored a message that is not JSON-RPC 2.0')
      else if (message['method'] === undefined) this.#handleResponse(message, text, exchange)
      else if (typeof message['method'] === 'string') this.#handleCall(message['method'], message, exchange)
    }
  }

  #find(id: unknown): Pending | undefined {
    return this.#pending.find(pending => pending?.id === id)
  }

  #handleResponse(message: Fields, text: string, exchange: Exchange | undefined): void {
    const { id, result, error } = message
    const pending = this.#find(id)
    // The server responded on the stream of another request: it confused the ids.
    if (!pending || (exchange && exchange !== pending.exchange)) {
      this.#debug(`ignored a response to ${isId(id) ? JSON.stringify(id).slice(0, 100) : 'no request'}`)
      return
    }
    const { exchange: own, method, options } = pending
    own.open.delete(pending.id)
    if (options.maxResult !== undefined && text.length > options.maxResult) {
      this.#settle(pending, undefined, tooLargeError(options.maxResult))
      return
    }
    if (isObject(error) || !isObject(result)) {
      this.#settle(pending, undefined, isObject(error) ? rpcError(error) : noResult())
      return
    }
    if (method === 'tools/list' && own.version !== undefined && Array.isArray(result['tools']))
      result['tools'] = this.tools.learn(result['tools'])
    options.onText?.(text)
    this.#settle(pending, result)
  }

  /** Returns the request that a message of the server belongs to: by its stream, or the only possible one. */
  #findOwner(exchange: Exchange | undefined): unknown {
    let found: Pending | undefined
    for (const pending of this.#pending) {
      if (!pending) continue
      if (exchange) {
        if (pending.exchange === exchange) return pending.options.owner
      } else if (METHODS_WITH_SERVER_REQUESTS.has(pending.method)) {
        if (found) return undefined
        found = pending
      }
    }
    // A request that has ended has no owner, and other requests must not receive its messages.
    return exchange ?? found?.options.owner
  }

  #handleCall(method: string, message: Fields, exchange: Exchange | undefined): void {
    const params = isObject(message['params']) ? message['params'] : {}
    if ('id' in message) {
      if (isId(message['id'])) this.#serve(method, message['id'], params, exchange)
      return
    }
    if (isTooDeep(params)) this.#debug('ignored a notification with too many levels')
    else if (method === PROGRESS) {
      const pending = this.#find(params['progressToken'])
      const progress = readProgress(params)
      if (!pending || !progress) return
      pending.idle?.refresh()
      pending.options.onProgress?.(progress)
    } else if (method === CANCELLED) this.#running.get(params['requestId'])?.abort()
    else if (method === ACKNOWLEDGED) this.#confirmSubscription(exchange)
    else this.#options.onNotification?.({ method, params, owner: this.#findOwner(exchange) })
  }

  #confirmSubscription(exchange: Exchange | undefined): void {
    const confirmed = this.#pending.find(
      pending => pending?.method === LISTEN && (exchange === undefined || pending.exchange === exchange),
    )
    confirmed?.options.onActive?.()
  }

  #permits(method: string): boolean {
    const { capabilities = {}, onRequest } = this.#options
    const capability = Object.hasOwn(REQUIRED_CAPABILITY, method)
      ? REQUIRED_CAPABILITY[method as keyof typeof REQUIRED_CAPABILITY]
      : undefined
    return onRequest !== undefined && capability !== undefined && capabilities[capability] !== undefined
  }

  async #respondTo(method: string, params: JsonObject, exchange: Exchange | undefined, signal: AbortSignal) {
    if (method === 'ping') return { result: {} }
    if (!this.#permits(method)) return { error: { code: METHOD_NOT_FOUND, message: `${method} is not supported` } }
    try {
      return { result: await this.#options.onRequest?.({ method, params, owner: this.#findOwner(exchange), signal }) }
    } catch (error) {
      const code = error instanceof RemoteError ? error.code : INTERNAL_ERROR
      return { error: { code, message: error instanceof RemoteError ? error.message : 'the request failed' } }
    }
  }

  #serve(method: string, id: string | number, params: JsonObject, exchange: Exchange | undefined): void {
    const respond = (fields: Fields) =>
      this.#transport
        ?.perform(new Exchange(responseOf({ id, ...fields })))
        .catch(error => this.#debug(`a response was not sent: ${error}`))
    const refuse = (message: string, code = INVALID_PARAMS) => respond({ error: { code, message } })
    if (isTooDeep(params)) return void refuse('the params have too many levels')
    if (this.#running.has(id)) return void refuse('a request with this id is running')
    if (this.#running.size >= MAX_RUNNING) return void refuse('too many requests are running', INTERNAL_ERROR)
    const stop = new AbortController()
    this.#running.set(id, stop)
    this.#respondTo(method, params, exchange, stop.signal)
      .then(fields => (stop.signal.aborted ? undefined : respond(fields)))
      .finally(() => this.#running.delete(id))
  }

  /** The connection has ended: rejects all pending requests. */
  fail(error: RemoteError): void {
    if (this.#closed) return
    const details = { cause: error, output: error.output }
    this.#closed = new RemoteError(error.reason, error.message, details)
    const pendingError = new RemoteError(error.reason, error.message, { ...details, executed: 'maybe' })
    for (const pending of this.#pending) {
      if (!pending) continue
      this.#settle(pending, undefined, pendingError)
      pending.exchange.abandon(pending.id, error.message)
    }
    for (const stop of this.#running.values()) stop.abort()
    if (this.#isOpen && error.reason !== 'closed') this.#options.onClosed?.(error)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.fail(closedError())
    const timeout = new Cancellation()
    const timer = setTimeout(() => timeout.abort(new Error('the server did not respond in time')), CLOSE_TIMEOUT)
    await this.#transport?.endSession(timeout).catch(error => this.#debug(`the session was not ended: ${error}`))
    clearTimeout(timer)
    await this.#end?.()
  }
}
