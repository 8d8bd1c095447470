// Parses the bytes of a connection into HTTP responses: pipelined, and possibly truncated.

export interface Head {
  readonly status: number
  /** By lower-case name; several of one name are joined by a comma. */
  readonly headers: ReadonlyMap<string, string>
}

export interface Answer extends Head {
  readonly body: Buffer
  /** True where the connection ended before the answer did. */
  readonly broken: boolean
}

export interface AnswerEvents {
  /** The head of an answer is there; its body may take for ever. */
  head(head: Head): void
  answer(answer: Answer): void
}

type Step = 'head' | 'fixed' | 'size' | 'chunk' | 'chunk-end' | 'trailer' | 'rest'

const NOTHING = Buffer.alloc(0)

function parseHead(text: string): Head {
  const [first = '', ...lines] = text.split('\r\n')
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  return { status: Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1] ?? Number.NaN), headers }
}

export class AnswerParser {
  readonly #events: AnswerEvents
  #pending: Buffer = NOTHING
  #step: Step = 'head'
  #head: Head | undefined
  #body: Buffer[] = []
  #left = 0
  /** What was asked for with HEAD has no body, whatever its head says. */
  bodiless = false

  constructor(events: AnswerEvents) {
    this.#events = events
  }

  push(chunk: Buffer): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    while (this.#advance());
  }

  /** The connection is over. */
  end(): void {
    const cut = this.#step === 'head' ? this.#pending.length > 0 : this.#step !== 'rest'
    if (this.#step === 'head' && !cut) return
    this.#head ??= { status: Number.NaN, headers: new Map() }
    this.#finish(cut)
  }

  #line(): string | undefined {
    const end = this.#pending.indexOf('\r\n')
    if (end === -1) return undefined
    const line = this.#pending.toString('latin1', 0, end)
    this.#pending = this.#pending.subarray(end + 2)
    return line
  }

  /** One step; false where more bytes are needed. */
  #advance(): boolean {
    if (this.#step === 'head') return this.#readHead()
    if (this.#step === 'size') return this.#readSize()
    if (this.#step === 'chunk-end' || this.#step === 'trailer') {
      const line = this.#line()
      if (line === undefined) return false
      if (this.#step === 'chunk-end') this.#step = 'size'
      else if (line === '') this.#finish(false)
      return true
    }
    return this.#readBody()
  }

  #readHead(): boolean {
    const end = this.#pending.indexOf('\r\n\r\n')
    if (end === -1) return false
    const head = parseHead(this.#pending.toString('latin1', 0, end))
    this.#pending = this.#pending.subarray(end + 4)
    // 100 Continue and its kin announce the answer, and are none.
    if (head.status >= 100 && head.status < 200 && head.status !== 101) return true
    this.#head = head
    this.#events.head(head)
    const length = head.headers.get('content-length')
    this.#left = Number(length ?? 0)
    if (this.bodiless || head.status === 204 || head.status === 304) this.#finish(false)
    else if (head.headers.get('transfer-encoding')?.includes('chunked')) this.#step = 'size'
    else if (length === undefined) this.#step = 'rest'
    else if (this.#left === 0) this.#finish(false)
    else this.#step = 'fixed'
    return true
  }

  #readSize(): boolean {
    const line = this.#line()
    if (line === undefined) return false
    this.#left = Number.parseInt(line, 16)
    this.#step = this.#left === 0 ? 'trailer' : 'chunk'
    return true
  }

  #readBody(): boolean {
    if (this.#pending.length === 0) return false
    const taken = this.#step === 'rest' ? this.#pending : this.#pending.subarray(0, this.#left)
    this.#body.push(taken)
    this.#pending = this.#pending.subarray(taken.length)
    this.#left -= taken.length
    if (this.#step === 'rest') return false
    if (this.#left > 0) return false
    if (this.#step === 'fixed') this.#finish(false)
    else this.#step = 'chunk-end'
    return true
  }

  #finish(broken: boolean) {
    const head = this.#head
    const body = this.#body
    this.#head = undefined
    this.#body = []
    this.#step = 'head'
    if (head) this.#events.answer({ ...head, body: Buffer.concat(body), broken })
  }
}
