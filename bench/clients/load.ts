// The load generator: repeats a request over several connections, each time after the previous response.
// Argument: path of a JSON file with LoadOptions.
// With a dedicated CPU it polls without sleeping. Otherwise only a server that is faster than the client would save the
// wakeup of the client, which on a virtual machine is half the cost of a call.
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { ID_PLACEHOLDER } from '../requests.ts'
import { encodeRequest, parseEndpoint } from './raw-http.ts'

export interface LoadOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** ID_PLACEHOLDER is replaced by a unique id in each request. */
  readonly body: string
  readonly connections: number
  readonly seconds: number
  /** False if the server and the load generator share CPUs. */
  readonly busyPoll: boolean
}

export interface LoadResult {
  /** Number of responses, all with status 200. */
  readonly requests: number
  readonly seconds: number
}

/** All ids have the same length, so that only these bytes of a request change. */
const FIRST_ID = 1_000_000_000

/** End of a response without Content-Length. */
const LAST_CHUNK = '\r\n0\r\n\r\n'

/** Shared by all sockets, because each read is processed before the next one. */
const readBuffer = Buffer.allocUnsafe(256 * 1024)

/** Returns a function that returns the bytes of the next request. */
function createRequests({ url, headers, body }: LoadOptions): () => Buffer {
  const template = encodeRequest('POST', parseEndpoint(url), headers, body.replace(ID_PLACEHOLDER, String(FIRST_ID)))
  if (!body.includes(ID_PLACEHOLDER)) return () => template
  const offset = template.indexOf(String(FIRST_ID))
  let id = FIRST_ID
  return () => {
    // A copy, because the previous request can still be in a socket's write queue.
    const request = Buffer.from(template)
    request.write(String(++id), offset, 'latin1')
    return request
  }
}

/** One connection with one request at a time. */
class Connection {
  readonly #url: string
  readonly #nextRequest: () => Buffer
  #socket: Socket | undefined
  /** Bytes of the current response. */
  #received = 0
  /** Undefined if the response is chunked. */
  #length: number | undefined
  #tail = ''
  #closes = false
  responses = 0

  constructor(url: string, nextRequest: () => Buffer) {
    this.#url = url
    this.#nextRequest = nextRequest
    this.#open()
  }

  #open() {
    const { host, port } = parseEndpoint(this.#url)
    const socket = connect({
      ...{ host, port, noDelay: true },
      onread: { buffer: readBuffer, callback: size => this.#onRead(size) },
    })
    socket.on('error', error => {
      throw error
    })
    socket.on('close', () => {
      if (this.#socket === socket) throw new Error('the server closed a connection before its response')
    })
    this.#socket = socket
    socket.write(this.#nextRequest())
  }

  #parseHead(size: number) {
    const head = readBuffer.toString('latin1', 0, Math.min(size, 4096))
    const end = head.indexOf('\r\n\r\n')
    if (!head.startsWith('HTTP/1.1 200') || end === -1) throw new Error(`unexpected response: ${head.slice(0, 400)}`)
    const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(head) ?? []
    this.#length = length === undefined ? undefined : end + 4 + Number(length)
    this.#closes = /\r\nconnection: close\r\n/i.test(head)
    this.#tail = ''
  }

  /** Returns whether the response is complete. */
  #addBytes(size: number): boolean {
    this.#received += size
    if (this.#length !== undefined) return this.#received >= this.#length
    this.#tail = (this.#tail + readBuffer.toString('latin1', Math.max(0, size - LAST_CHUNK.length), size)).slice(
      -LAST_CHUNK.length,
    )
    return this.#tail === LAST_CHUNK
  }

  #onRead(size: number): boolean {
    if (this.#received === 0) this.#parseHead(size)
    if (!this.#addBytes(size)) return true
    if (this.#length !== undefined && this.#received > this.#length)
      throw new Error('a response is longer than its Content-Length')
    this.#received = 0
    this.responses++
    if (this.#closes) this.#open()
    else this.#socket?.write(this.#nextRequest())
    return true
  }
}

const options = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as LoadOptions
const nextRequest = createRequests(options)
const startedAt = performance.now()
const connections = Array.from({ length: options.connections }, () => new Connection(options.url, nextRequest))

function finish() {
  const result: LoadResult = {
    requests: connections.reduce((sum, { responses }) => sum + responses, 0),
    seconds: (performance.now() - startedAt) / 1000,
  }
  console.log(`\n${JSON.stringify(result)}`)
  process.exit(0)
}

function poll() {
  if (performance.now() - startedAt >= options.seconds * 1000) finish()
  else setImmediate(poll)
}

if (options.busyPoll) poll()
else setTimeout(finish, options.seconds * 1000)
