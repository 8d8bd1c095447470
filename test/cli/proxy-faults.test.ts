// `mcp-host proxy` where things break: servers that are down, restart or forget, and lines that are cut. With counts.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcp } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { expect } from 'chai'
import { createHost, type Host } from '../../core/create-host.ts'
import { defineTool } from '../../core/index.ts'
import { removeFolders } from '../config/folder.ts'
import { initialize, meta, QUIET, textOf } from '../plugins/transport-stdio/stdio-client.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { endRelays, openProxy, type ProxyClient, QUICK, useOwnHome } from './proxy-client.ts'

const PAGE = 'test://page'
let ran = 0
const tools = [
  defineTool({ name: 'quick', handler: () => 'quick' }),
  defineTool({
    name: 'slow',
    input: { type: 'object', properties: { steps: { type: 'integer' } } } as const,
    async handler({ steps = 6 }, { progress }) {
      ran++
      for (let step = 1; step <= steps; step++) {
        progress(step, steps)
        await pause(20)
      }
      return 'slow'
    },
  }),
  defineTool({
    name: 'edit',
    handler(_args, { host }) {
      host.resourceUpdated(PAGE)
      return 'edited'
    },
  }),
]

async function freePort(): Promise<number> {
  const server = createTcp().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const hosts = new Set<Host>()
/** A host that begins anew each time: its sessions are in its memory, its keys are its own. */
async function listen(port: number, sse = false): Promise<Host> {
  const { defineResource } = await import('../../core/index.ts')
  const host = await createHost(
    {
      server: { name: 'faults', version: '1' },
      http: { port },
      toolsets: { all: [...tools, defineResource({ name: 'page', uri: PAGE, handler: () => 'text' })] },
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
  await host.close({ grace: 0 })
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
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}

describe('mcp-host proxy, where things break', function () {
  this.timeout(60_000)
  before(useOwnHome)
  after(async () => {
    await endRelays()
    await Promise.all([...hosts].map(host => host.close({ grace: 0 })))
    await removeFolders()
  })

  it('answers errors while the server is down, and goes on when it is there', async () => {
    const port = await freePort()
    const client = await openProxy(`http://127.0.0.1:${port}/mcp`)
    let errors = 0
    for (let id = 1; id <= 3; id++) {
      const { error } = await call(client, id, 'quick', meta())
      expect(error?.message).to.match(/cannot be reached \(ECONNREFUSED\); check the address and that the server runs/)
      expect(error?.data).to.include({ reason: 'unreachable', retryable: true })
      errors++
    }
    const host = await listen(port)
    expect(textOf(await call(client, 4, 'quick', meta()))).to.equal('quick')
    expect((await initialize(client)).result).to.have.property('serverInfo')
    expect(textOf(await call(client, 5))).to.equal('quick')
    console.log(`      ${errors} errors while it was down, 0 after`)
    await stop(host)
  })

  it('waits for a server that starts in a moment', async () => {
    const port = await freePort()
    const client = await openProxy(`http://127.0.0.1:${port}/mcp`, {}, { ...QUICK, patience: 5_000 })
    const waiting = initialize(client)
    await pause(200)
    const host = await listen(port)
    expect((await waiting).result).to.have.property('serverInfo')
    await stop(host)
  })

  it('opens the session again where the server restarted: calls go on, subscriptions hold, lists are looked at again', async () => {
    const port = await freePort()
    let host = await listen(port)
    const client = await openProxy(`http://127.0.0.1:${port}/mcp`, {}, { ...QUICK, patience: 5_000 })
    await initialize(client)
    await client.request(1, 'resources/subscribe', { uri: PAGE })
    let [answered, failed] = [0, 0]
    for (let round = 1; round <= 5; round++) {
      await stop(host)
      host = await listen(port)
      // Several at once find the session lost.
      const answers = await Promise.all([1, 2, 3, 4].map(part => call(client, 100 * round + part)))
      for (const answer of answers) {
        if (textOf(answer) === 'quick') answered++
        else failed++
      }
      await client.until(({ method }) => method === 'notifications/tools/list_changed')
      await call(client, 100 * round + 10, 'edit')
      await client.until(({ method }) => method === 'notifications/resources/updated')
    }
    console.log(`      5 restarts: ${answered} of 20 calls answered, ${failed} failed; 5 of 5 subscriptions held`)
    expect([answered, failed]).to.deep.equal([20, 0])
    expect(client.seen.filter(({ id }) => id === 0)).to.deep.equal([])
    await stop(host)
  })

  it('does so with servers that say 400 of a session that they do not know', async () => {
    const port = await freePort()
    let server = await startSdk(port)
    const client = await openProxy(`http://127.0.0.1:${port}/mcp`, {}, { ...QUICK, patience: 5_000 })
    await initialize(client)
    let answered = 0
    for (let round = 1; round <= 3; round++) {
      await stopServer(server)
      server = await startSdk(port)
      if (textOf(await call(client, round)) === 'quick') answered++
    }
    console.log(`      ${answered} of 3 restarts of an SDK 1 server not noticed by the client`)
    expect(answered).to.equal(3)
    await stopServer(server)
  })

  it('tells the calls that ran when the session was lost, and never runs one twice', async () => {
    const port = await freePort()
    const host = await listen(port)
    const client = await openProxy(`http://127.0.0.1:${port}/mcp`, {}, { ...QUICK, patience: 5_000 })
    await initialize(client)
    ran = 0
    for (let id = 1; id <= 5; id++)
      client.say({
        id,
        method: 'tools/call',
        params: { name: 'slow', arguments: { steps: 500 }, _meta: { progressToken: id } },
      })
    for (let id = 1; id <= 5; id++)
      await client.until(
        ({ method, params }) => method === 'notifications/progress' && params?.['progressToken'] === id,
      )
    // Nothing is said any more, as when it is killed.
    const cut = new Promise<void>(resolve => setImmediate(resolve))
    await cut
    await stop(host)
    const again = await listen(port)
    let told = 0
    for (let id = 1; id <= 5; id++) {
      const { error } = await client.until(message => message.id === id)
      expect(error?.message).to.match(/node that ran this was lost|was carried out is not known/)
      told++
    }
    expect(textOf(await call(client, 9))).to.equal('quick')
    console.log(`      5 calls ran: ${told} told, ${ran} begun`)
    expect(ran).to.equal(5)
    await stop(again)
  })

  it('has streams again from where they were cut: every call is answered once, every step comes once', async () => {
    const host = await listen(await freePort())
    const proxy = await startCuttingProxy(host.url)
    const client = await openProxy(`${proxy.url}/mcp`, {}, { ...QUICK, patience: 5_000 })
    await initialize(client)
    ran = 0
    const CALLS = 20
    for (let id = 1; id <= CALLS; id++) {
      client.say({
        id,
        method: 'tools/call',
        params: { name: 'slow', arguments: { steps: 40 }, _meta: { progressToken: id } },
      })
    }
    for (let id = 1; id <= CALLS; id++) await client.until(({ params }) => params?.['progressToken'] === id)
    for (let cut = 0; cut < 5; cut++) {
      await pause(120)
      proxy.cutAll()
    }
    let [answered, unknown] = [0, 0]
    for (let id = 1; id <= CALLS; id++) {
      const answer = await client.until(message => message.id === id)
      if (textOf(answer) === 'slow') answered++
      else unknown++
    }
    const steps = client.seen.filter(({ method }) => method === 'notifications/progress')
    const distinct = new Set(steps.map(({ params }) => `${params?.['progressToken']} ${params?.['progress']}`))
    console.log(
      `      ${proxy.cuts} cuts: ${answered} of ${CALLS} answered, ${unknown} told that nobody knows, ${ran} begun; ${steps.length} of ${CALLS * 39} further steps, ${steps.length - distinct.size} twice`,
    )
    expect([answered + unknown, ran <= CALLS, steps.length - distinct.size]).to.deep.equal([CALLS, true, 0])
    expect(proxy.cuts).to.be.greaterThan(CALLS)
    // What was on its way before its answer began cannot be had again; all others are.
    expect(answered).to.be.at.least(CALLS - 2)
    expect(textOf(await call(client, 99))).to.equal('quick')
    await proxy.stop()
    await stop(host)
  })

  it('asks for a subscription again whose stream was cut, and says that lists may be others', async () => {
    const host = await listen(await freePort())
    const proxy = await startCuttingProxy(host.url)
    const client = await openProxy(`${proxy.url}/mcp`, {}, { ...QUICK, patience: 5_000 })
    client.say({
      id: 'l',
      method: 'subscriptions/listen',
      params: { ...meta(), notifications: { toolsListChanged: true, resourceSubscriptions: [PAGE] } },
    })
    await client.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    for (let cut = 0; cut < 3; cut++) {
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

  it('opens the stream of an older server again, with the session on it', async () => {
    const port = await freePort()
    let host = await listen(port, true)
    const client = await openProxy(`http://127.0.0.1:${port}/mcp/sse`, {}, { ...QUICK, patience: 5_000 })
    await initialize(client, '2024-11-05')
    expect(textOf(await call(client, 1))).to.equal('quick')
    let answered = 0
    for (let round = 1; round <= 3; round++) {
      await stop(host)
      host = await listen(port, true)
      await client.until(({ method }) => method === 'notifications/tools/list_changed')
      if (textOf(await call(client, 10 + round)) === 'quick') answered++
    }
    console.log(`      3 restarts of an older server: ${answered} of 3 calls answered after`)
    expect(answered).to.equal(3)
    await stop(host)
  })
})
