// Opens listeners, has the host tell them of changes, and says when the last of them knew. Argument: JSON, as ListenersAsked.
import { processTree, readCpuSeconds } from '../process-cost.ts'
import { callTell, listenToNews } from '../requests.ts'
import { encodeRequest, openStream, readAddress, repeat } from './exchange.ts'

export interface ListenersAsked {
  readonly url: string
  /** Of the server, whose CPU time is read. */
  readonly pid: number
  readonly listeners: number
  readonly changes: number
}

export interface ListenersFound {
  /** Milliseconds from the call that makes the change until half, and until all listeners had read of it; for each change. */
  readonly half: readonly number[]
  readonly last: readonly number[]
  /** CPU time that the server used for one change, milliseconds, over all of them. */
  readonly serverCpu: number
}

const asked = JSON.parse(process.argv[2] ?? '') as ListenersAsked
const address = readAddress(asked.url)
const listen = encodeRequest('POST', address, listenToNews.headers, listenToNews.body)

/** A host serves so many subscriptions to one anonymous address: each hundred comes from another address of the loopback. */
const PER_ADDRESS = 100
const addressOf = (index: number) => ({ ...address, localAddress: `127.0.1.${1 + Math.floor(index / PER_ADDRESS)}` })

let onTold = () => {}
const sockets = await repeat(asked.listeners, index =>
  openStream(addressOf(index), listen, 'subscriptions/acknowledged', chunk => {
    if (chunk.includes('resources/updated')) onTold()
  }),
)

/** Makes one change; milliseconds until half and all knew. */
function change(): Promise<{ half: number; last: number }> {
  return new Promise(resolve => {
    let told = 0
    let half = 0
    const began = performance.now()
    onTold = () => {
      told++
      if (told === Math.ceil(asked.listeners / 2)) half = performance.now() - began
      if (told === asked.listeners) resolve({ half, last: performance.now() - began })
    }
    void fetch(asked.url, { method: 'POST', headers: callTell.headers, body: callTell.body }).then(answer =>
      answer.text(),
    )
  })
}

const readCpu = () => processTree(asked.pid).reduce((sum, pid) => sum + readCpuSeconds(pid), 0)

await change()
const before = readCpu()
const changes: { half: number; last: number }[] = []
for (let index = 0; index < asked.changes; index++) changes.push(await change())
const serverCpu = ((readCpu() - before) * 1000) / asked.changes

const found: ListenersFound = {
  half: changes.map(({ half }) => half),
  last: changes.map(({ last }) => last),
  serverCpu,
}
console.log(`\n${JSON.stringify(found)}`)
for (const socket of sockets) socket.destroy()
process.exit(0)
