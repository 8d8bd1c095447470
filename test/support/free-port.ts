// Free ports for servers that must know their port before they listen, or that restart on the same port.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Below the range that systems assign automatically, so that no other connection takes the port between two starts.
 * A Redis Cluster also listens on a port 10,000 higher, which is below that range as well, and above these ports.
 */
const LOWEST = 10_100
const HIGHEST = 20_000
const TRIES = 100

/** A file per port with the id of the process that uses it: test suites that run at the same time never share a port. */
const RESERVED = join(tmpdir(), 'mcp-host-test-ports')

/** Reserves a port until this process ends. False if another process, or an earlier call, has it. */
function reserve(port: number): boolean {
  const file = join(RESERVED, String(port))
  try {
    mkdirSync(RESERVED, { recursive: true })
    writeFileSync(file, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    removeIfOwnerEnded(file)
    return false
  }
}

/** A process that ended leaves its file. The port is then free for a later call. */
function removeIfOwnerEnded(file: string): void {
  try {
    process.kill(Number(readFileSync(file, 'utf8')), 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') rmSync(file, { force: true })
  }
}

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

/** A port that was free a moment ago, and that no other test gets while this process runs. */
export async function freePort(): Promise<number> {
  for (let tries = TRIES; tries > 0; tries--) {
    const port = randomInt(LOWEST, HIGHEST)
    if (reserve(port) && (await isFree(port))) return port
  }
  throw new Error(`none of ${TRIES} ports between ${LOWEST} and ${HIGHEST} is free`)
}
