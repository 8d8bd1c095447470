// The answer to one POST: JSON if all of it is ready soon and nothing came before it, else an event stream that gets
// the messages and, last, the answer.
import type { ServerResponse } from 'node:http'
import type { Clock, HostError } from '../../core/index.ts'
import {
  type CallChannel,
  type EncodedAnswer,
  EqualWait,
  LARGE_ANSWER,
  type Waiting,
  whenClosed,
} from '../../core/transport.ts'

/** A JSON answer is still possible for this long, milliseconds. */
const JSON_WINDOW = 250

/** Where messages go once the answer is a stream. */
export interface Sink {
  send(message: string): void
  /** The last message, if there is one: no more will come. */
  end(message?: string): void
  /** Closes the connection; undefined where the client cannot come back for the rest. */
  readonly disconnect: ((retry?: number) => void) | undefined
}

export interface ExchangeSettings {
  /** How many answers will come. */
  readonly expected: number
  /** True where the answers go out as a JSON array. */
  readonly batch: boolean
  /** Turns the response into a stream. */
  readonly open: () => Sink
  /** True where the client closing the response ends the calls; a session's calls go on. */
  readonly cancelledByClose: boolean
}

/** The exchanges that may yet become streams by the time that they take. */
type JsonWindow = EqualWait<PostExchange>

/** Names and values of headers, one after the other. */
export type HeaderList = readonly string[]

/** A call's way to its client, which the calls of a batch share. What it sends before the answers opens the stream. */
export interface Exchange extends CallChannel {
  /** Gives one of the expected answers; `status` and `headers` count where it is the only one and goes out as JSON. */
  respond(answer: EncodedAnswer, status?: number, headers?: HeaderList): void
  /** One of the expected answers will not come: its request was cancelled. */
  skip(): void
  /** The time that the answers take makes no stream of them until what it gives is called. */
  hold(): () => void
  /** Ends the calls, as the client closing the response does where that counts. */
  cancel(reason: Error): void
}

const NO_HEADERS: HeaderList = []

/** The headers that belong to an error. */
export const headerList = ({ headers }: HostError): HeaderList =>
  headers === undefined ? NO_HEADERS : Object.entries(headers).flat()

/** Short texts are cheaper as they are: Node writes them with the head, in one piece. */
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
  /** The time is over in which a JSON answer was possible. */
  #late = false
  #controller: AbortController | undefined
  #reason: Error | undefined

  constructor(res: ServerResponse, settings: ExchangeSettings, jsonWindow: JsonWindow) {
    this.#res = res
    this.#settings = settings
    this.#jsonWindow = jsonWindow
    jsonWindow.add(this)
    // The client may have gone while its request was read, or its session looked up.
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

  /** Undefined where nothing can be said any more. */
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
    // Everything was cancelled: the client expects no answer, but its request must end.
    if (only === undefined) return void this.#openSink()?.end()
    const body = bodyOf(batch ? `[${this.#ready.join(',')}]` : only)
    // The exchange lasts until its reader has it all.
    this.#ready.length = 0
    // A list: objects that are spread into one another each have a shape of their own, which costs every answer.
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
    // What was answered is on its way.
    if (answered) return
    if (this.#settings.cancelledByClose) this.#res.destroy()
    else this.#openSink()?.end()
  }

  disconnect(retry?: number) {
    if (!this.#over) this.#openSink()?.disconnect?.(retry)
  }
}

/** Opens the exchange for a POST whose body was read. Those of one opener wait for their streams together. */
export function createOpener(clock: Clock): (res: ServerResponse, settings: ExchangeSettings) => Exchange {
  const jsonWindow: JsonWindow = new EqualWait(JSON_WINDOW, clock)
  return (res, settings) => new PostExchange(res, settings, jsonWindow)
}
