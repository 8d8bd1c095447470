// Opens many connections at once, with one call on each, and counts failures. Argument: ConnectionsOptions as JSON.
import { connect } from 'node:net'
import { callEcho } from '../requests.ts'
import { encodeRequest, parseEndpoint } from './raw-http.ts'

export interface ConnectionsOptions {
  readonly url: string
  readonly connections: number
}

export interface ConnectionsResult {
  /** Refused, reset, or closed without a response. */
  readonly failed: number
  /** Connected after a retransmission: the first packet was dropped, because the listen queue was full. */
  readonly late: number
  /** Milliseconds until the last response. */
  readonly last: number
  /** Distinct error codes or messages. */
  readonly errors: readonly string[]
}

/** Linux retransmits the first packet of a connection after about a second. */
const RETRANSMISSION_MS = 900
const TIMEOUT_MS = 15_000

const options = JSON.parse(process.argv[2] ?? '') as ConnectionsOptions
const endpoint = parseEndpoint(options.url)
const bytes = encodeRequest('POST', endpoint, { ...callEcho.headers, Connection: 'close' }, callEcho.body)
const errors = new Set<string>()
let [failed, late] = [0, 0]
const startedAt = performance.now()

function sendCall(): Promise<void> {
  return new Promise(resolve => {
    let text = ''
    const socket = connect(endpoint.port, endpoint.host)
    const timeout = setTimeout(() => socket.destroy(new Error('no response in time')), TIMEOUT_MS)
    socket.setEncoding('latin1')
    socket.once('connect', () => {
      if (performance.now() - startedAt > RETRANSMISSION_MS) late++
      socket.write(bytes)
    })
    socket.on('data', (chunk: string) => {
      text += chunk
    })
    socket.once('error', error => void errors.add('code' in error ? String(error.code) : error.message))
    socket.once('close', () => {
      clearTimeout(timeout)
      if (!text.startsWith('HTTP/1.1 200')) failed++
      resolve()
    })
  })
}

await Promise.all(Array.from({ length: options.connections }, sendCall))
const result: ConnectionsResult = { failed, late, last: performance.now() - startedAt, errors: [...errors] }
console.log(`\n${JSON.stringify(result)}`)
process.exit(0)
