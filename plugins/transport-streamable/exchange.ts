// The response to a POST: JSON if all of it is ready soon and no message came before, else an event stream.
import type { ServerResponse } from 'node:http'
import type { HostError } from '../../core/index.ts'
import type { Clock, HostContext } from '../../core/plugin.ts'
import {
  type CallChannel,
  type EncodedAnswer,
  EqualWait,
  LARGE_ANSWER,
  type Waiting,
  whenClosed,
} from '../../core/transport.ts'

/** After this time the response becomes a stream, milliseconds. */
const JSON_WINDOW = 250

export function accept(ctx: HostContext): void {
  ctx.body = null
  ctx.status = 202
}

export interface Sink {
  send(message: string): void
  end(message?: string): void
  /** Closes the connection; undefined if the client cannot resume. */
  readonly disconnect: ((retry?: number) => void) | undefined
}

export interface ExchangeSettings {
  readonly expected: number
  readonly batch: boolean
  readonly open: () => Sink
  /** True if a closed connection cancels the calls; calls of a session continue. */
  readonly cancelledByClose: boolean
}

type JsonWindow = EqualWait<PostExchange>

export type HeaderList = readonly string[]

/** Connects a call, or the calls of a batch, to the client. A message before the responses opens the stream. */
export interface Exchange extends CallChannel {
  /** Adds a response; `status` and `headers` apply if it is the only one and sent as JSON. */
  respond(answer: EncodedAnswer, status?: number, headers?: HeaderList): void
  skip(): void
  hold(): () => void
  cancel(reason: Error): void
}

const NO_HEADERS: HeaderList = []

export const headerList = ({ headers }: HostError): HeaderList =>
  headers === undefined ? NO_HEADERS : Object.entries(headers).flat()

/** Node writes a short string together with the head. */
function bodyOf(answer: EncodedAnswer): string | Buffer {
  if (typeof answer !== 'string') return answer.bytes
  return answer.length > LARGE_ANSWER ? Buffer.from(answer) : answer
}

class PostExchange implements Exchange, Waiting {
  older?: this | undefined = undefined
  newer?: this | undefined = undefined
  linked = false
  due = 0
  readonly #res: ServerResponse
  readonly #settings: ExchangeSettings
  readonly #ready: EncodedAnswer[] = []
  readonly #jsonWindow: JsonWindow
  #sink: Sink | undefined
  #settled = 0
  #held = 0
  #late = false
  #controller: AbortController | undefined
  #reason: Error | undefined

  constructor(res: ServerResponse, settings: ExchangeSettings, jsonWindow: JsonWindow) {
    this.#res = res
    this.#settings = settings
    this.#jsonWindow = jsonWindow
    jsonWindow.add(this)
    whenClosed(res, () => {
      if (res.writableFinished) return
      this.#jsonWindow.delete(this)
      if (settings.cancelledByClose) this.cancel(new Error('the client closed the response'))
    })
  }

  overdue() {
    this.#late = true
    if (this.#held === 0) this.#openSink()
  }

  hold() {
    this.#held++
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#held--
      if (this.#held === 0 && this.#late && !this.#over) this.#openSink()
    }
  }

  #openSink(): Sink | undefined {
    this.#jsonWindow.delete(this)
    if (this.#sink || this.#res.destroyed || this.#res.writableEnded) return this.#sink
    this.#sink = this.#settings.open()
    for (const answer of this.#ready.splice(0)) this.#sink.send(String(answer))
    return this.#sink
  }

  get #over() {
    return this.#reason !== undefined || this.#settled === this.#settings.expected
  }

  send(message: string) {
    if (!this.#over) this.#openSink()?.send(message)
  }

  respond(answer: EncodedAnswer, status = 200, headers: HeaderList = NO_HEADERS) {
    if (this.#over) return
    this.#settled++
    if (this.#over && this.#sink) {
      this.#jsonWindow.delete(this)
      return this.#sink.end(String(answer))
    }
    if (this.#sink) this.#sink.send(String(answer))
    else this.#ready.push(answer)
    if (this.#over) this.#finish(status, headers)
  }

  skip() {
    if (this.#over) return
    this.#settled++
    if (this.#over) this.#finish(200, NO_HEADERS)
  }

  #finish(status: number, headers: HeaderList) {
    this.#jsonWindow.delete(this)
    if (this.#sink) return this.#sink.end()
    if (this.#res.destroyed || this.#res.writableEnded) return
    const { batch, expected } = this.#settings
    const [only] = this.#ready
    if (only === undefined) return void this.#openSink()?.end()
    const body = bodyOf(batch ? `[${this.#ready.join(',')}]` : only)
    // Released before the reader has read the body.
    this.#ready.length = 0
    // A list is faster than merged objects.
    const fields = ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(body))]
    if (expected === 1) this.#res.writeHead(status, headers.length > 0 ? fields.concat(headers) : fields)
    else this.#res.writeHead(200, fields)
    if (typeof body !== 'string') return void this.#res.end(body)
    // One socket write. `end(body)` makes two, which costs 3 µs per call.
    this.#res.write(body)
    this.#res.socket?.uncork()
    this.#res.end()
  }

  signal() {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#reason) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  cancelled() {
    return this.#reason !== undefined
  }

  cancel(reason: Error) {
    if (this.#reason) return
    const answered = this.#over
    this.#reason = reason
    this.#jsonWindow.delete(this)
    this.#controller?.abort(reason)
    if (answered) return
    if (this.#settings.cancelledByClose) this.#res.destroy()
    else this.#openSink()?.end()
  }

  disconnect(retry?: number) {
    if (!this.#over) this.#openSink()?.disconnect?.(retry)
  }
}

/** The exchanges of one opener share a timer. */
export function createOpener(clock: Clock): (res: ServerResponse, settings: ExchangeSettings) => Exchange {
  const jsonWindow: JsonWindow = new EqualWait(JSON_WINDOW, clock)
  return (res, settings) => new PostExchange(res, settings, jsonWindow)
}
