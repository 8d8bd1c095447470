// Counts the promises, timers, listeners and similar objects of a request, and those that remain on its connection, in
// a separate process. Prints one line of JSON.
import './counters.ts'
import { subscribe } from 'node:diagnostics_channel'
import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { type Made, takeMade } from './counters.ts'
import { startGuarded, WORKS, type Work } from './guarded-host.ts'

export interface MadePerRequest {
  /** Before the first request. */
  readonly atStart: Made
  /** By the first request of its kind. */
  readonly first: Made
  /** By each that follows: the fewest of several chunks, for timers of the process add to them. */
  readonly each: Made
  /** By all that follow. */
  readonly compiled: number
  /** Listeners on the connection, before and after those. */
  readonly left: { readonly before: number; readonly after: number }
}

const CHUNK = 50
const CHUNKS = 6

let connection: Socket | undefined
subscribe('http.server.request.start', message => {
  connection = (message as { readonly socket: Socket }).socket
})

const listenersOf = (emitter: EventEmitter) =>
  emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0)
const listenersLeft = () => (connection ? listenersOf(connection) : 0)

/** Whole: what a chunk makes of its own is less than one for each. */
function fewest(chunks: readonly Made[]): Made {
  const [{ ...each } = takeMade()] = chunks
  for (const name of Object.keys(each) as Array<keyof Made>) {
    each[name] = Math.floor(Math.min(...chunks.map(made => made[name])) / CHUNK)
  }
  return each
}

const { work, close } = await startGuarded()
const atStart = takeMade()

async function count(what: Work): Promise<MadePerRequest> {
  takeMade()
  await work(what, 1)
  const first = takeMade()
  const before = listenersLeft()
  const chunks: Made[] = []
  while (chunks.length < CHUNKS) {
    takeMade()
    await work(what, CHUNK)
    chunks.push(takeMade())
  }
  const compiled = chunks.reduce((sum, { compilations }) => sum + compilations, 0)
  return { atStart, first, each: fewest(chunks), compiled, left: { before, after: listenersLeft() } }
}

const counted: Partial<Record<Work, MadePerRequest>> = {}
for (const what of WORKS) counted[what] = await count(what)
console.log(JSON.stringify(counted))
await close()
