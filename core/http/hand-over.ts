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
/** The port is closed by then, however many connections still come, in turns of the event loop. */
const MOST_TURNS = 200
/** A turn that takes longer may have connections behind it, milliseconds. */
const SHORT_TURN = 1

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
 * Connections that the system accepted, and this process has not yet, are cut when the port closes. So it is closed in a
 * turn of the event loop that brought none and was over at once.
 */
async function quietTurn(server: Server) {
  let came = true
  const note = () => {
    came = true
  }
  server.on('connection', note)
  let began = performance.now()
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    await nextTurn()
    const now = performance.now()
    // The first is what is left of the turn that this began in.
    if (turn > 0 && !came && now - began < SHORT_TURN) break
    came = false
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
    await quietTurn(server)
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
