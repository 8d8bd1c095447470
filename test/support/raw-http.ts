// HTTP over a bare socket, for requests that fetch cannot send.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { RpcMessage } from './rpc.ts'

export interface RawAnswer {
  readonly status: number
  /** By lower-case name; the last header of a name wins. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
  /** The body as JSON; undefined if it is not JSON. */
  readonly message: RpcMessage
  /** All bytes until the connection closed, as text. */
  readonly text: string
}

/** A connected socket to the host at `url`. A reset counts as an end. */
export async function openSocket(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) })
  await once(socket, 'connect')
  socket.on('error', () => undefined)
  return socket
}

/** All data until the connection closes. */
export async function readToEnd(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  socket.on('data', chunk => chunks.push(chunk))
  if (!socket.closed) await once(socket, 'close')
  return Buffer.concat(chunks).toString('utf8')
}

const asJson = (text: string): RpcMessage => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function parseAnswer(text: string): RawAnswer {
  const split = text.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = text.slice(0, split).split('\r\n')
  const headers = new Map(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  const body = text.slice(split + 4)
  return { status: Number(statusLine.split(' ')[1]), headers, body, message: asJson(body), text }
}

/** Sends these bytes and reads until the host closes. If the host would keep the connection open, send `Connection: close`. */
export async function sendRaw(url: string, ...parts: Array<string | Uint8Array>): Promise<RawAnswer> {
  const socket = await openSocket(url)
  const answer = readToEnd(socket)
  for (const part of parts) socket.write(part)
  return parseAnswer(await answer)
}

export interface HeadOptions {
  readonly method?: string
  readonly path?: string
  /** Adds or replaces headers of a JSON POST; a list sends the header once for each value. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** The head of an acceptable request, with changes. */
export function requestHead(url: string, { method = 'POST', path = '/', headers = {} }: HeadOptions = {}): string {
  const all: Record<string, string | readonly string[] | undefined> = {
    Host: new URL(url).host,
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    Connection: 'close',
    ...headers,
  }
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map(one => `${name}: ${one}`),
  )
  return `${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
}

/** A whole request: head, correct Content-Length and body. */
export function requestBytes(url: string, body: string | Uint8Array, options: HeadOptions = {}): Buffer {
  const bytes = Buffer.from(body)
  const headers = { 'Content-Length': String(bytes.length), ...options.headers }
  return Buffer.concat([Buffer.from(requestHead(url, { ...options, headers }), 'latin1'), bytes])
}
