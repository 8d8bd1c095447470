// A name server that returns the same addresses for every name, as Docker does for replicas of a service.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'

export interface NameServer {
  readonly port: number
  /** Gives others from now on. */
  give(addresses: readonly string[]): void
  /** How often it was asked. */
  readonly asked: number
  close(): void
}

/** The end of the first question: its name is a row of labels, then come its type and class. */
function questionEnd(query: Buffer): number {
  let at = 12
  while (query[at] !== 0 && at < query.length) at += (query[at] ?? 0) + 1
  return at + 5
}

const answerOf = (address: string): Buffer =>
  Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...address.split('.').map(Number)])

export async function startNameServer(first: readonly string[]): Promise<NameServer> {
  const socket = createSocket('udp4')
  let addresses = first
  let asked = 0
  socket.on('message', (query, { address, port }) => {
    asked += 1
    const head = Buffer.from([query[0] ?? 0, query[1] ?? 0, 0x81, 0x80, 0, 1, 0, addresses.length, 0, 0, 0, 0])
    const question = query.subarray(12, questionEnd(query))
    socket.send(Buffer.concat([head, question, ...addresses.map(answerOf)]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    port: socket.address().port,
    give: next => {
      addresses = next
    },
    get asked() {
      return asked
    },
    close: () => void socket.close(),
  }
}
