// Tests `mcp-host proxy` with servers that are down, restart or lose sessions, and truncated lines. Counts requests.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { expect } from 'chai'
import { createHost } from '../../core/create-host.ts'
import type { Host } from '../../core/host.ts'
import { defineTool } from '../../core/index.ts'
import { removeFolders } from '../config/folder.ts'
import { editorOf, PAGE, page } from '../fixtures/line-toolset.ts'
import { initialize, meta, QUIET, type Received, textOf } from '../plugins/transport-stdio/stdio-client.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { connectionsClosed } from '../support/fetch-connections.ts'
import { freePort } from '../support/free-port.ts'
import { createGate } from '../support/gate.ts'
import { caseCount } from '../support/thorough.ts'
import { endRelays, openProxy, type ProxyClient, QUICK } from './proxy-client.ts'

/** Calls of `slow` that have begun, and whether they may end. */
let [ran, mayEnd] = [0, false]
const tools = [
  defineTool({ name: 'quick', handler: () => 'quick' }),
  defineTool({
    name: 'slow',
    async handler(_args, { progress, signal }) {
      ran++
      for (let step = 1; !mayEnd && !signal.aborted; step++) {
        progress(step)
        // The pace of the tool: there are steps before, while and after a line is cut.
        await pause(20)
      }
      return 'slow'
    },
  }),
  editorOf(PAGE),
  page,
]

const hosts = new Set<Host>()
/** A host that begins anew each time: its sessions are in its memory, its keys are its own. */
async function listen(port: number, sse = false): Promise<Host> {
  const host = await createHost(
    {
      server: { name: 'faults', version: '1' },
      http: { port },
      toolsets: { all: tools },
      routes: { '/mcp': { toolsets: 'all' } },
      plugins: sse ? { 'transport-sse': {} } : { 'transport-streamable': {} },
    },
    { log: QUIET },
  )
  await host.listen()
  hosts.add(host)
  return host
}
async function stop(host: Host) {
  hosts.delete(host)
  const port = Number(new URL(host.url).port)
  await host.close({ grace: 0 })
  await connectionsClosed(port)
}

/** Resolves when a connection to this port was refused. */
async function refusalAt(port: number): Promise<void> {
  const refused = createGate()
  const note = (event: unknown) => {
    if ((event as { connectParams: { port: string } }).connectParams.port === String(port)) refused.open()
  }
  subscribe('undici:client:connectError', note)
  await refused.opened
  unsubscribe('undici:client:connectError', note)
}

const tokenOf = ({ params }: Received) => params?.['progressToken']

/** Begins calls of `slow`, with the ids from 1 on. What it returns resolves when one more step has come of each that has no answer. */
function beginSlow(client: ProxyClient, calls: number): () => Promise<unknown> {
  ;[ran, mayEnd] = [0, false]
  const ids = Array.from({ length: calls }, (_, index) => index + 1)
  for (const id of ids) {
    client.say({ id, method: 'tools/call', params: { name: 'slow', _meta: { progressToken: id } } })
  }
  return () => {
    const from = client.seen.length
    const isHeard = (id: number) =>
      client.seen.some((seen, at) => seen.id === id || (at >= from && tokenOf(seen) === id))
    const quiet = () => ids.filter(id => !isHeard(id))
    return eventually('no call that is quiet', quiet, ({ length }) => length === 0)
  }
}

const call = (client: ProxyClient, id: number, name = 'quick', more: object = {}) =>
  client.request(id, 'tools/call', { name, ...more })

/** A server of SDK 1 that forgets its sessions when it is told to. */
async function startSdk(port: number): Promise<Server> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const server = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id']
    let transport = typeof id === 'string' ? sessions.get(id) : undefined
    if (!transport) {
      const made = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized: session => void sessions.set(session, made),
      })
      const mcp = new McpServer({ name: 'sdk', version: '1' })
      mcp.registerTool('quick', {}, () => ({ content: [{ type: 'text', text: 'quick' }] }))
      await mcp.connect(made as Parameters<McpServer['connect']>[0])
      transport = made
    }
    await transport.handleRequest(request, response)
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return server
}
async function stopServer(server: Server) {
  const { port } = server.address() as AddressInfo
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
  await connectionsClosed(port)
}

describe('mcp-host proxy: faults', () => {
  after(async () => {
    await endRelays()
    await Promise.all([...hosts].map(host => host.close({ grace: 0 })))
    await removeFolders()
  })

  it('responds with errors while the server is down, and continues when it is up', async () => {
    const port = await freePort()
    const client = await openProxy(`http://127.0.0.1:${port}/mcp`)
    const refused = await Promise.all([1, 2, 3].map(id => call(client, id, 'quick', meta())))
    for (const { error } of refused) {
      expect(error?.message).to.match(/ECONNREFUSED/)
      expect(error?.data).to.include({ reason: 'unreachable', retryable: true })
    }
    const host = await listen(port)
    expect(textOf(await call(client, 4, 'quick', meta()))).to.equal('quick')
    expect((await initialize(client)).result).to.have.property('serverInfo')
    expect(textOf(await call(client, 5))).to.equal('quick')
    await stop(host)
  })

  it('waits for a server that starts soon', async () => {
    const port = await freePort()
    const client = await openProxy(`http://127.0.0.1:${port}/mcp`, {}, { ...QUICK, retryTimeout: 5_000 })
    const refused = refusalAt(port)
    const waiting = initialize(client)
    await refused
    const host = await listen(port)
    expect((await waiting).result).to.have.property('serverInfo')
    await stop(host)
  })

  it('opens a new session after the server restarted: calls continue, subscriptions are restored, lists are read again', async () => {
    const port = await freePort()
    let host = await listen(port)
    const client = await openProxy(`http://127.0.0.1:${port}/mcp`, {}, { ...QUICK, retryTimeout: 5_000 })
    await initialize(client)
    await client.request(1, 'resources/subscribe', { uri: PAGE })
    for (let round = 1; round <= caseCount(5, 2); round++) {
      await stop(host)
      host = await listen(port)
      // Several at once find the session lost.
      const answers = await Promise.all([1, 2, 3, 4].map(part => call(client, 100 * round + part)))
      expect(answers.map(answer => answer.error?.message ?? textOf(answer))).to.deep.equal(Array(4).fill('quick'))
      await client.until(({ method }) => method === 'notifications/tools/list_changed')
      await call(client, 100 * round + 10, 'edit')
      await client.until(({ method }) => method === 'notifications/resources/updated')
    }
    expect(client.seen.filter(({ id }) => id === 0)).to.deep.equal([])
    await stop(host)
  })

  it('opens a new session with servers that respond 400 for an unknown session', async () => {
    const port = await freePort()
    let server = await startSdk(port)
    const client = await openProxy(`http://127.0.0.1:${port}/mcp`, {}, { ...QUICK, retryTimeout: 5_000 })
    await initialize(client)
    for (let round = 1; round <= caseCount(3, 2); round++) {
      await stopServer(server)
      server = await startSdk(port)
      expect(textOf(await call(client, round))).to.equal('quick')
    }
    await stopServer(server)
  })

  it('reports calls that ran when the session was lost, and runs none twice', async () => {
    const port = await freePort()
    const host = await listen(port)
    const client = await openProxy(`http://127.0.0.1:${port}/mcp`, {}, { ...QUICK, retryTimeout: 5_000 })
    await initialize(client)
    await beginSlow(client, 5)()
    await stop(host)
    const again = await listen(port)
    for (let id = 1; id <= 5; id++) {
      const { error } = await client.until(message => message.id === id)
      expect(error?.message).to.match(/node was lost|was carried out is not known/)
    }
    expect(textOf(await call(client, 9))).to.equal('quick')
    expect(ran).to.equal(5)
    await stop(again)
  })

  it('resumes streams: each call gets one response, each progress value arrives once', async () => {
    const host = await listen(await freePort())
    const proxy = await startCuttingProxy(host.url)
    const client = await openProxy(`${proxy.url}/mcp`, {}, { ...QUICK, retryTimeout: 5_000, resumeTimeout: 30_000 })
    await initialize(client)
    const CALLS = caseCount(20, 6)
    const furtherSteps = beginSlow(client, CALLS)
    await furtherSteps()
    for (let cut = 0; cut < 2; cut++) {
      proxy.cutAll()
      await furtherSteps()
    }
    proxy.cutAll()
    mayEnd = true
    let [answered, unknown] = [0, 0]
    for (let id = 1; id <= CALLS; id++) {
      const answer = await client.until(message => message.id === id)
      if (textOf(answer) === 'slow') answered++
      else unknown++
    }
    const steps = client.seen.filter(({ method }) => method === 'notifications/progress')
    const distinct = new Set(steps.map(({ params }) => `${params?.['progressToken']} ${params?.['progress']}`))
    expect([answered + unknown, ran, steps.length - distinct.size]).to.deep.equal([CALLS, CALLS, 0])
    for (let id = 1; id <= CALLS; id++) {
      const heard = steps.filter(step => tokenOf(step) === id)
      // In order, and none is left out.
      expect(heard.map(({ params }) => params?.['progress'])).to.deep.equal(heard.map((_, index) => index + 1))
    }
    expect(proxy.cuts).to.be.greaterThan(CALLS)
    // What was on its way before its answer began cannot be had again; all others are.
    expect(answered).to.be.at.least(CALLS - 2)
    expect(textOf(await call(client, 99))).to.equal('quick')
    await proxy.stop()
    await stop(host)
  })

  it('restores a subscription whose stream was cut, and notifies that lists can have changed', async () => {
    const host = await listen(await freePort())
    const proxy = await startCuttingProxy(host.url)
    const client = await openProxy(`${proxy.url}/mcp`, {}, { ...QUICK, retryTimeout: 5_000 })
    client.say({
      id: 'l',
      method: 'subscriptions/listen',
      params: { ...meta(), notifications: { toolsListChanged: true, resourceSubscriptions: [PAGE] } },
    })
    await client.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    for (let cut = 0; cut < caseCount(3, 2); cut++) {
      proxy.cutAll()
      await client.until(({ method }) => method === 'notifications/tools/list_changed')
      await client.until(({ method }) => method === 'notifications/resources/updated')
      await call(client, cut, 'edit', meta())
      await client.until(({ method }) => method === 'notifications/resources/updated')
    }
    expect(client.seen).to.deep.equal([])
    await proxy.stop()
    await stop(host)
  })

  it('opens the stream of a legacy server again, with a new session', async () => {
    const port = await freePort()
    let host = await listen(port, true)
    const client = await openProxy(`http://127.0.0.1:${port}/mcp/sse`, {}, { ...QUICK, retryTimeout: 5_000 })
    await initialize(client, '2024-11-05')
    expect(textOf(await call(client, 1))).to.equal('quick')
    for (let round = 1; round <= caseCount(3, 2); round++) {
      await stop(host)
      host = await listen(port, true)
      await client.until(({ method }) => method === 'notifications/tools/list_changed')
      expect(textOf(await call(client, 10 + round))).to.equal('quick')
    }
    await stop(host)
  })
})
