// A well-behaved client during failures of servers and connections: it respects retry delays and resumes streams.
import { setTimeout as wait } from 'node:timers/promises'
import type { RpcMessage } from '../../support/rpc.ts'
import type { SeededRandom } from '../../support/seeded-random.ts'
import { type ExchangeRequest, exchange, type ReadEvent, type StreamExchange } from '../../support/stream-exchange.ts'
import type { Tally } from './tally.ts'

const BASE = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
const REVISION = '2025-11-25'
/** Milliseconds to the next try where nothing says how long. */
const PAUSE = 200
/** A client drops one connection in so many events by itself. */
const DROP_EVERY = 40

/** What became of a request, or of coming back to a stream. */
export type Fate<Value> =
  | { readonly kind: 'answered'; readonly value: Value }
  /** Nobody can know whether it was served. */
  | { readonly kind: 'unsure' }
  /** The host said that events are gone; the session is another one now. */
  | { readonly kind: 'gap' }

type Reply =
  | { readonly kind: 'stream'; readonly stream: StreamExchange }
  | { readonly kind: 'unsure' }
  | { readonly kind: 'gone' }

export class GoodClient {
  readonly tally: Tally
  readonly random: SeededRandom
  /** What it last asked and heard: for one that is never done. */
  doing = 'nothing'
  readonly #url: string
  #headers: Record<string, string> = BASE
  #lastId = 0

  constructor(url: string, tally: Tally, random: SeededRandom) {
    this.#url = url
    this.tally = tally
    this.random = random
    tally.clients++
  }

  /** Sends until something other than "later" is the answer. */
  async #send(request: ExchangeRequest): Promise<Reply> {
    for (;;) {
      const headers = { ...this.#headers, ...request.headers }
      const asked = `${request.method} ${request.body ?? headers['Last-Event-ID'] ?? ''} in ${headers['Mcp-Session-Id']}`
      this.doing = `asked ${asked} at ${new Date().toISOString()}`
      const stream = await exchange(this.#url, { ...request, headers }).catch(() => undefined)
      this.doing += `, was answered ${stream?.status ?? 'nothing'} at ${new Date().toISOString()}`
      if (stream === undefined || stream.status === 502 || stream.status === 504) {
        this.tally.unsure++
        await wait(PAUSE)
        return { kind: 'unsure' }
      }
      if (stream.status >= 200 && stream.status < 300) return { kind: 'stream', stream }
      if (stream.status === 404) return { kind: 'gone' }
      const text = await stream.text()
      const seconds = Number(stream.headers['retry-after'])
      if (stream.status === 503 && seconds > 0) {
        this.tally.refused++
        await wait(seconds * 1_000)
      } else if (stream.status === 409) await wait(PAUSE)
      else throw new Error(`${request.method} was answered ${stream.status}: ${text}`)
    }
  }

  #post = (message: object) => this.#send({ method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', ...message }) })

  async open(): Promise<void> {
    this.#headers = BASE
    const clientInfo = { name: 'good-client', version: '1.0.0' }
    const params = { protocolVersion: REVISION, capabilities: {}, clientInfo }
    for (;;) {
      const reply = await this.#post({ id: 'initialize', method: 'initialize', params })
      if (reply.kind === 'gone') throw new Error('initialize was answered 404')
      if (reply.kind === 'unsure' || !(await reply.stream.whole)) continue
      const id = String(reply.stream.headers['mcp-session-id'])
      this.#headers = { ...BASE, 'Mcp-Session-Id': id, 'MCP-Protocol-Version': REVISION }
      break
    }
    for (let told = false; !told; ) told = (await this.#post({ method: 'notifications/initialized' })).kind === 'stream'
  }

  /** Tells whether the session is gone, or only events of it, and goes on with a new one. */
  async #begin(): Promise<void> {
    const alive = await this.#post({ id: ++this.#lastId, method: 'ping' })
    if (alive.kind === 'unsure') return this.#begin()
    if (alive.kind === 'gone') this.tally.sessionsLost++
    else await this.#send({ method: 'DELETE' })
    await this.open()
  }

  /** A request that may be made twice; its answer. */
  async request(method: string, params: object = {}): Promise<RpcMessage> {
    for (;;) {
      const fate = await this.call(method, params, () => undefined)
      if (fate.kind === 'answered') return fate.value
    }
  }

  /** Sends a request once, and reads its messages until its answer, however often its stream breaks. */
  async call(method: string, params: object, heard: (message: RpcMessage) => void): Promise<Fate<RpcMessage>> {
    const id = ++this.#lastId
    const reply = await this.#post({ id, method, params })
    if (reply.kind === 'unsure') return reply
    if (reply.kind === 'gone') {
      await this.#begin()
      return { kind: 'unsure' }
    }
    const { stream } = reply
    if (!stream.headers['content-type']?.startsWith('text/event-stream')) {
      const text = await stream.text()
      if (!(await stream.whole)) return { kind: 'unsure' }
      return { kind: 'answered', value: JSON.parse(text) }
    }
    return this.#read(stream, message => {
      if (message.id === id && message.method === undefined) return true
      heard(message)
      return false
    })
  }

  /** Reads what belongs to no call, until `heard` says that it is enough. */
  async listen(heard: (message: RpcMessage) => boolean): Promise<Fate<RpcMessage>> {
    const reply = await this.#send({ method: 'GET' })
    if (reply.kind === 'unsure') return reply
    if (reply.kind === 'gone') {
      await this.#begin()
      return { kind: 'gap' }
    }
    return this.#read(reply.stream, heard)
  }

  /** Reads up to and with the message that `isLast`, and comes back as often as that takes. */
  async #read(first: StreamExchange, isLast: (message: RpcMessage) => boolean): Promise<Fate<RpcMessage>> {
    let stream = first
    let lastId: string | undefined
    let retry = PAUSE
    for (;;) {
      for (let event = await this.#next(stream); event; event = await this.#next(stream)) {
        lastId = event.id ?? lastId
        this.#heard(event)
        retry = event.retry ?? retry
        if (event.message === undefined) continue
        if (isLast(event.message)) {
          stream.drop()
          return { kind: 'answered', value: event.message }
        }
        if (this.random.below(DROP_EVERY) > 0) continue
        this.tally.drops++
        stream.drop()
        break
      }
      this.tally.breaks++
      if (lastId === undefined) return { kind: 'unsure' }
      await wait(retry)
      const reply = await this.#comeBack(lastId)
      if (reply === undefined) return { kind: 'gap' }
      stream = reply
    }
  }

  #heard({ id, data }: ReadEvent) {
    this.doing = `${this.doing.split(', heard')[0]}, heard ${id} ${data} at ${new Date().toISOString()}`
  }

  async #next(stream: StreamExchange): Promise<ReadEvent | undefined> {
    const since = performance.now()
    const event = await stream.next()
    this.tally.silence = Math.max(this.tally.silence, performance.now() - since)
    return event
  }

  /** Undefined where what comes after is gone, and so the session is another one. */
  async #comeBack(lastId: string): Promise<StreamExchange | undefined> {
    for (;;) {
      const reply = await this.#send({ method: 'GET', headers: { 'Last-Event-ID': lastId } })
      if (reply.kind === 'unsure') continue
      if (reply.kind === 'gone') {
        this.tally.gaps++
        await this.#begin()
        return undefined
      }
      this.tally.resumed++
      return reply.stream
    }
  }
}
