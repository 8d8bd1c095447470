// The client side of the measures: raw sockets, because at thousands a second or tens of thousands at once a client library
// would be what is measured. It reads what the servers of the benchmark send, and no more of HTTP than that.
import { connect, type Socket } from 'node:net'
import type { BenchRequest } from '../requests.ts'

export interface Address {
  readonly host: string
  readonly port: number
  readonly path: string
  /** Where the client's end is; the system chooses where it is not said. */
  readonly localAddress?: string
}

export function readAddress(url: string): Address {
  const { hostname, port, pathname } = new URL(url)
  return { host: hostname, port: Number(port), path: pathname }
}

/** The bytes of a request. */
export function encodeRequest(
  method: 'GET' | 'POST' | 'DELETE',
  { host, port, path }: Address,
  headers: BenchRequest['headers'],
  body = '',
): Buffer {
  const fields = { Host: `${host}:${port}`, ...headers, ...(body && { 'Content-Length': Buffer.byteLength(body) }) }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}

export async function openSocket({ host, port, localAddress }: Address): Promise<Socket> {
  const socket = connect({ port, host, ...(localAddress !== undefined && { localAddress }) })
  socket.setNoDelay(true)
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return socket
}

/** Sends a request that is answered with a stream; resolves once what it sent holds `sign`, and hands on all that follows. */
export async function openStream(
  address: Address,
  request: Buffer,
  sign: string,
  told: (chunk: string) => void,
): Promise<Socket> {
  const socket = await openSocket(address)
  socket.setEncoding('latin1').write(request)
  let seen = ''
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject).once('close', () => reject(new Error(`a stream ended: ${seen.slice(0, 400)}`)))
    socket.on('data', function read(chunk: string) {
      seen += chunk
      if (seen.includes('\r\n\r\n') && !seen.startsWith('HTTP/1.1 200')) reject(new Error(seen.slice(0, 400)))
      if (!seen.includes(sign)) return
      socket.off('data', read)
      resolve()
    })
  })
  socket.on('data', told)
  return socket
}

/** Does `work` so many times, a hundred at once. */
export async function repeat<Result>(times: number, work: (index: number) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const worker = async () => {
    while (next < times) {
      const index = next++
      results[index] = await work(index)
    }
  }
  await Promise.all(Array.from({ length: 100 }, worker))
  return results
}
