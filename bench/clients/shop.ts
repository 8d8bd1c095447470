// The users of the shop workload (TM Dev Lab v2 benchmark of MCP servers). Each user repeats four requests, three
// `tools/call` and a `tools/list`, each in a new session, and then waits 50 ms. Argument: ShopOptions as JSON.
import type { Socket } from 'node:net'
import { percentile } from '../spread.ts'
import { encodeRequest, openSocket, parseEndpoint } from './raw-http.ts'

export interface ShopOptions {
  readonly url: string
  readonly users: number
  readonly seconds: number
  readonly warmUpSeconds: number
}

export interface ShopResult {
  /** Responses to `initialize`, `tools/call` and `tools/list` per second, after the warm-up. */
  readonly requestsPerSecond: number
  readonly requests: number
  /** Latency of a `tools/call` in milliseconds. */
  readonly p50: number
  readonly p99: number
}

interface HttpResponse {
  readonly status: number
  readonly session: string | undefined
  readonly body: string
}

const HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
const PAUSE_MS = 50

const options = JSON.parse(process.argv[2] ?? '') as ShopOptions
const endpoint = parseEndpoint(options.url)
const measureFrom = performance.now() + options.warmUpSeconds * 1000
const endAt = measureFrom + options.seconds * 1000
const latencies: number[] = []
let requests = 0

/** Undefined if the response is incomplete. */
function parseResponse(text: string): HttpResponse | undefined {
  const head = text.indexOf('\r\n\r\n')
  if (head === -1) return undefined
  const fields = text.slice(0, head)
  const body = text.slice(head + 4)
  const status = Number(fields.slice(9, 12))
  const [, length] = /\r\ncontent-length: *(\d+)/i.exec(fields) ?? []
  const [, session] = /\r\nmcp-session-id: *(\S+)/i.exec(fields) ?? []
  const complete = length === undefined ? status === 204 || body.endsWith('0\r\n\r\n') : body.length >= Number(length)
  return complete ? { status, session, body } : undefined
}

/** Has one connection, which is opened again if the server closed it. */
class User {
  readonly #name: string
  #socket: Socket | undefined

  constructor(index: number) {
    this.#name = `user-${String(index + 1).padStart(5, '0')}`
  }

  async #send(request: Buffer): Promise<HttpResponse> {
    if (this.#socket === undefined || !this.#socket.writable) {
      this.#socket = (await openSocket(endpoint)).setEncoding('latin1')
    }
    const socket = this.#socket
    return new Promise((resolve, reject) => {
      let text = ''
      const fail = () => reject(new Error(`the server closed a connection before its response: ${text.slice(0, 400)}`))
      socket.on('close', fail).on('data', function read(chunk: string) {
        text += chunk
        const response = parseResponse(text)
        if (response === undefined) return
        socket.off('data', read).off('close', fail)
        resolve(response)
      })
      socket.write(request)
    })
  }

  /** Sends a counted request. Throws if the response does not contain `expected`. */
  async #request(message: object, session: string | undefined, expected: string): Promise<HttpResponse> {
    const headers = { ...HEADERS, ...(session !== undefined && { 'Mcp-Session-Id': session }) }
    const response = await this.#send(encodeRequest('POST', endpoint, headers, JSON.stringify(message)))
    if (response.status !== 200 || !response.body.includes(expected))
      throw new Error(JSON.stringify(response).slice(0, 600))
    if (performance.now() > measureFrom && performance.now() < endAt) requests++
    return response
  }

  /** Sends one request in a new session. */
  async #requestInSession(method: string, params: object, expected: string): Promise<void> {
    const clientInfo = { name: 'bench', version: '1.0.0' }
    const initialize = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }
    const { session } = await this.#request(
      { jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize },
      undefined,
      '"serverInfo"',
    )
    const headers = { ...HEADERS, ...(session !== undefined && { 'Mcp-Session-Id': session }) }
    const initialized = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await this.#send(encodeRequest('POST', endpoint, headers, initialized))
    const startedAt = performance.now()
    await this.#request({ jsonrpc: '2.0', id: 2, method, params }, session, expected)
    if (method === 'tools/call' && startedAt > measureFrom) latencies.push(performance.now() - startedAt)
    if (session !== undefined) await this.#send(encodeRequest('DELETE', endpoint, { 'Mcp-Session-Id': session }))
  }

  async run(): Promise<void> {
    const name = this.#name
    const items = [
      { product_id: 42, quantity: 2 },
      { product_id: 1337, quantity: 1 },
    ]
    const call = (tool: string, input: object, expected: string) =>
      this.#requestInSession('tools/call', { name: tool, arguments: input }, expected)
    while (performance.now() < endAt) {
      await call('search_products', { category: 'Electronics', min_price: 50, max_price: 500, limit: 10 }, 'SKU-')
      await call('get_user_cart', { user_id: name }, 'recent_history')
      await call('checkout', { user_id: name, items }, 'confirmed')
      await this.#requestInSession('tools/list', {}, '"checkout"')
      await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    }
    this.#socket?.destroy()
  }
}

await Promise.all(Array.from({ length: options.users }, (_, index) => new User(index).run()))
const result: ShopResult = {
  requestsPerSecond: requests / options.seconds,
  requests,
  p50: percentile(latencies, 50),
  p99: percentile(latencies, 99),
}
console.log(`\n${JSON.stringify(result)}`)
process.exit(0)
