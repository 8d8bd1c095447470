// An HTTP server on a free loopback port that keeps every request it got, and that can be told to fail the next ones.
// The fake authorization and resource servers, and the bad servers, are made of it.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface RecordedRequest {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** The body read as a form. */
  readonly form: URLSearchParams
  /** What was answered; undefined: nothing (yet). */
  status: number | undefined
}

export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** An object is sent as JSON, a text as it is. */
  readonly body?: unknown
  /** Writes the body itself, and may leave it open. */
  readonly stream?: (response: ServerResponse) => void
}

export type Handler = (request: RecordedRequest) => Reply | Promise<Reply>

/** What happens to a request instead of its answer. */
export interface Fault extends Partial<Reply> {
  /** Waits for this before it goes on. */
  readonly hold?: Promise<unknown>
  /**
   * Closes the connection: when the headers are there, when the body is, or when the request was carried out and only
   * its answer gets lost.
   */
  readonly reset?: 'before-body' | 'after-body' | 'after-processing'
}

export interface RecordingServer {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly requests: RecordedRequest[]
  /** How often a path was asked for, with any method or this one; without a path, all requests. */
  count(path?: string, method?: string): number
  /** The requests for a path. */
  to(path: string): RecordedRequest[]
  /** Resolves when a path was asked for this often in all. */
  reached(path: string, times?: number): Promise<void>
  /** The next `times` requests for a path meet this; without `status` and `reset` they are answered after `hold`. */
  failNext(path: string, fault: Fault, times?: number): void
  close(): Promise<void>
}

const running = new Set<RecordingServer>()

async function read(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

function send(response: ServerResponse, reply: Reply) {
  const json = typeof reply.body === 'object' && reply.body !== null
  const headers = { ...(json && { 'Content-Type': 'application/json' }), ...reply.headers } as Record<string, string>
  response.writeHead(reply.status, headers)
  if (reply.stream) reply.stream(response)
  else response.end(json ? JSON.stringify(reply.body) : reply.body === undefined ? undefined : String(reply.body))
}

function toRecord(message: IncomingMessage, body: string): RecordedRequest {
  const { pathname, searchParams } = new URL(message.url ?? '/', 'http://localhost')
  const { method = 'GET', headers } = message
  const form = new URLSearchParams(body)
  return { method, path: pathname, query: searchParams, headers, body, form, status: undefined }
}

/** Starts one. A handler that throws is answered with 500 and its message. */
export async function startRecordingServer(handler: Handler): Promise<RecordingServer> {
  const faults = new Map<string, Fault[]>()
  const arrivals = new EventTarget()
  const server = createServer((message, response) => void answer(message, response).catch(() => response.destroy()))

  async function answer(message: IncomingMessage, response: ServerResponse) {
    const early = toRecord(message, '')
    const fault = faults.get(early.path)?.shift()
    if (fault?.reset === 'before-body') {
      note(early)
      return void message.socket.destroy()
    }
    const request = toRecord(message, await read(message))
    note(request)
    await fault?.hold
    if (fault?.reset === 'after-body') return void message.socket.destroy()
    const reply = fault?.status === undefined ? await carryOut(request) : { ...fault, status: fault.status }
    if (fault?.reset === 'after-processing') return void message.socket.destroy()
    request.status = reply.status
    send(response, reply)
  }

  function note(request: RecordedRequest) {
    recording.requests.push(request)
    arrivals.dispatchEvent(new Event('arrival'))
  }

  async function carryOut(request: RecordedRequest): Promise<Reply> {
    try {
      return await handler(request)
    } catch (thrown) {
      return { status: 500, body: `the fake server failed: ${thrown instanceof Error ? thrown.stack : thrown}` }
    }
  }

  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const recording: RecordingServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    count: (path, method) =>
      recording.requests.filter(
        request => (path === undefined || request.path === path) && (method === undefined || request.method === method),
      ).length,
    to: path => recording.requests.filter(request => request.path === path),
    async reached(path, times = 1) {
      while (recording.count(path) < times) await once(arrivals, 'arrival')
    },
    failNext(path, fault, times = 1) {
      faults.set(path, [...(faults.get(path) ?? []), ...Array<Fault>(times).fill(fault)])
    },
    async close() {
      running.delete(recording)
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
  running.add(recording)
  return recording
}

/** Stops every server that this file started, the fakes too: call it in `after` or `afterEach`. */
export async function stopServers(): Promise<void> {
  await Promise.all([...running].map(server => server.close()))
}
