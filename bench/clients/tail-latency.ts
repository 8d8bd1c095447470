// Sends calls at a fixed rate, independent of previous responses (open loop), while streams are open and listeners are
// notified. Latency is measured from the scheduled time of a call, so queueing counts. Argument: TailOptions as JSON.
import type { Socket } from 'node:net'
import { callEcho, callNotify, listenForUpdates } from '../requests.ts'
import { openSession } from '../sessions.ts'
import { percentile } from '../spread.ts'
import { encodeRequest, openSocket, openStream, parseEndpoint, runConcurrently } from './raw-http.ts'

export interface TailOptions {
  readonly url: string
  /** Calls per second. */
  readonly rate: number
  readonly seconds: number
  /** Sessions with an open GET stream. */
  readonly streams: number
  /** Open `subscriptions/listen` streams, notified twice a second. */
  readonly listeners: number
}

/** Latencies in milliseconds. */
export interface TailResult {
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  /** Longest stall of this client. Latencies up to this value can be caused by the client. */
  readonly clientStall: number
  /** Number of received notifications. */
  readonly notifications: number
}

/** Enough that one is free unless the server stalls. */
const CONNECTIONS = 128
const WARM_UP_SECONDS = 2
const NOTIFY_INTERVAL_MS = 500

const options = JSON.parse(process.argv[2] ?? '') as TailOptions
const endpoint = parseEndpoint(options.url)
const call = encodeRequest('POST', endpoint, callEcho.headers, callEcho.body)

let notifications = 0
const streams = await runConcurrently(options.streams, async () => {
  const { 'Content-Type': _, ...headers } = await openSession(options.url)
  const get = encodeRequest('GET', endpoint, { ...headers, Accept: 'text/event-stream' })
  return openStream(endpoint, get, '\r\n\r\n', () => {})
})
const listen = encodeRequest('POST', endpoint, listenForUpdates.headers, listenForUpdates.body)
const listeners = await runConcurrently(options.listeners, () =>
  openStream(endpoint, listen, 'subscriptions/acknowledged', chunk => {
    if (chunk.includes('resources/updated')) notifications++
  }),
)

/** Used in rotation, because servers close connections that are idle for five seconds. */
const freeSockets: Socket[] = []
const scheduledTimes = new Map<Socket, number>()
const latencies: number[] = []
let measureFrom = Number.POSITIVE_INFINITY

function readResponses(socket: Socket): void {
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
    const head = text.indexOf('\r\n\r\n')
    const length = /content-length: (\d+)/i.exec(text)?.[1]
    if (head === -1 || length === undefined || text.length < head + 4 + Number(length)) return
    if (!text.startsWith('HTTP/1.1 200')) throw new Error(text.slice(0, 400))
    text = ''
    const scheduledTime = scheduledTimes.get(socket) ?? 0
    if (scheduledTime >= measureFrom) latencies.push(performance.now() - scheduledTime)
    freeSockets.push(socket)
  })
}
const sockets = await runConcurrently(CONNECTIONS, () => openSocket(endpoint))
for (const socket of sockets) {
  readResponses(socket)
  socket.on('close', () => {
    throw new Error('the server closed a connection')
  })
  freeSockets.push(socket)
}

const notify = () =>
  void fetch(options.url, { method: 'POST', headers: callNotify.headers, body: callNotify.body }).then(response =>
    response.text(),
  )
const notifyTimer = options.listeners > 0 ? setInterval(notify, NOTIFY_INTERVAL_MS) : undefined

async function sendCalls(): Promise<number> {
  const total = Math.round(options.rate * (options.seconds + WARM_UP_SECONDS))
  const interval = 1000 / options.rate
  const startedAt = performance.now()
  measureFrom = startedAt + WARM_UP_SECONDS * 1000
  let [sent, previous, stall] = [0, startedAt, 0]
  // Checks the time in each iteration of the event loop, because a timer would be late by a millisecond.
  while (sent < total || freeSockets.length < CONNECTIONS) {
    const now = performance.now()
    if (now > measureFrom) stall = Math.max(stall, now - previous)
    previous = now
    while (sent < total && startedAt + sent * interval <= now) {
      const socket = freeSockets.shift()
      if (socket === undefined) break
      scheduledTimes.set(socket, startedAt + sent++ * interval)
      socket.write(call)
    }
    await new Promise(resolve => setImmediate(resolve))
  }
  return stall
}

const clientStall = await sendCalls()
clearInterval(notifyTimer)
const result: TailResult = {
  p50: percentile(latencies, 50),
  p99: percentile(latencies, 99),
  p999: percentile(latencies, 99.9),
  max: percentile(latencies, 100),
  clientStall,
  notifications,
}
console.log(`\n${JSON.stringify(result)}`)
for (const socket of [...streams, ...listeners, ...sockets]) socket.destroy()
process.exit(0)
