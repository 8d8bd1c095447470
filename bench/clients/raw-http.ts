// HTTP on raw sockets, because the cost of a client library would distort the results of thousands of requests.
// Supports only the parts of HTTP that the servers of the benchmark use.
import { connect, type Socket } from 'node:net'
import type { BenchRequest } from '../requests.ts'

export interface Endpoint {
  readonly host: string
  readonly port: number
  readonly path: string
  /** Address of the client. Default: chosen by the system. */
  readonly localAddress?: string
}

export function parseEndpoint(url: string): Endpoint {
  const { hostname, port, pathname } = new URL(url)
  return { host: hostname, port: Number(port), path: pathname }
}

export function encodeRequest(
  method: 'GET' | 'POST' | 'DELETE',
  { host, port, path }: Endpoint,
  headers: BenchRequest['headers'],
  body = '',
): Buffer {
  const fields = { Host: `${host}:${port}`, ...headers, ...(body && { 'Content-Length': Buffer.byteLength(body) }) }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}

export async function openSocket({ host, port, localAddress }: Endpoint): Promise<Socket> {
  const socket = connect({ port, host, ...(localAddress !== undefined && { localAddress }) })
  socket.setNoDelay(true)
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return socket
}

/** Opens a streamed response. Resolves once the response contains `marker`. Later chunks are passed to `onChunk`. */
export async function openStream(
  endpoint: Endpoint,
  request: Buffer,
  marker: string,
  onChunk: (chunk: string) => void,
): Promise<Socket> {
  const socket = await openSocket(endpoint)
  socket.setEncoding('latin1').write(request)
  let received = ''
  await new Promise<void>((resolve, reject) => {
    socket
      .once('error', reject)
      .once('close', () => reject(new Error(`the server closed a stream: ${received.slice(0, 400)}`)))
    socket.on('data', function read(chunk: string) {
      received += chunk
      if (received.includes('\r\n\r\n') && !received.startsWith('HTTP/1.1 200'))
        reject(new Error(received.slice(0, 400)))
      if (!received.includes(marker)) return
      socket.off('data', read)
      resolve()
    })
  })
  socket.on('data', onChunk)
  return socket
}

/** Runs a task `count` times, up to 100 at once. */
export async function runConcurrently<Result>(
  count: number,
  task: (index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const worker = async () => {
    while (next < count) {
      const index = next++
      results[index] = await task(index)
    }
  }
  await Promise.all(Array.from({ length: 100 }, worker))
  return results
}
