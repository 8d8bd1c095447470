// Long messages between the processes of one host go in parts, each when the one before has left the primary: new connections
// and short messages, which go the same way, wait for one part at most. For neighbours.ts.
import { FULL, Room, type Sent } from './room.ts'

/** Characters that go at once. */
export const PART_SIZE = 262_144
/** Characters of long messages that may wait for one process; as what may be on its way to it. */
const MOST_WAITING = 32_000_000
/** What was begun and not gone on with for as long is dropped, milliseconds: whoever sent it has ended, or was refused. */
const LEFT_AFTER = 30_000

/** What part of a message it is, where it is not all of it. */
export interface Part {
  /** As whoever sends it numbers his messages. */
  readonly message: number
  readonly index: number
  readonly isLast: boolean
}

/** Rejects where the part is not taken. */
type SendPart = (node: string, share: string, text: string, part: Part) => Promise<Sent>

interface Waiting {
  readonly text: string
  readonly message: number
  index: number
  settle(sent: Sent | Error): void
}

/** What waits for one process: of each share one message at a time, and a part of each in turn. */
class Line {
  readonly #node: string
  readonly #sendPart: SendPart
  readonly #shares = new Map<string, Waiting[]>()
  readonly #room: Room
  #isMoving = false

  constructor(node: string, most: number, sendPart: SendPart) {
    this.#node = node
    this.#sendPart = sendPart
    this.#room = new Room(most)
  }

  get isEmpty(): boolean {
    return this.#shares.size === 0
  }

  async add(share: string, text: string, message: number): Promise<Sent> {
    if (!this.#room.fits(share, text.length)) return FULL
    this.#room.take(share, text.length)
    return new Promise<Sent>((resolve, reject) => {
      const settle = (sent: Sent | Error) => {
        this.#room.give(share, text.length)
        if (sent instanceof Error) reject(sent)
        else resolve(sent)
      }
      const waiting = this.#shares.get(share) ?? []
      waiting.push({ text, message, index: 0, settle })
      this.#shares.set(share, waiting)
      if (!this.#isMoving) void this.#move()
    })
  }

  async #move() {
    this.#isMoving = true
    for (;;) {
      const [next] = this.#shares
      if (!next) break
      const [share, [first]] = next
      if (first) await this.#sendNext(share, first)
    }
    this.#isMoving = false
  }

  async #sendNext(share: string, one: Waiting) {
    const { text, message, index } = one
    const end = (index + 1) * PART_SIZE
    const isLast = end >= text.length
    try {
      const part = { message, index, isLast }
      const sent = await this.#sendPart(this.#node, share, text.slice(index * PART_SIZE, end), part)
      const isDone = isLast || sent !== true
      one.index++
      this.#turn(share, isDone)
      if (isDone) one.settle(sent)
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  /** The others are next; `isDone`: its first message is. */
  #turn(share: string, isDone: boolean) {
    const waiting = this.#shares.get(share) ?? []
    if (isDone) waiting.shift()
    this.#shares.delete(share)
    if (waiting.length > 0) this.#shares.set(share, waiting)
  }

  /** Whoever does not take one part does not take others: nobody waits for that one after the other. */
  #fail(error: Error) {
    const all = [...this.#shares.values()].flat()
    this.#shares.clear()
    for (const { settle } of all) settle(error)
  }
}

/** The lines to all processes. */
export class Lines {
  readonly #sendPart: SendPart
  readonly #most: number
  readonly #lines = new Map<string, Line>()
  #sent = 0

  constructor(sendPart: SendPart, most = MOST_WAITING) {
    this.#sendPart = sendPart
    this.#most = most
  }

  /** As `SendPart` resolves for the last part. */
  send(node: string, share: string, text: string): Promise<Sent> {
    const line = this.#lines.get(node) ?? new Line(node, this.#most, this.#sendPart)
    this.#lines.set(node, line)
    const forget = () => {
      if (line.isEmpty && this.#lines.get(node) === line) this.#lines.delete(node)
    }
    return line.add(share, text, ++this.#sent).finally(forget)
  }
}

interface Begun {
  readonly texts: string[]
  timer: NodeJS.Timeout
}

/** Puts messages together again. */
export class Assembling {
  readonly #begun = new Map<string, Begun>()

  /** The message, with its last part; `from`: whoever sends it. */
  take(from: number, { message, index, isLast }: Part, text: string): string | undefined {
    const name = `${from} ${message}`
    const texts = this.#begun.get(name)?.texts ?? []
    clearTimeout(this.#begun.get(name)?.timer)
    this.#begun.delete(name)
    // What came before it was dropped.
    if (index !== texts.length) return undefined
    texts.push(text)
    if (isLast) return texts.join('')
    const timer = setTimeout(() => this.#begun.delete(name), LEFT_AFTER)
    this.#begun.set(name, { texts, timer: timer.unref() })
    return undefined
  }
}
