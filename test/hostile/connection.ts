// A connection of an attacker: sends any bytes, and passes responses to the checks.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Answer, AnswerParser, type Head } from './response-parser.ts'
import type { Identity } from './target.ts'

/** Who is told of what a connection sees. */
export interface Watcher {
  sent(requests: number, bytes: Uint8Array): void
  head(head: Head): void
  /** `last`: what was sent last on this connection. */
  answer(answer: Answer): void
  /** Bytes as they come, with the end of those before. */
  bytes(text: string): void
}

/** The end of the bytes before that a marker may have begun in. */
const OVERLAP = 64

export class Connection {
  readonly who: Identity
  readonly heads: Head[] = []
  readonly answers: Answer[] = []
  /** What came, until it is taken; for those who read a stream as it flows. */
  text = ''
  readonly #socket: Socket
  readonly #watcher: Watcher
  readonly #parser: AnswerParser
  readonly #waiting = new Set<() => void>()
  #tail = ''
  #closed = false

  private constructor(socket: Socket, who: Identity, watcher: Watcher) {
    this.#socket = socket
    this.who = who
    this.#watcher = watcher
    this.#parser = new AnswerParser({
      head: head => {
        this.heads.push(head)
        watcher.head(head)
      },
      answer: answer => {
        this.answers.push(answer)
        watcher.answer(answer)
      },
    })
    socket.on('data', chunk => this.#receive(chunk))
    socket.once('close', () => {
      this.#closed = true
      this.#parser.end()
      this.#wake()
    })
  }

  static async open(url: string, who: Identity, watcher: Watcher, localAddress?: string): Promise<Connection> {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), ...(localAddress !== undefined && { localAddress }) })
    socket.on('error', () => undefined)
    const connection = new Connection(socket, who, watcher)
    if (socket.connecting) await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => undefined)
    return connection
  }

  #receive(chunk: Buffer) {
    const text = chunk.toString('latin1')
    this.#watcher.bytes(this.#tail + text)
    this.#tail = (this.#tail + text).slice(-OVERLAP)
    if (this.text.length < 65_536) this.text += text
    this.#parser.push(chunk)
    this.#wake()
  }

  #wake() {
    for (const look of [...this.#waiting]) look()
  }

  get closed() {
    return this.#closed
  }

  /** Where the next answer is that of a HEAD. */
  expectNoBody() {
    this.#parser.bodiless = true
  }

  /** Sends bytes, in which this many requests end. */
  send(bytes: string | Uint8Array, requests = 1): void {
    const buffer = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
    this.#watcher.sent(requests, buffer)
    if (!this.#closed) this.#socket.write(buffer)
  }

  /** Sends bytes and waits until the host took them, or the connection is over. */
  async sendAll(bytes: Uint8Array, requests = 1): Promise<void> {
    this.#watcher.sent(requests, bytes)
    if (this.#closed || this.#socket.write(bytes)) return
    await Promise.race([once(this.#socket, 'drain'), once(this.#socket, 'close')]).catch(() => undefined)
  }

  /** Half a close: no more will be sent. */
  endSending() {
    this.#socket.end()
  }

  /** Resolves with true once it is so or the connection is over, with false when `limit` milliseconds passed. */
  async until(isSo: () => boolean, limit: number): Promise<boolean> {
    if (isSo() || this.#closed) return true
    return new Promise(resolve => {
      const settle = (value: boolean) => {
        clearTimeout(timer)
        this.#waiting.delete(look)
        resolve(value)
      }
      const look = () => {
        if (isSo() || this.#closed) settle(true)
      }
      const timer = setTimeout(() => settle(false), limit)
      this.#waiting.add(look)
    })
  }

  /** Stops reading, as a process that hangs. */
  pause() {
    this.#socket.pause()
  }

  resume() {
    this.#socket.resume()
  }

  drop() {
    this.#socket.destroy()
  }

  /** Breaks the connection with RST. */
  reset() {
    this.#socket.resetAndDestroy()
  }
}
