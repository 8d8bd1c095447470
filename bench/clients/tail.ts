// Sends calls at a fixed rate whatever becomes of those before (an open loop), beside streams that are open and listeners
// that are told, and says how long each call took from the moment at which it was due: what waits in a queue counts.
// Argument: JSON, as TailAsked.
import type { Socket } from 'node:net'
import { callEcho, callTell, listenToNews } from '../requests.ts'
import { openSession } from '../sessions.ts'
import { percentile } from '../spread.ts'
import { encodeRequest, openSocket, openStream, readAddress, repeat } from './exchange.ts'

export interface TailAsked {
  readonly url: string
  /** Calls a second. */
  readonly rate: number
  readonly seconds: number
  /** Sessions whose GET stream is open. */
  readonly streams: number
  /** Open subscriptions/listen, told twice a second. */
  readonly listeners: number
}

/** Milliseconds. */
export interface TailFound {
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  /** The longest that this client itself was held up: below it no figure says anything of the server. */
  readonly clientStall: number
  /** How many times listeners were told. */
  readonly told: number
}

/** Enough that a free one is there unless the server stands still. */
const CONNECTIONS = 128
/** Not counted: both sides warm up. */
const WARM_UP_SECONDS = 2
const TELL_EVERY_MS = 500

const asked = JSON.parse(process.argv[2] ?? '') as TailAsked
const address = readAddress(asked.url)
const call = encodeRequest('POST', address, callEcho.headers, callEcho.body)

let told = 0
const opened = await repeat(asked.streams, async () => {
  const { 'Content-Type': _, ...headers } = await openSession(asked.url)
  const get = encodeRequest('GET', address, { ...headers, Accept: 'text/event-stream' })
  return openStream(address, get, '\r\n\r\n', () => {})
})
const listen = encodeRequest('POST', address, listenToNews.headers, listenToNews.body)
const listening = await repeat(asked.listeners, () =>
  openStream(address, listen, 'subscriptions/acknowledged', chunk => {
    if (chunk.includes('resources/updated')) told++
  }),
)

/** Taken in turn: one that nobody uses for five seconds would be closed by its server. */
const free: Socket[] = []
const dueOf = new Map<Socket, number>()
const latencies: number[] = []
let warmUntil = Number.POSITIVE_INFINITY

/** One answer is one chunk, or ends with the chunk that completes its length. */
function watchAnswers(socket: Socket): void {
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
    const head = text.indexOf('\r\n\r\n')
    const length = /content-length: (\d+)/i.exec(text)?.[1]
    if (head === -1 || length === undefined || text.length < head + 4 + Number(length)) return
    if (!text.startsWith('HTTP/1.1 200')) throw new Error(text.slice(0, 400))
    text = ''
    const due = dueOf.get(socket) ?? 0
    if (due >= warmUntil) latencies.push(performance.now() - due)
    free.push(socket)
  })
}
const sockets = await repeat(CONNECTIONS, () => openSocket(address))
for (const socket of sockets) {
  watchAnswers(socket)
  socket.on('close', () => {
    throw new Error('the server closed a connection of calls')
  })
  free.push(socket)
}

const tell = () =>
  void fetch(asked.url, { method: 'POST', headers: callTell.headers, body: callTell.body }).then(answer =>
    answer.text(),
  )
const telling = asked.listeners > 0 ? setInterval(tell, TELL_EVERY_MS) : undefined

async function sendAll(): Promise<number> {
  const total = Math.round(asked.rate * (asked.seconds + WARM_UP_SECONDS))
  const interval = 1000 / asked.rate
  const began = performance.now()
  warmUntil = began + WARM_UP_SECONDS * 1000
  let [sent, before, stall] = [0, began, 0]
  // A turn of the loop for each look at the clock: a timer would be late by a millisecond.
  while (sent < total || free.length < CONNECTIONS) {
    const now = performance.now()
    if (now > warmUntil) stall = Math.max(stall, now - before)
    before = now
    while (sent < total && began + sent * interval <= now) {
      const socket = free.shift()
      if (socket === undefined) break
      dueOf.set(socket, began + sent++ * interval)
      socket.write(call)
    }
    await new Promise(resolve => setImmediate(resolve))
  }
  return stall
}

const clientStall = await sendAll()
clearInterval(telling)
const found: TailFound = {
  p50: percentile(latencies, 50),
  p99: percentile(latencies, 99),
  p999: percentile(latencies, 99.9),
  max: percentile(latencies, 100),
  clientStall,
  told,
}
console.log(`\n${JSON.stringify(found)}`)
for (const socket of [...opened, ...listening, ...sockets]) socket.destroy()
process.exit(0)
