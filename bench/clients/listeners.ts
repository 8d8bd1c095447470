// Opens listeners and measures how long their notifications take. Argument: ListenersOptions as JSON.
import { listProcessTree, readCpuSeconds } from '../process-stats.ts'
import { callNotify, listenForUpdates } from '../requests.ts'
import { encodeRequest, openStream, parseEndpoint, runConcurrently } from './raw-http.ts'

export interface ListenersOptions {
  readonly url: string
  /** Process id of the server. */
  readonly pid: number
  readonly listeners: number
  readonly changes: number
}

export interface ListenersResult {
  /** For each change, milliseconds from the call until half of the listeners, and all of them, were notified. */
  readonly half: readonly number[]
  readonly all: readonly number[]
  /** CPU time of the server per change, in milliseconds. */
  readonly serverCpu: number
}

const options = JSON.parse(process.argv[2] ?? '') as ListenersOptions
const endpoint = parseEndpoint(options.url)
const listen = encodeRequest('POST', endpoint, listenForUpdates.headers, listenForUpdates.body)

/** The host limits the subscriptions per client address. */
const PER_ADDRESS = 100
const endpointFor = (index: number) => ({ ...endpoint, localAddress: `127.0.1.${1 + Math.floor(index / PER_ADDRESS)}` })

let onNotification = () => {}
const sockets = await runConcurrently(options.listeners, index =>
  openStream(endpointFor(index), listen, 'subscriptions/acknowledged', chunk => {
    if (chunk.includes('resources/updated')) onNotification()
  }),
)

interface Change {
  readonly half: number
  readonly all: number
}

function measureChange(): Promise<Change> {
  return new Promise(resolve => {
    let notified = 0
    let half = 0
    const startedAt = performance.now()
    onNotification = () => {
      notified++
      if (notified === Math.ceil(options.listeners / 2)) half = performance.now() - startedAt
      if (notified === options.listeners) resolve({ half, all: performance.now() - startedAt })
    }
    void fetch(options.url, { method: 'POST', headers: callNotify.headers, body: callNotify.body }).then(response =>
      response.text(),
    )
  })
}

const readCpu = () => listProcessTree(options.pid).reduce((sum, pid) => sum + readCpuSeconds(pid), 0)

// The first change is a warm-up.
await measureChange()
const before = readCpu()
const changes: Change[] = []
for (let index = 0; index < options.changes; index++) changes.push(await measureChange())
const serverCpu = ((readCpu() - before) * 1000) / options.changes

const result: ListenersResult = {
  half: changes.map(({ half }) => half),
  all: changes.map(({ all }) => all),
  serverCpu,
}
console.log(`\n${JSON.stringify(result)}`)
for (const socket of sockets) socket.destroy()
process.exit(0)
