// Tests session expiry with thousands of clients that never end their sessions: memory and handles return to the
// initial level.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { expect } from 'chai'
import { compiledFile } from '../support/compiled.ts'
import type { Holding } from '../support/soak-host.ts'
import { exchange, type StreamExchange } from '../support/stream-exchange.ts'
import { openStreamingSession } from '../support/streaming-session.ts'

/** Clients of each kind, in each half. */
const EACH = 60
const AT_ONCE = 24
/** What a session may leave behind, bytes: less than any closure, timer or map entry of its own. */
const LEFT_PER_SESSION = 400

async function vanish(...streams: Array<Promise<StreamExchange>>) {
  for (const stream of await Promise.all(streams)) {
    await stream.next()
    stream.drop()
  }
}

/** Sends a request and is gone before its answer. */
function vanishAtOnce(url: string, headers: Record<string, string>, body?: string) {
  return new Promise<void>(resolve => {
    const sent = request(url, { method: body === undefined ? 'GET' : 'POST', headers, agent: false })
    sent.on('error', () => resolve())
    sent.on('response', () => sent.destroy()).on('close', resolve)
    sent.end(body, () => sent.destroy())
  })
}

const sseOf = (url: string) => exchange(`${url}/sse`, { headers: { Accept: 'text/event-stream' } })

/** Opens a session over SSE and calls a tool; its answers flow on the stream, which goes with the client. */
async function callOverSse(url: string, tool: string) {
  const stream = await sseOf(url)
  const endpoint = new URL(String((await stream.next())?.data), url).href
  const tell = async (message: object) => {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message })
    await (await exchange(endpoint, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })).whole
  }
  const capabilities = { elicitation: {} }
  const params = { protocolVersion: '2024-11-05', capabilities, clientInfo: { name: 'gone', version: '1' } }
  await tell({ id: 1, method: 'initialize', params })
  await stream.next()
  await tell({ id: 2, method: 'tools/call', params: { name: tool, _meta: { progressToken: 1 } } })
  stream.drop()
}

const open = (url: string) => openStreamingSession(url, { capabilities: { elicitation: {} } })
const STREAM = { Accept: 'text/event-stream' }

const KINDS: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  'opens a session': open,
  'opens its stream': async url => vanish((await open(url)).get()),
  'opens three streams and watches a resource': async url => {
    const session = await open(url)
    await (await session.request('resources/subscribe', { uri: 'soak://page' })).whole
    await vanish(session.get(), session.get(), session.get())
  },
  'calls a tool that talks': async url => vanish((await open(url)).call('talk')),
  'calls a tool that asks': async url => vanish((await open(url)).call('ask')),
  'comes back to a call, and goes again': async url => {
    const session = await open(url)
    const stream = await session.call('talk')
    const first = await stream.next()
    stream.drop()
    await vanish(session.get(first?.id))
  },
  'goes before a call is answered': async url => {
    const { id } = await open(url)
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'wait' } })
    const headers = { ...STREAM, Accept: '*/*', 'Content-Type': 'application/json', 'Mcp-Session-Id': id }
    await vanishAtOnce(url, headers, body)
  },
  'goes before its stream is open': async url =>
    vanishAtOnce(url, { ...STREAM, 'Mcp-Session-Id': (await open(url)).id }),
  'opens a session over SSE': async url => vanish(sseOf(url)),
  'goes before its session over SSE is there': url => vanishAtOnce(`${url}/sse`, STREAM),
  'calls a tool that talks over SSE': url => callOverSse(url, 'talk'),
  'calls a tool that asks over SSE': url => callOverSse(url, 'ask'),
}

/** Every kind of client by turns, some at once. */
async function soak(url: string) {
  const kinds = Object.values(KINDS)
  const clients = Array.from({ length: EACH * kinds.length }, (_, index) => kinds[index % kinds.length])
  const next = async () => {
    for (let client = clients.pop(); client; client = clients.pop()) await client(url)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
}

describe('idle session expiry: clients that never end their sessions', () => {
  let child: ChildProcess
  let exited: Promise<unknown[]>
  let url: string
  before(async () => {
    const args = ['--expose-gc', compiledFile('test/support/soak-host.ts')]
    child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    exited = once(child, 'exit')
    const [told] = (await once(child, 'message')) as [{ url: string }]
    url = told.url
  })
  after(() => void child.kill('SIGKILL'))

  async function measure(url: string): Promise<Holding> {
    await soak(url)
    const answer = once(child, 'message')
    child.send('measure')
    const [holding] = await answer
    return holding as Holding
  }

  it('leaves no session, timer, handle or memory behind', async () => {
    const warm = await measure(url)
    const [first, second] = [await measure(url), await measure(url)]
    const clients = EACH * Object.keys(KINDS).length
    const left = second.heap - first.heap
    console.log(`      ${clients} clients in each half;`, {
      warm: warm.heap,
      first,
      second,
      leftPerSession: left / clients,
    })
    expect([first.sessions, second.sessions, first.subscribers, second.subscribers]).to.deep.equal([0, 0, 0, 0])
    expect(second.opened - first.opened).to.be.at.least(clients * 0.8)
    expect(second.resources).to.deep.equal(first.resources)
    expect(second.complaints).to.deep.equal([])
    expect(left).to.be.below(LEFT_PER_SESSION * clients)
    expect(second.heap / first.heap).to.be.below(1.05)
  })

  it('lets the host close', async () => {
    child.send('close')
    expect(await exited).to.deep.equal([0, null])
  })
})
