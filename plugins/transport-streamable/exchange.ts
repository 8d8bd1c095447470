// The answer to one POST: JSON if all of it is ready soon and nothing was notified, else an event stream that gets the
// notifications and, last, the result. Closing it is the client's way to cancel.
import type { ServerResponse } from 'node:http'
import { type EventStream, type Logger, openEventStream } from '../../core/index.ts'

/** A single JSON answer is still possible for this long, milliseconds. */
export const JSON_WINDOW = 250

export interface Exchange {
  /** Sends a notification, on the stream that it opens. */
  notify(message: string): void
  /** Gives one of the expected answers; `status` and `headers` count where it is the only one and goes out as JSON. */
  respond(message: string, status?: number, headers?: Readonly<Record<string, string>>): void
  /** Aborts when the client is gone or `cancel` is called; made when first asked for. */
  signal(): AbortSignal
  cancel(reason: Error): void
  /** True once nobody listens any more. */
  readonly closed: boolean
}

export interface ExchangeSettings {
  /** How many answers will come. */
  readonly expected: number
  /** True where the answers go out as a JSON array. */
  readonly batch: boolean
  readonly log: Logger
}

class PostExchange implements Exchange {
  readonly #res: ServerResponse
  readonly #settings: ExchangeSettings
  readonly #ready: string[] = []
  readonly #timer: NodeJS.Timeout
  #stream: EventStream | undefined
  #answered = 0
  #controller: AbortController | undefined
  #reason: Error | undefined

  constructor(res: ServerResponse, settings: ExchangeSettings) {
    this.#res = res
    this.#settings = settings
    this.#timer = setTimeout(() => this.#openStream(), JSON_WINDOW)
    res.once('close', () => {
      if (!res.writableFinished) this.cancel(new Error('the client closed the response'))
    })
  }

  get closed() {
    return this.#reason !== undefined || this.#res.writableEnded || this.#res.destroyed
  }

  #openStream(): EventStream | undefined {
    clearTimeout(this.#timer)
    if (this.closed) return undefined
    this.#stream = openEventStream(this.#res, waiting =>
      this.#settings.log.warn({ waiting }, 'closed a stream whose reader does not read'),
    )
    for (const message of this.#ready.splice(0)) this.#stream.send(message)
    return this.#stream
  }

  notify(message: string) {
    if (this.closed || this.#answered === this.#settings.expected) return
    const stream = this.#stream ?? this.#openStream()
    stream?.send(message)
  }

  respond(message: string, status = 200, headers: Readonly<Record<string, string>> = {}) {
    this.#answered++
    const last = this.#answered === this.#settings.expected
    if (this.closed) return void clearTimeout(this.#timer)
    if (this.#stream) {
      if (last) this.#stream.end(message)
      else this.#stream.send(message)
      return
    }
    this.#ready.push(message)
    if (!last) return
    clearTimeout(this.#timer)
    const { batch, expected } = this.#settings
    const body = batch ? `[${this.#ready.join(',')}]` : message
    const base = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
    if (expected === 1) this.#res.writeHead(status, { ...base, ...headers })
    else this.#res.writeHead(200, base)
    this.#res.end(body)
  }

  signal() {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#reason) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  cancel(reason: Error) {
    if (this.#reason) return
    this.#reason = reason
    clearTimeout(this.#timer)
    this.#controller?.abort(reason)
    if (!this.#res.writableEnded) this.#res.destroy()
  }
}

/** The exchange for a POST whose body was read. */
export const createExchange = (res: ServerResponse, settings: ExchangeSettings): Exchange =>
  new PostExchange(res, settings)
