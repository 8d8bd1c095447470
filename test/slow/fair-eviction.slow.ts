// Tests session eviction: one client opens 2,000 sessions next to ten owners with a few sessions each.
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { definePlugin, type Services } from '../../core/internal.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const GREEDY = 2_000
const AT_ONCE = 20
const OWNERS = Array.from({ length: 10 }, (_, index) => `127.0.0.${index + 2}`)
const QUIET = 3
const MAX_IDLE = 200

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

const agents = new Map<string, Agent>()
let url: string
let host: Services
let log: ReadonlyArray<{ readonly message: string | undefined; readonly [field: string]: unknown }>
let lastId = 0

/** A POST from an address of this machine; all of 127.0.0.0/8 are. */
function post(localAddress: string, body: object, headers: Record<string, string> = {}): Promise<Answer> {
  const agent = agents.get(localAddress) ?? new Agent({ keepAlive: true })
  agents.set(localAddress, agent)
  const all = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers }
  return new Promise((resolve, reject) => {
    request(url, { method: 'POST', headers: all, localAddress, agent }, res => {
      res.resume().once('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers }))
    })
      .on('error', reject)
      .end(JSON.stringify({ jsonrpc: '2.0', id: ++lastId, ...body }))
  })
}

async function open(address: string): Promise<string> {
  const clientInfo = { name: 'one of many', version: '1.0.0' }
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
  const { status, headers } = await post(address, { method: 'initialize', params })
  expect(status).to.equal(200)
  return String(headers['mcp-session-id'])
}

const ping = (address: string, id: string) =>
  post(address, { method: 'ping' }, { 'Mcp-Session-Id': id, 'MCP-Protocol-Version': '2025-11-25' })

/** How many of these sessions answer. Each one asked was used just now. */
async function countAlive(sessions: ReadonlyArray<readonly [string, string]>): Promise<number> {
  const answers = await Promise.all(sessions.map(([address, id]) => ping(address, id)))
  expect(answers.every(({ status }) => status === 200 || status === 404)).to.equal(true)
  return answers.filter(({ status }) => status === 200).length
}

describe('eviction of idle sessions: one owner with 2,000 sessions, ten with a few', () => {
  before(async () => {
    const look = definePlugin<Record<never, never>>({
      options: { type: 'object', additionalProperties: false, properties: {} },
      setup(given) {
        given.onReady(() => {
          const services = given.services
          host = services
        })
      },
    })
    const started = await startHost({
      sessions: { maxIdle: MAX_IDLE, maxPerOwner: GREEDY },
      toolsets: { all: [defineTool({ name: 'echo', handler: () => 'hi' })] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, look: look() },
    })
    url = started.url
    log = started.log
  })
  after(async () => {
    for (const agent of agents.values()) agent.destroy()
    await stopHosts()
  })

  it('evicts the oldest sessions of the owner with the most', async () => {
    const quiet: Array<readonly [string, string]> = []
    // Theirs are the oldest of all: they would go first if age alone decided.
    for (const address of OWNERS) {
      for (let count = 0; count < QUIET; count++) quiet.push([address, await open(address)])
    }
    const greedy: Array<readonly [string, string]> = []
    const openMany = async () => {
      while (greedy.length < GREEDY) {
        const place = greedy.push(['127.0.0.1', '']) - 1
        greedy[place] = ['127.0.0.1', await open('127.0.0.1')]
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, openMany))

    const kept = host.sessions.count
    const quietAlive = await countAlive(quiet)
    const newest = await countAlive(greedy.slice(-100))
    const oldest = await countAlive(greedy.slice(0, 100))
    const evictions = log.filter(({ message }) => message?.startsWith('ended idle sessions'))
    expect([kept, quietAlive, newest, oldest]).to.deep.equal([MAX_IDLE, quiet.length, 100, 0])
    expect(evictions[0]).to.include({ level: 'warn', maxIdle: MAX_IDLE })
    expect(evictions.length).to.be.below(GREEDY / 100)
  })
})
