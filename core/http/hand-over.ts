// Leaves a port to other processes without a caller noticing: nothing new is accepted, what comes on open connections is
// answered, and each of them is closed by its answer or when it has idled.
import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Milliseconds: connections that clients keep idle for longer are closed all the same. */
const LONGEST = 10_000
/** Node closes an idle connection at its keep-alive time, or a little later. */
const MARGIN = 1_500
/** How often connections that became idle are looked for, milliseconds. */
const SWEEP_INTERVAL = 50
/** The port is closed by then, however many connections still come, milliseconds. */
const LONGEST_WATCH = 100
/** In a turn of the event loop that is over so soon hardly anything happened, milliseconds. */
const IDLE_TURN = 0.1
/** So many of them, one after the other: what one does may make a connection that the next finds. */
const IDLE_TURNS = 2

export interface Port {
  /** Accepts nothing new. Resolves once that is so; what then comes on open connections is answered with `Connection: close`. */
  leave(): Promise<void>
  /** Leaves, and resolves when no connection is open, at the latest when all that were idle have had their keep-alive time. */
  handOver(): Promise<void>
  /** Leaves, and closes connections as they become idle, until the returned function is called. */
  sweep(): () => void
  /** Resolves when no connection is open, at the latest after `patience` milliseconds. */
  whenEmpty(patience: number): Promise<void>
}

/** Resolves with `awaited`, at the latest after `patience` milliseconds. */
export async function within(patience: number, awaited: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, patience)
  })
  await Promise.race([awaited, late])
  clearTimeout(timer)
}

/**
 * Connections that the system has accepted, and this process has not yet, are cut when the port closes. So it is closed
 * at the end of turns of the event loop that found none and were over at once.
 */
async function idleTurns(server: Server) {
  let came = false
  const note = () => {
    came = true
  }
  server.on('connection', note)
  // What is left of the turn that this began in.
  await nextTurn()
  const start = performance.now()
  let idle = 0
  for (let began = start; idle < IDLE_TURNS && began - start < LONGEST_WATCH; ) {
    came = false
    await nextTurn()
    const now = performance.now()
    idle = !came && now - began < IDLE_TURN ? idle + 1 : 0
    began = now
  }
  server.off('connection', note)
}

/** The port of a server, and how it is left. All of it may be done twice. */
export function createPort(server: Server, keepAliveTimeout: number): Port {
  let leaving: Promise<void> | undefined
  let empty: Promise<void> = Promise.resolve()

  async function closePort() {
    if (!server.listening) return
    server.prependListener('request', (_request, response) => void response.setHeader('Connection', 'close'))
    await idleTurns(server)
    empty = new Promise<void>(resolve => {
      // An HTTP server's own `close` cuts idle connections, on which a request may be under way.
      NetServer.prototype.close.call(server, () => resolve())
    })
  }

  const leave = () => {
    leaving ??= closePort()
    return leaving
  }

  return {
    leave,
    async handOver() {
      await leave()
      await within(Math.min(LONGEST, keepAliveTimeout + MARGIN), empty)
    },
    sweep() {
      let sweeper: NodeJS.Timeout | undefined
      let over = false
      void leave().then(() => {
        server.closeIdleConnections()
        if (!over) sweeper = setInterval(() => server.closeIdleConnections(), SWEEP_INTERVAL)
      })
      return () => {
        over = true
        clearInterval(sweeper)
      }
    },
    whenEmpty: patience => within(patience, empty),
  }
}
