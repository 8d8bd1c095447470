// Sends one command to a Redis server or a Sentinel over a connection of its own: costs less CPU time than a `redis-cli` process.
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'

/** Milliseconds without data, because a paused server accepts the connection and never responds. */
const LIMIT = 120_000

/**
 * Sends words without spaces, as an inline command. Resolves with the reply, one entry per value and line as `redis-cli` prints it;
 * rejects without a reply.
 */
export async function sendToRedis({ port }: { readonly port: number }, ...words: readonly string[]): Promise<string[]> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.setTimeout(LIMIT, () => socket.destroy(new Error(`Redis at port ${port} does not respond`)))
  // Redis responds to the command, then reads the end and closes.
  socket.end(`${words.join(' ')}\r\n`)
  const reply = await text(socket)
  if (reply === '') throw new Error(`Redis at port ${port} closed the connection`)
  const lines = reply.split(/\r?\n/).filter(line => !/^[*$]-?\d+$/.test(line))
  return lines.map(line => line.replace(/^[+:-]/, '')).filter(line => line !== '')
}
