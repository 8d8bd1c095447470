// Sends one command to a Redis server or a Sentinel over a connection of its own: much faster than a `redis-cli` process.
import { createClient, ErrorReply } from '@redis/client'

/** Milliseconds for a connection, because a paused server accepts it and never responds. */
const LIMIT = 20_000

/** The reply, one entry per value and line as `redis-cli` prints it; rejects if the server cannot be reached. */
export async function sendToRedis({ url }: { readonly url: string }, ...command: readonly string[]): Promise<string[]> {
  const socket = { reconnectStrategy: false, connectTimeout: LIMIT, socketTimeout: LIMIT } as const
  const client = createClient({ url, RESP: 2, disableClientInfo: true, socket })
  // The command rejects, too.
  client.on('error', () => undefined)
  try {
    await client.connect()
    const reply: unknown = await client.sendCommand(command)
    return linesOf(reply)
  } catch (error) {
    if (error instanceof ErrorReply) return linesOf(error.message)
    throw error
  } finally {
    if (client.isOpen) client.destroy()
  }
}

const linesOf = (reply: unknown): string[] =>
  [reply]
    .flat(Number.POSITIVE_INFINITY)
    .flatMap(value => String(value).split(/\r?\n/))
    .filter(line => line !== '')
