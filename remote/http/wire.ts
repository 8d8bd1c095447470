// Sends one HTTP request through a pool of sockets, or through a `fetch`, which is slower.
import type { Dispatcher } from 'undici'
import type { Cancellation } from '../../core/mcp/wire/cancellation.ts'
import type { TlsOptions } from '../connection-types.ts'
import { RemoteError } from '../errors.ts'

export interface WireRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

export interface WireResponse {
  readonly status: number
  /** Returns a header; several values are joined with a comma. */
  header(name: string): string | undefined
  readonly setCookies: readonly string[]
  /** Reads the whole body. Rejects if the body is larger than `limit` bytes or incomplete. */
  text(limit: number): Promise<string>
  /** Cancels the response when the iteration ends early. */
  chunks(): AsyncIterable<Uint8Array>
  discard(): void
}

/** Rejects with the reason of a cancellation, or the error of the network. */
export type Wire = (request: WireRequest, cancellations: readonly Cancellation[]) => Promise<WireResponse>

const tooLargeError = (limit: number) =>
  new RemoteError('too-large', `a response of the server is larger than ${limit} bytes`, { executed: 'maybe' })

/** Unread bytes of a response above which its socket is paused. */
const HIGH_WATER = 256 * 1_024
/** Maximum unwanted bytes that are read so that a socket can be reused. */
const MAX_DISCARDED = 64 * 1_024

const stripByteOrderMark = (text: string): string => (text.charCodeAt(0) === 0xfeff ? text.slice(1) : text)

type Headers = Readonly<Record<string, string | string[] | undefined>>

class PooledExchange implements WireResponse, Dispatcher.DispatchHandler {
  status = 0
  readonly #cancellations: readonly Cancellation[]
  readonly #resolve: (response: WireResponse) => void
  readonly #reject: (error: Error) => void
  #headers: Headers = {}
  #controller: Dispatcher.DispatchController | undefined
  #chunks: Buffer[] = []
  #size = 0
  #limit = Number.POSITIVE_INFINITY
  #paused = false
  #buffersAll = false
  #discards = false
  #ended = false
  #error: Error | undefined
  #wake: (() => void) | undefined

  constructor(
    cancellations: readonly Cancellation[],
    resolve: (response: WireResponse) => void,
    reject: (error: Error) => void,
  ) {
    this.#cancellations = cancellations
    this.#resolve = resolve
    this.#reject = reject
    for (const one of cancellations) one.add(this.#cancel)
  }

  readonly #cancel = (reason: Error): void => {
    this.#fail(reason)
    this.#controller?.abort(reason)
  }

  #finish(): void {
    for (const one of this.#cancellations) one.remove(this.#cancel)
    this.#wake?.()
  }

  #fail(error: Error): void {
    if (this.#ended || this.#error) return
    this.#error = error
    this.#reject(error)
    this.#finish()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#error) controller.abort(this.#error)
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (status < 200) return
    this.status = status
    this.#headers = headers
    const encoding = this.header('content-encoding')
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      const error = new RemoteError('invalid', 'the server sent a compressed response, which was not requested', {
        executed: 'maybe',
      })
      this.#fail(error)
      controller.abort(error)
      return
    }
    this.#resolve(this)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#discards) {
      if (this.#size > MAX_DISCARDED) controller.abort(new Error('the response is not needed'))
      return
    }
    if (this.#buffersAll && this.#size > this.#limit) {
      this.#failTooLarge(controller)
      return
    }
    this.#chunks.push(chunk)
    if (this.#buffersAll) return
    this.#wake?.()
    if (this.#size > HIGH_WATER && !this.#paused) {
      this.#paused = true
      controller.pause()
    }
  }

  #failTooLarge(controller: Dispatcher.DispatchController | undefined): void {
    const error = tooLargeError(this.#limit)
    this.#fail(error)
    controller?.abort(error)
  }

  onResponseEnd(): void {
    this.#ended = true
    this.#finish()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error)
  }

  #resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#controller?.resume()
  }

  header(name: string): string | undefined {
    const value = this.#headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

  get setCookies(): readonly string[] {
    const value = this.#headers['set-cookie']
    return value === undefined ? [] : [value].flat()
  }

  #waitForEvent(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = () => {
        this.#wake = undefined
        resolve()
      }
    })
  }

  async text(limit: number): Promise<string> {
    this.#buffersAll = true
    this.#limit = limit
    if (this.#size > limit) this.#failTooLarge(this.#controller)
    this.#resume()
    if (!this.#ended && !this.#error) await this.#waitForEvent()
    if (this.#error) throw this.#error
    const [first] = this.#chunks
    const bytes = this.#chunks.length === 1 && first ? first : Buffer.concat(this.#chunks)
    this.#chunks = []
    return stripByteOrderMark(bytes.toString('utf8'))
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        while (this.#chunks.length > 0) {
          const chunks = this.#chunks
          this.#chunks = []
          this.#size = 0
          yield* chunks
        }
        if (this.#error) throw this.#error
        if (this.#ended) return
        this.#resume()
        await this.#waitForEvent()
      }
    } finally {
      if (!this.#ended) this.#cancel(new Error('the response is not needed'))
    }
  }

  discard(): void {
    this.#discards = true
    this.#chunks = []
    this.#resume()
  }
}

/** Connection timeout, milliseconds. */
const CONNECT_TIMEOUT = 10_000

/** Creates a pool of sockets for the server at `url`. `connections`: maximum number; default: no limit. */
export async function createPool(
  url: string,
  { tls, connections }: { readonly tls?: TlsOptions | undefined; readonly connections?: number } = {},
): Promise<Dispatcher> {
  const { Pool } = await import('undici')
  return new Pool(new URL(url).origin, {
    ...(connections !== undefined && { connections }),
    connect: { timeout: CONNECT_TIMEOUT, ...tls },
    // The caller sets the time limits of each call.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

export function createPoolWire(dispatcher: Dispatcher): Wire {
  let lastUrl = { url: '', origin: '', path: '' }
  return ({ method, url, headers, body }, cancellations) => {
    if (lastUrl.url !== url) {
      const { origin, pathname, search } = new URL(url)
      lastUrl = { url, origin, path: `${pathname}${search}` }
    }
    const { origin, path } = lastUrl
    return new Promise((resolve, reject) => {
      const exchange = new PooledExchange(cancellations, resolve, reject)
      dispatcher.dispatch({ origin, path, method, headers, body: body ?? null }, exchange)
    })
  }
}

function toWireResponse(response: Response, end: () => void): WireResponse {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      if (response.body) yield* response.body
    } finally {
      end()
    }
  }
  return {
    status: response.status,
    setCookies: response.headers.getSetCookie(),
    header: name => response.headers.get(name) ?? undefined,
    async text(limit) {
      const received: Uint8Array[] = []
      let size = 0
      for await (const chunk of chunks()) {
        size += chunk.byteLength
        if (size > limit) throw tooLargeError(limit)
        received.push(chunk)
      }
      return stripByteOrderMark(Buffer.concat(received).toString('utf8'))
    },
    chunks,
    discard() {
      response.body?.cancel().catch(() => undefined)
      end()
    },
  }
}

/** The size limits count decompressed bytes. */
export function createFetchWire(base: typeof fetch): Wire {
  return async ({ method, url, headers, body }, cancellations) => {
    const stop = new AbortController()
    const abort = (reason: Error): void => stop.abort(reason)
    const end = (): void => {
      for (const one of cancellations) one.remove(abort)
    }
    for (const one of cancellations) one.add(abort)
    try {
      const { signal } = stop
      const init = {
        method,
        headers: { ...headers },
        redirect: 'manual',
        signal,
        ...(body !== undefined && { body }),
      } as const
      return toWireResponse(await base(url, init), end)
    } catch (error) {
      end()
      throw error
    }
  }
}
