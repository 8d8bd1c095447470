// Opens many connections at once, each with one call on it, and counts what became of them. Argument: JSON, as ConnectionsAsked.
import { connect } from 'node:net'
import { callEcho } from '../requests.ts'
import { encodeRequest, readAddress } from './exchange.ts'

export interface ConnectionsAsked {
  readonly url: string
  readonly connections: number
}

export interface ConnectionsFound {
  readonly answered: number
  /** Refused, reset, or ended without an answer. */
  readonly failed: number
  /** Connected only after a second or more: the first packet was dropped, because the queue of the listener was full. */
  readonly late: number
  /** Milliseconds until the last one had its answer. */
  readonly last: number
  /** What failures said, each once. */
  readonly reasons: readonly string[]
}

/** The time after which Linux sends the first packet of a connection again. */
const RETRANSMISSION_MS = 900
const PATIENCE_MS = 15_000

const asked = JSON.parse(process.argv[2] ?? '') as ConnectionsAsked
const address = readAddress(asked.url)
const bytes = encodeRequest('POST', address, { ...callEcho.headers, Connection: 'close' }, callEcho.body)
const reasons = new Set<string>()
let [answered, failed, late] = [0, 0, 0]
const began = performance.now()

function attempt(): Promise<void> {
  return new Promise(resolve => {
    let text = ''
    const socket = connect(address.port, address.host)
    const giveUp = setTimeout(() => socket.destroy(new Error('no answer in time')), PATIENCE_MS)
    socket.setEncoding('latin1')
    socket.once('connect', () => {
      if (performance.now() - began > RETRANSMISSION_MS) late++
      socket.write(bytes)
    })
    socket.on('data', (chunk: string) => {
      text += chunk
    })
    socket.once('error', error => void reasons.add('code' in error ? String(error.code) : error.message))
    socket.once('close', () => {
      clearTimeout(giveUp)
      if (text.startsWith('HTTP/1.1 200')) answered++
      else failed++
      resolve()
    })
  })
}

await Promise.all(Array.from({ length: asked.connections }, attempt))
const found: ConnectionsFound = { answered, failed, late, last: performance.now() - began, reasons: [...reasons] }
console.log(`\n${JSON.stringify(found)}`)
process.exit(0)
