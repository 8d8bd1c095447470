// The users of the shop workload, as the TM Dev Lab v2 benchmark of MCP servers has them: each opens a session, calls one tool
// or lists them, and closes the session; after three calls and a list it waits 50 ms. Argument: JSON, as ShopAsked.
import type { Socket } from 'node:net'
import { percentile } from '../spread.ts'
import { encodeRequest, openSocket, readAddress } from './exchange.ts'

export interface ShopAsked {
  readonly url: string
  readonly users: number
  readonly seconds: number
  readonly warmUpSeconds: number
}

export interface ShopFound {
  /** `initialize`, `tools/call` and `tools/list` that were answered after the warm-up, for each second. */
  readonly requestsPerSecond: number
  readonly requests: number
  /** Milliseconds of a `tools/call`. */
  readonly p50: number
  readonly p99: number
}

interface Answer {
  readonly status: number
  readonly session: string | undefined
  readonly body: string
}

const HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
const PAUSE_MS = 50

const asked = JSON.parse(process.argv[2] ?? '') as ShopAsked
const address = readAddress(asked.url)
const began = performance.now()
const [warm, end] = [began + asked.warmUpSeconds * 1000, began + (asked.warmUpSeconds + asked.seconds) * 1000]
const latencies: number[] = []
let requests = 0

/** The response in these bytes; undefined while it is incomplete. */
function readAnswer(text: string): Answer | undefined {
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

/** One connection, opened again where the server closed it. */
class User {
  readonly #name: string
  #socket: Socket | undefined

  constructor(index: number) {
    this.#name = `user-${String(index + 1).padStart(5, '0')}`
  }

  async #send(request: Buffer): Promise<Answer> {
    if (this.#socket === undefined || !this.#socket.writable) {
      this.#socket = (await openSocket(address)).setEncoding('latin1')
    }
    const socket = this.#socket
    return new Promise((resolve, reject) => {
      let text = ''
      const fail = () => reject(new Error(`the server closed a connection before its answer: ${text.slice(0, 400)}`))
      socket.on('close', fail).on('data', function read(chunk: string) {
        text += chunk
        const answer = readAnswer(text)
        if (answer === undefined) return
        socket.off('data', read).off('close', fail)
        resolve(answer)
      })
      socket.write(request)
    })
  }

  /** One counted request, with its result checked by `sign`, which its body must hold. */
  async #ask(message: object, session: string | undefined, sign: string): Promise<Answer> {
    const headers = { ...HEADERS, ...(session !== undefined && { 'Mcp-Session-Id': session }) }
    const answer = await this.#send(encodeRequest('POST', address, headers, JSON.stringify(message)))
    if (answer.status !== 200 || !answer.body.includes(sign)) throw new Error(JSON.stringify(answer).slice(0, 600))
    if (performance.now() > warm && performance.now() < end) requests++
    return answer
  }

  /** A whole session for one request. */
  async #inSession(method: string, params: object, sign: string): Promise<void> {
    const clientInfo = { name: 'bench', version: '1.0.0' }
    const initialize = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }
    const { session } = await this.#ask(
      { jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize },
      undefined,
      '"serverInfo"',
    )
    const headers = { ...HEADERS, ...(session !== undefined && { 'Mcp-Session-Id': session }) }
    const initialized = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await this.#send(encodeRequest('POST', address, headers, initialized))
    const started = performance.now()
    await this.#ask({ jsonrpc: '2.0', id: 2, method, params }, session, sign)
    if (method === 'tools/call' && started > warm) latencies.push(performance.now() - started)
    if (session !== undefined) await this.#send(encodeRequest('DELETE', address, { 'Mcp-Session-Id': session }))
  }

  async shop(): Promise<void> {
    const [name, items] = [
      this.#name,
      [
        { product_id: 42, quantity: 2 },
        { product_id: 1337, quantity: 1 },
      ],
    ]
    const call = (tool: string, input: object, sign: string) =>
      this.#inSession('tools/call', { name: tool, arguments: input }, sign)
    while (performance.now() < end) {
      await call('search_products', { category: 'Electronics', min_price: 50, max_price: 500, limit: 10 }, 'SKU-')
      await call('get_user_cart', { user_id: name }, 'recent_history')
      await call('checkout', { user_id: name, items }, 'confirmed')
      await this.#inSession('tools/list', {}, '"checkout"')
      await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    }
    this.#socket?.destroy()
  }
}

await Promise.all(Array.from({ length: asked.users }, (_, index) => new User(index).shop()))
const found: ShopFound = {
  requestsPerSecond: requests / asked.seconds,
  requests,
  p50: percentile(latencies, 50),
  p99: percentile(latencies, 99),
}
console.log(`\n${JSON.stringify(found)}`)
process.exit(0)
