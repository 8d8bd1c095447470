// The response to a POST: JSON if it is ready soon and no other message was sent, otherwise an event stream.
import type { HostError } from '../../core/index.ts'
import type { HostContext, Revision } from '../../core/plugin.ts'
import {
  type CallReply,
  Cancellation,
  type EncodedResponse,
  LARGE_TEXT,
  LATEST_HANDSHAKE,
  type Message,
  openEventStream,
  RETRY,
  rulesOf,
  type Session,
  statusOf,
  type TimeoutEntry,
  TimeoutQueue,
  type Transport,
} from '../../core/transport.ts'

/** After this time the response becomes a stream, milliseconds. */
const JSON_WINDOW = 250

export type Request = Extract<Message, { kind: 'request' }>

export function respondAccepted(ctx: HostContext): void {
  ctx.body = null
  ctx.status = 202
}

interface Sink {
  send(message: string): void
  end(message?: string): void
  /** Closes the connection; undefined if the client cannot resume. */
  readonly disconnect: ((retry?: number) => void) | undefined
}

export interface ExchangeContext {
  readonly host: Transport
  readonly jsonWindow: TimeoutQueue<PostExchange>
}

/** The exchanges of a route share a timer. */
export const createExchangeContext = (host: Transport): ExchangeContext => ({
  host,
  jsonWindow: new TimeoutQueue(JSON_WINDOW, host.clock),
})

interface Post {
  readonly ctx: HostContext
  readonly requests: readonly Request[]
  readonly batch: boolean
  /** Undefined: a closed connection cancels the calls. */
  readonly session: Session | undefined
  /** The protocol version of requests without a session. */
  readonly revision?: Revision
}

export const isPrimed = ({ revision }: Session): boolean => revision !== undefined && rulesOf(revision).primesStreams

function openSink(host: Transport, { ctx, requests, session }: Post): Sink {
  if (!session) {
    const stream = openEventStream(ctx.res, { log: host.log })
    return {
      send: message => stream.send(message),
      end: message => (message === undefined ? stream.end() : stream.endWith(message)),
      disconnect: undefined,
    }
  }
  const ids = requests.map(({ id }) => id)
  const stream = host.streams.open(session, ids)
  const reader = openEventStream(ctx.res, { headers: { 'Mcp-Session-Id': session.id }, log: host.log })
  if (isPrimed(session)) stream.prime(reader, RETRY)
  void stream.attach(reader, 0)
  return {
    send: message => stream.write(message),
    end: message => stream.finish(message),
    disconnect: isPrimed(session) ? (retry = RETRY) => stream.disconnect(retry) : undefined,
  }
}

/** Connects a call, or the calls of a batch, to the client. A message before the responses opens the stream. */
export class PostExchange implements CallReply, TimeoutEntry {
  older?: this | undefined = undefined
  newer?: this | undefined = undefined
  linked = false
  due = 0
  readonly #context: ExchangeContext
  readonly #post: Post
  readonly #answers: EncodedResponse[] = []
  #replies: BatchReply[] | undefined
  #sink: Sink | undefined
  #remaining: number
  #holds = 0
  #isLate = false
  readonly cancellation = new Cancellation()

  constructor(context: ExchangeContext, post: Post) {
    this.#context = context
    this.#post = post
    this.#remaining = post.requests.length
    context.jsonWindow.add(this)
    const { res } = post.ctx
    const closed = () => {
      if (res.writableFinished) return
      context.jsonWindow.delete(this)
      if (!post.session) this.cancel(new Error('the client closed the response'))
    }
    if (res.destroyed) process.nextTick(closed)
    else res.on('close', closed)
  }

  replyToOne(): CallReply {
    const reply = new BatchReply(this)
    this.#replies ??= []
    this.#replies.push(reply)
    return reply
  }

  onTimeout() {
    this.#isLate = true
    if (this.#holds === 0) this.#openSink()
  }

  hold() {
    this.#holds++
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#holds--
      if (this.#holds === 0 && this.#isLate && this.#remaining > 0) this.#openSink()
    }
  }

  #openSink(): Sink | undefined {
    this.#context.jsonWindow.delete(this)
    const { res } = this.#post.ctx
    if (this.#sink || res.destroyed || res.writableEnded) return this.#sink
    this.#sink = openSink(this.#context.host, this.#post)
    for (const answer of this.#answers.splice(0)) this.#sink.send(String(answer))
    return this.#sink
  }

  send(message: string) {
    if (this.#remaining > 0) this.#openSink()?.send(message)
  }

  respond(answer: EncodedResponse, error?: HostError) {
    if (this.#remaining === 0) return
    if (error) this.#post.ctx.state.refusal = error
    this.#remaining--
    if (!this.#sink) this.#answers.push(answer)
    else if (this.#remaining > 0) this.#sink.send(String(answer))
    else return this.#sink.end(String(answer))
    if (this.#remaining === 0) this.#finish(error)
  }

  /** A cancelled request has no response. */
  skip() {
    if (this.#remaining === 0) return
    this.#remaining--
    if (this.#remaining === 0) this.#finish()
  }

  #finish(error?: HostError) {
    this.#context.jsonWindow.delete(this)
    if (this.#sink) return this.#sink.end()
    const { ctx, batch, requests, session, revision = session?.revision } = this.#post
    const { res } = ctx
    if (res.destroyed || res.writableEnded) return
    const [firstAnswer] = this.#answers
    if (firstAnswer === undefined) return void this.#openSink()?.end()
    const answer = batch ? `[${this.#answers.join(',')}]` : firstAnswer
    // Node writes a short string together with the response head.
    const body = typeof answer !== 'string' ? answer.bytes : answer.length > LARGE_TEXT ? Buffer.from(answer) : answer
    // Responses are released before the reader has read the body.
    this.#answers.length = 0
    // An array is faster than merged objects.
    const fields = ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(body))]
    let status = 200
    if (requests.length === 1) {
      // A refused handshake has no session id.
      if (session && revision !== undefined) fields.push('Mcp-Session-Id', session.id)
      if (error) {
        status = statusOf(error, rulesOf(revision ?? LATEST_HANDSHAKE))
        fields.push(...Object.entries(error.headers ?? {}).flat())
      }
    }
    res.writeHead(status, fields)
    if (typeof body !== 'string') return void res.end(body)
    // A single socket write: `end(body)` makes two, which costs 3 µs per call.
    res.write(body)
    res.socket?.uncork()
    res.end()
  }

  cancel(reason: Error) {
    if (this.cancellation.aborted) return
    const wasAnswered = this.#remaining === 0
    this.#remaining = 0
    this.#context.jsonWindow.delete(this)
    this.cancellation.abort(reason)
    for (const reply of this.#replies ?? []) reply.cancel(reason)
    if (wasAnswered) return
    if (this.#post.session) this.#openSink()?.end()
    else this.#post.ctx.res.destroy()
  }

  disconnect(retry?: number) {
    if (this.#remaining > 0) this.#openSink()?.disconnect?.(retry)
  }
}

class BatchReply implements CallReply {
  readonly cancellation = new Cancellation()
  readonly #exchange: PostExchange
  #answered = false

  constructor(exchange: PostExchange) {
    this.#exchange = exchange
  }
  send(message: string) {
    if (!this.cancellation.aborted && !this.#answered) this.#exchange.send(message)
  }
  respond(answer: EncodedResponse, error?: HostError) {
    if (this.cancellation.aborted || this.#answered) return
    this.#answered = true
    this.#exchange.respond(answer, error)
  }
  cancel(reason: Error) {
    if (this.cancellation.aborted) return
    this.cancellation.abort(reason)
    if (!this.#answered) this.#exchange.skip()
  }
  disconnect(retry?: number) {
    this.#exchange.disconnect(retry)
  }
  hold() {
    return this.#exchange.hold()
  }
}
