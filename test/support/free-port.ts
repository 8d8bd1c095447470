// A port for what must know its own before it listens: a name with the port in it, or the same port at each start.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below those that systems give to whoever asks for any: between two starts of a server nobody else's connection has its port.
 * A Redis Cluster also listens 10,000 above, which is below them as well.
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

/** One that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (let tries = TRIES; tries > 0; tries--) {
    const port = randomInt(LOWEST, HIGHEST)
    if (await isFree(port)) return port
  }
  throw new Error(`none of ${TRIES} ports between ${LOWEST} and ${HIGHEST} is free`)
}
