// The load: repeats one request over so many connections, each time when the one before is answered, until its time is over.
// On a core of its own it never sleeps: a server that answers faster than its client takes would otherwise be the only one
// that need not wake it, which on a virtual machine is half of what a call costs. Argument: the path of a JSON file, LoadAsked.
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { UNIQUE_ID } from '../requests.ts'
import { encodeRequest, readAddress } from './exchange.ts'

export interface LoadAsked {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** With UNIQUE_ID in it each request has another id there. */
  readonly body: string
  readonly connections: number
  readonly seconds: number
  /** Waits for answers as other programs do: where server and load share their cores. */
  readonly sleeps: boolean
}

export interface LoadFound {
  /** Answered, all with 200. */
  readonly requests: number
  readonly seconds: number
}

/** Of always the same length, so that only these bytes of a request change. */
const FIRST_ID = 1_000_000_000

/** What ends an answer that says no length. */
const LAST_CHUNK = '\r\n0\r\n\r\n'

/** One read of a socket at most; all share it, as each read is looked at before the next one. */
const read = Buffer.allocUnsafe(256 * 1024)

/** Gives the bytes of one request after the other. */
function createRequests({ url, headers, body }: LoadAsked): () => Buffer {
  const given = encodeRequest('POST', readAddress(url), headers, body.replace(UNIQUE_ID, String(FIRST_ID)))
  if (!body.includes(UNIQUE_ID)) return () => given
  const at = given.indexOf(String(FIRST_ID))
  let id = FIRST_ID
  return () => {
    // The one before may still wait in its socket.
    const next = Buffer.from(given)
    next.write(String(++id), at, 'latin1')
    return next
  }
}

/** One connection, which has one request at a time. */
class Caller {
  readonly #asked: LoadAsked
  readonly #next: () => Buffer
  #socket: Socket | undefined
  /** Of the answer that comes. */
  #bytes = 0
  /** Undefined: it ends with its last chunk. */
  #length: number | undefined
  #tail = ''
  #closes = false
  answered = 0

  constructor(asked: LoadAsked, next: () => Buffer) {
    this.#asked = asked
    this.#next = next
    this.#open()
  }

  #open() {
    const { host, port } = readAddress(this.#asked.url)
    const socket = connect({
      ...{ host, port, noDelay: true },
      onread: { buffer: read, callback: size => this.#read(size) },
    })
    socket.on('error', error => {
      throw error
    })
    socket.on('close', () => {
      if (this.#socket === socket) throw new Error('the server closed a connection before its answer')
    })
    this.#socket = socket
    socket.write(this.#next())
  }

  #begin(size: number) {
    const head = read.toString('latin1', 0, Math.min(size, 4096))
    const end = head.indexOf('\r\n\r\n')
    if (!head.startsWith('HTTP/1.1 200') || end === -1) throw new Error(`no answer but: ${head.slice(0, 400)}`)
    const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(head) ?? []
    this.#length = length === undefined ? undefined : end + 4 + Number(length)
    this.#closes = /\r\nconnection: close\r\n/i.test(head)
    this.#tail = ''
  }

  /** True where the answer is complete. */
  #take(size: number): boolean {
    this.#bytes += size
    if (this.#length !== undefined) return this.#bytes >= this.#length
    this.#tail = (this.#tail + read.toString('latin1', Math.max(0, size - LAST_CHUNK.length), size)).slice(
      -LAST_CHUNK.length,
    )
    return this.#tail === LAST_CHUNK
  }

  #read(size: number): boolean {
    if (this.#bytes === 0) this.#begin(size)
    if (!this.#take(size)) return true
    if (this.#length !== undefined && this.#bytes > this.#length) throw new Error('an answer is longer than it says')
    this.#bytes = 0
    this.answered++
    if (this.#closes) this.#open()
    else this.#socket?.write(this.#next())
    return true
  }
}

const asked = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as LoadAsked
const next = createRequests(asked)
const began = performance.now()
const callers = Array.from({ length: asked.connections }, () => new Caller(asked, next))

function finish() {
  const found: LoadFound = {
    requests: callers.reduce((sum, { answered }) => sum + answered, 0),
    seconds: (performance.now() - began) / 1000,
  }
  console.log(`\n${JSON.stringify(found)}`)
  process.exit(0)
}

function turn() {
  if (performance.now() - began >= asked.seconds * 1000) finish()
  else setImmediate(turn)
}

if (asked.sleeps) setTimeout(finish, asked.seconds * 1000)
else turn()
