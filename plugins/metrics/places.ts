// Who has a connection to the port of the metrics: none without the token keeps one from a scraper. The newest gets a place,
// and the oldest that has not shown it may read goes: first of the same address, so that one address cannot empty all others.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { addressKey } from '../../core/auth.ts'

/** Bits of an IPv6 address that are one caller's: who has one address of a /64 has them all. */
const NETWORK = 64

export interface PlaceLimits {
  /** Connections at a time. */
  readonly all: number
  /** Connections of an address that have not shown they may read. */
  readonly perAddress: number
}

export interface Places {
  /** It may read: its place is its own until it closes. */
  keep(socket: Socket): void
}

export function limitPlaces(server: Server, { all, perAddress }: PlaceLimits): Places {
  /** By their caller, the oldest first. */
  const newcomers = new Map<Socket, string>()
  const readers = new Set<Socket>()

  function vacate(socket: Socket) {
    newcomers.delete(socket)
    socket.destroy()
  }

  server.on('connection', socket => {
    // A client that is gone has no address, and its socket is destroyed already.
    const { remoteAddress } = socket
    if (remoteAddress === undefined) return
    const caller = addressKey(remoteAddress, NETWORK)
    const ofCaller = [...newcomers.keys()].filter(other => newcomers.get(other) === caller)
    const isFull = newcomers.size + readers.size >= all
    const oldest = ofCaller.length >= perAddress ? ofCaller[0] : isFull ? newcomers.keys().next().value : undefined
    if (oldest) vacate(oldest)
    else if (isFull) return void socket.destroy()
    newcomers.set(socket, caller)
    socket.once('close', () => {
      newcomers.delete(socket)
      readers.delete(socket)
    })
  })

  return {
    keep(socket) {
      if (newcomers.delete(socket)) readers.add(socket)
    },
  }
}
