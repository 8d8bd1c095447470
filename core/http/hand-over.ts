// Leaves a port to other processes without a caller noticing: nothing new is accepted, what comes on open connections is
// answered, and each of them is closed by its answer or when it has idled.
import type { Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** Milliseconds: connections that are open for longer are closed all the same. */
const LONGEST = 10_000
/** Node closes an idle connection at its keep-alive time, or a little later. */
const MARGIN = 1_500
/** How often connections are looked at, milliseconds. */
const SWEEP_INTERVAL = 50
/** The port is closed by then, however busy this process is, milliseconds. What comes meanwhile is answered. */
const LONGEST_WATCH = 3_000
/** How often such a moment is looked for, milliseconds. */
const WATCH_INTERVAL = 5
/** In a turn of the event loop that is over so soon hardly anything happened, milliseconds. */
const IDLE_TURN = 0.1
/** So many of them, one after the other: what one does may make a connection that the next finds. */
const IDLE_TURNS = 2

export interface Port {
  /** Accepts nothing new. Resolves once that is so; what then comes on open connections is answered with `Connection: close`. */
  leave(): Promise<void>
  /** Leaves, and resolves when each connection was closed or has idled for its keep-alive time, after 10 s at the latest. */
  handOver(): Promise<void>
  /** Leaves, and closes connections as they become idle, until the returned function is called. */
  sweep(): () => void
  /**
   * Resolves when no connection is open, at the latest `patience` milliseconds after no answer is on its way any more, which is
   * waited for `sending` milliseconds at most.
   */
  whenEmpty(patience: number, sending: number): Promise<void>
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
 * Connections that the system has accepted, and this process has not yet, are cut when the port closes. So `close` is
 * called at the end of turns of the event loop that found none and were over at once, and nothing is done in between: what
 * is left of the gap are microseconds, unless the system interrupts this process there. Resolves when it was called.
 */
function closeWhenIdle(server: Server, close: () => void): Promise<void> {
  return new Promise(resolve => {
    const end = performance.now() + LONGEST_WATCH
    let came = false
    let idle = 0
    let began = 0
    const note = () => {
      came = true
    }
    server.on('connection', note)

    function begin() {
      came = false
      began = performance.now()
      setImmediate(look)
    }

    function look() {
      const now = performance.now()
      idle = !came && now - began < IDLE_TURN ? idle + 1 : 0
      if (idle === IDLE_TURNS || now > end) {
        close()
        server.off('connection', note)
        resolve()
      } else if (idle > 0) begin()
      // Whoever has waited is not soon interrupted: what follows is short.
      else setTimeout(begin, WATCH_INTERVAL)
    }
    setTimeout(begin, WATCH_INTERVAL)
  })
}

/** What Node keeps on a socket: the response that is being written. Not documented, the same since Node 0.12. */
interface Answering extends Socket {
  readonly _httpMessage?: ServerResponse | null
}

/** Whether its reader has yet to take what the answer was ended with. Node counts such a connection as idle. */
const isSending = ({ _httpMessage: response }: Answering): boolean =>
  response?.writableEnded === true && !response.writableFinished

/** The connections of a server. */
function createConnections(server: Server) {
  const open = new Set<Answering>()
  const add = (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  }
  // Of HTTPS both the one below, from which a request is yet to be expected, and the one that carries it.
  server.on('connection', add).on('secureConnection', add)
  return {
    /** Says to whoever is being answered that the connection closes with it. */
    announceClose() {
      for (const { _httpMessage: response } of open) {
        if (response && !response.headersSent) response.setHeader('Connection', 'close')
      }
    },
    isSending: () => [...open].some(isSending),
    /** Resolves when no answer is on its way, at the latest after `patience` milliseconds. */
    async whenSent(patience: number) {
      const end = performance.now() + patience
      while (this.isSending() && performance.now() < end) await pause(SWEEP_INTERVAL)
    },
    /** Resolves when each has been closed, or has idled for `patience` milliseconds, at the latest after the longest time. */
    async whenIdle(patience: number) {
      const end = performance.now() + LONGEST
      const idleSince = new Map<Answering, number>()
      const hasIdled = (socket: Answering, now: number) => {
        if (socket._httpMessage) idleSince.delete(socket)
        else if (!idleSince.has(socket)) idleSince.set(socket, now)
        return now - (idleSince.get(socket) ?? now) >= patience
      }
      for (let now = performance.now(); now < end; now = performance.now()) {
        if ([...open].filter(socket => !hasIdled(socket, now)).length === 0) return
        await pause(SWEEP_INTERVAL)
      }
    },
  }
}

/** Emitted by a server before it closes its port. */
export const PORT_CLOSES = 'portCloses'

/** The port of a server, and how it is left. All of it may be done twice. */
export function createPort(server: Server, keepAliveTimeout: number): Port {
  const connections = createConnections(server)
  let leaving: Promise<void> | undefined
  let closed: () => void = () => {}
  let empty: Promise<void> = Promise.resolve()

  async function closePort() {
    if (!server.listening) return
    empty = new Promise<void>(resolve => {
      closed = resolve
    })
    server.emit(PORT_CLOSES)
    // Compiled now, not then.
    new NetServer().close(() => {})
    // An HTTP server's own `close` cuts idle connections, on which a request may be under way.
    await closeWhenIdle(server, () => NetServer.prototype.close.call(server, closed))
    // Not before: a connection that closes is followed by a new one, and one of those would be under way at that moment.
    server.prependListener('request', (_request, response) => void response.setHeader('Connection', 'close'))
    connections.announceClose()
  }

  const leave = () => {
    leaving ??= closePort()
    return leaving
  }

  return {
    leave,
    async handOver() {
      await leave()
      await connections.whenIdle(keepAliveTimeout + MARGIN)
    },
    sweep() {
      let sweeper: NodeJS.Timeout | undefined
      let over = false
      const closeIdle = () => {
        if (!connections.isSending()) server.closeIdleConnections()
      }
      void leave().then(() => {
        closeIdle()
        if (!over) sweeper = setInterval(closeIdle, SWEEP_INTERVAL)
      })
      return () => {
        over = true
        clearInterval(sweeper)
      }
    },
    async whenEmpty(patience, sending) {
      await connections.whenSent(sending)
      await within(patience, empty)
    },
  }
}
