// Free ports for servers that must know their port before they listen, or that restart on the same port.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below the range that systems assign automatically, so that no other connection takes the port between two starts.
 * A Redis Cluster also listens on a port 10,000 higher, which is below that range as well.
 */
const LOWEST = 10_100
const HIGHEST = 22_000
const TRIES = 100

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (let tries = TRIES; tries > 0; tries--) {
    const port = randomInt(LOWEST, HIGHEST)
    if (await isFree(port)) return port
  }
  throw new Error(`none of ${TRIES} ports between ${LOWEST} and ${HIGHEST} is free`)
}
