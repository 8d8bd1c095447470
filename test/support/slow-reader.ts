// Reads a socket in steps: some bytes at a time, nothing in between.
import type { Socket } from 'node:net'

export interface SlowReader {
  /** Bytes read so far. */
  readonly got: number
  /** Reads at least this many more bytes, then stops. */
  read(bytes: number): Promise<void>
}

export function readSlowly(socket: Socket): SlowReader {
  let got = 0
  let until = 0
  let enough: (() => void) | undefined
  socket.pause()
  socket.on('data', chunk => {
    got += chunk.length
    if (got < until) return
    socket.pause()
    enough?.()
  })
  socket.once('close', () => enough?.())
  return {
    get got() {
      return got
    },
    read(bytes) {
      until = got + bytes
      return new Promise(resolve => {
        enough = resolve
        if (socket.destroyed) resolve()
        else socket.resume()
      })
    },
  }
}
