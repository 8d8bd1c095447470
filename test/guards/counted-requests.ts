// The counted requests, and the thread that sends them (load-thread.ts).
import { once } from 'node:events'
import { extname } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { modernRequest } from '../support/rpc.ts'
import { initializeMessage } from '../support/session-client.ts'

/** In a request, where each connection puts a number of its own. */
export const NUMBER = '"the number"'

export interface Asking {
  readonly port: number
  /** The bytes of the whole HTTP request. */
  readonly request: string
  readonly connections: number
  /** On each connection. */
  readonly times: number
  /** What it must be answered with. */
  readonly status: number
}

export type Asked = { readonly answer: string | undefined } | { readonly failure: string }

type Headers = Readonly<Record<string, string | undefined>>

/** The text of a POST. */
function post(body: string, headers: Headers): string {
  const all: Headers = {
    Host: '127.0.0.1',
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...headers,
    // A number has four digits.
    'Content-Length': String(Buffer.byteLength(body.replace(NUMBER, '1000'))),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST / HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

const ECHO = { name: 'echo', arguments: { message: 'The quick brown fox jumps over the lazy dog.' } }

/** A request of 2026-07-28. */
function ofLatest(method: string, params: Record<string, unknown>, more: Headers = {}): string {
  const { headers, body } = modernRequest(method, params, { id: NUMBER.slice(1, -1) })
  return post(body, { ...headers, ...more })
}

export const callEcho = (headers?: Headers): string => ofLatest('tools/call', ECHO, headers)
export const listTools = (headers?: Headers): string => ofLatest('tools/list', {}, headers)

export interface Asker {
  /** Resolves once all was answered, and what the host does after its answers is done. */
  ask(request: string, times: number, connections?: number): Promise<string>
  /** Opens a session of 2025-11-25 and returns the request that calls `echo` in it. */
  openSession(headers?: Headers): Promise<string>
  end(): Promise<unknown>
}

/** A thread that asks the host at `url`. */
export function startAsking(url: string): Asker {
  const worker = new Worker(new URL(`./load-thread${extname(import.meta.url)}`, import.meta.url))
  const port = Number(new URL(url).port)

  async function ask(request: string, times: number, connections = 1, status = 200): Promise<string> {
    worker.postMessage({ port, request, connections, times, status } satisfies Asking)
    const [asked] = (await once(worker, 'message')) as [Asked]
    if ('failure' in asked) throw new Error(asked.failure)
    // Responses are closed, and observers told, after the client has its answer.
    for (let index = 0; index < 3; index++) await turn()
    return asked.answer ?? ''
  }

  return {
    ask,
    async openSession(headers) {
      const answer = await ask(post(JSON.stringify({ jsonrpc: '2.0', ...initializeMessage() }), { ...headers }), 1)
      const [, id] = /mcp-session-id: (\S+)/i.exec(answer) ?? []
      if (id === undefined) throw new Error(`no session was opened: ${answer}`)
      const all = { ...headers, 'MCP-Protocol-Version': '2025-11-25', 'Mcp-Session-Id': id }
      await ask(post(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }), all), 1, 1, 202)
      const message = { jsonrpc: '2.0', id: NUMBER.slice(1, -1), method: 'tools/call', params: ECHO }
      return post(JSON.stringify(message), all)
    },
    end: () => worker.terminate(),
  }
}
