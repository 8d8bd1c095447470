// Tests Host.callback: a host embedded in another HTTP server responds as on its own port.
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import Koa from 'koa'
import koaMount from 'koa-mount'
import { createHost } from '../../core/create-host.ts'
import type { CreateHostOptions, Host } from '../../core/host.ts'
import { type Config, defineTool } from '../../core/index.ts'
import { plugin } from '../fixtures/plugins.ts'
import { eventually } from '../support/eventually.ts'
import { createGate } from '../support/gate.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { openSocket, readToEnd, requestBytes, requestHead } from '../support/raw-http.ts'
import { modern, modernRequest } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { readSlowly } from '../support/slow-reader.ts'
import { createTestLog } from '../support/start-host.ts'

/** More than kernels buffer for a connection. */
const LARGE = 16 * 1024 * 1024
const text = 'x'.repeat(LARGE)
/** Milliseconds. */
const PATIENCE = 4_000
/** What a slow reader takes in a quarter of that. The kernel takes more from the host once a third of its buffer is free. */
const PIECE = 768 * 1024

const ends: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

let started = 0
let began = 0
let aborted = 0
/** Opens for what `/slow` of the outer server answers. */
let slow = createGate()
/** Opens when `waits` runs. */
let waiting = createGate()
const toolset = [
  defineTool({
    name: 'where',
    handler() {
      began++
      return 'here'
    },
  }),
  defineTool({ name: 'large', handler: () => text }),
  defineTool({
    name: 'waits',
    handler: (_args, { signal }) =>
      new Promise<string>(resolve => {
        waiting.open()
        signal.addEventListener('abort', () => {
          aborted++
          resolve('gone')
        })
      }),
  }),
]

const PREFIX = '/outer'

async function embed(
  publicUrl: string | undefined,
  more: Partial<Config> = {},
  options: CreateHostOptions = {},
): Promise<Host> {
  const host = await createHost(
    {
      server: { name: 'embedded', version: '1' },
      secrets: ['a secret for tests, long enough to be one'],
      toolsets: { all: toolset },
      routes: { '/': { toolsets: 'all' }, '/b': { toolsets: 'all' } },
      plugins: {
        'transport-streamable': {},
        'transport-sse': {},
        'resource-metadata': { authorizationServers: ['https://login.acme.example'] },
        counts: plugin(host => host.onStart(() => void started++)),
      },
      ...more,
      ...(publicUrl !== undefined && { http: { publicUrl, ...more.http } }),
    },
    { log: createTestLog(), ...options },
  )
  ends.push(() => host.close({ grace: 0 }))
  return host
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  ends.unshift(async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** As Express does: what is below the prefix, without it. */
const stripping =
  (handle: ReturnType<Host['callback']>): RequestListener =>
  (req, res) => {
    const url = req.url ?? '/'
    if (url !== PREFIX && !url.startsWith(`${PREFIX}/`))
      return void (url === '/slow' ? slow.opened : Promise.resolve()).then(() => res.end('outer'))
    Object.assign(req, { originalUrl: url, baseUrl: PREFIX, url: url.slice(PREFIX.length) || '/' })
    void handle(req, res)
  }

function inKoa(handle: ReturnType<Host['callback']>): RequestListener {
  const app = new Koa()
  app.use(
    koaMount(PREFIX, ctx => {
      ctx.respond = false
      return handle(ctx.req, ctx.res)
    }),
  )
  app.use(ctx => {
    ctx.body = 'outer'
  })
  return app.callback()
}

describe('Host.callback', () => {
  it('handles calls, sessions, streams and errors in a plain HTTP server', async () => {
    started = 0
    const host = await embed('https://mcp.acme.example')
    const handle = host.callback()
    await host.start()
    expect(started).to.equal(1)
    const url = await serve((req, res) => void handle(req, res))
    expect((await modern(url, 'tools/call', { name: 'where' })).message.result.content[0].text).to.equal('here')
    const session = await openSession(`${url}/b`)
    const stream = await session.get()
    expect(stream.status).to.equal(200)
    expect((await session.request('tools/list')).status).to.equal(200)
    stream.drop()
    expect((await fetch(`${url}/nowhere`)).status).to.equal(404)
    expect((await fetch(url, { headers: { Origin: 'https://evil.example' } })).status).to.equal(403)
  })

  for (const [where, wrap] of [
    ['Express-like', stripping],
    ['koa-mount', inKoa],
  ] as const) {
    it(`serves below a stripped prefix (${where}) and builds URLs from publicUrl`, async () => {
      const host = await embed(`https://acme.example${PREFIX}`)
      await host.start()
      const url = await serve(wrap(host.callback()))
      expect((await modern(url + PREFIX, 'tools/call', { name: 'where' })).status).to.equal(200)
      expect((await modern(`${url}${PREFIX}/b`, 'tools/call', { name: 'where' })).status).to.equal(200)
      expect((await fetch(`${url}${PREFIX}/nowhere`)).status).to.equal(404)
      expect(await (await fetch(`${url}/elsewhere`)).text()).to.equal('outer')
      const path = `${PREFIX}/.well-known/oauth-protected-resource/b`
      const document = await fetch(url + path)
      expect(document.status).to.equal(200)
      expect(await document.json()).to.include({ resource: `https://acme.example${PREFIX}/b` })
    })
  }

  it('refuses a pipelined request and closes the connection', async () => {
    const host = await embed(`https://acme.example${PREFIX}`)
    await host.start()
    slow = createGate()
    let handed = 0
    const handle = stripping(host.callback())
    const url = await serve((req, res) => {
      handed++
      handle(req, res)
    })
    const { body, headers } = modernRequest('tools/call', { name: 'where' })
    const one = (path: string, connection: string) =>
      requestBytes(url, body, { path, headers: { ...headers, Connection: connection } })
    const socket = await openSocket(url)
    const answers = readToEnd(socket)
    socket.write(Buffer.concat([one('/slow', 'keep-alive'), one(PREFIX, 'keep-alive'), one(PREFIX, 'keep-alive')]))
    await eventually('all three are handed over', () => handed === 3)
    began = 0
    // Of what comes later, on a connection of its own, all is done.
    expect((await modern(`${url}${PREFIX}`, 'tools/call', { name: 'where' })).status).to.equal(200)
    expect(began, 'calls of the other connection').to.equal(1)
    slow.open()
    const text = await answers
    expect(text.match(/HTTP\/1\.1 \d+/g)).to.deep.equal(['HTTP/1.1 200', 'HTTP/1.1 503'])
  })

  it('closes connections of stalled readers but not of slow readers or other handlers', async () => {
    const [log, clock] = [createTestLog(), createManualClock()]
    const http = { writeTimeout: PATIENCE }
    const host = await embed(`https://acme.example${PREFIX}`, { http }, { log, clock })
    await host.start()
    const embedded = stripping(host.callback())
    const url = await serve((req, res) => (req.url === '/large' ? void res.end(text) : embedded(req, res)))
    const { body, headers } = modernRequest('tools/call', { name: 'large' })
    const call = requestBytes(url, body, { path: PREFIX, headers })
    async function ask(bytes: string | Buffer) {
      const socket = await openSocket(url)
      socket.pause()
      socket.write(bytes)
      return socket
    }
    const silent = await ask(call)
    const others = await ask(requestHead(url, { method: 'GET', path: '/large' }))
    const slow = await ask(call)
    const reader = readSlowly(slow)
    const given = () => log.lines.filter(({ code }) => code === 'MH1309')
    // The slow reader takes its whole response within the timeout.
    while (reader.got < LARGE) {
      await reader.read(PIECE)
      await clock.advance(PATIENCE / 100)
    }
    expect(given()).to.have.length(0)
    for (let time = 0; time < 8; time++) await clock.advance(PATIENCE / 4)
    expect(given()).to.have.length(1)
    const [lost, whole] = await Promise.all([silent, others].map(socket => readToEnd(socket.resume())))
    slow.destroy()
    expect(lost?.length).to.be.below(LARGE)
    expect(whole?.length).to.be.above(LARGE)
    expect(reader.got).to.be.at.least(LARGE)
    expect(given().map(({ connections }) => connections)).to.deep.equal([1])
  })

  it('cancels running calls at shutdown and responds 503 afterwards', async () => {
    aborted = 0
    const host = await embed('https://mcp.acme.example')
    const handle = host.callback()
    await host.start()
    const url = await serve((req, res) => void handle(req, res))
    waiting = createGate()
    const running = modern(url, 'tools/call', { name: 'waits' })
    await waiting.opened
    const { cancelled } = await host.close({ grace: 0 })
    expect([cancelled, aborted]).to.deep.equal([1, 1])
    expect((await running).message.error.code).to.equal(-32603)
    expect((await modern(url, 'tools/call', { name: 'where' })).status).to.equal(503)
  })

  it('validates both `:authority` and Host of HTTP/2 requests', async () => {
    const host = await embed('https://mcp.acme.example')
    const handle = host.callback()
    await host.start()
    const server = createHttp2Server({}, (req, res) => void handle(req as never, res as never)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    ends.unshift(async () => {
      client.destroy()
      server.close()
    })
    const { headers: own, body } = modernRequest('tools/call', { name: 'where' })
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...own }
    async function statusOf(hosts: Readonly<Record<string, string>>) {
      const stream = client.request({ ':method': 'POST', ':path': '/', ...headers, ...hosts })
      stream.end(body)
      const [answer] = await once(stream, 'response')
      stream.resume()
      return answer[':status']
    }
    const ours = 'mcp.acme.example'
    const evil = 'evil.example'
    expect(await statusOf({ ':authority': ours })).to.equal(200)
    expect(await statusOf({ ':authority': ours, host: ours })).to.equal(200)
    expect(await statusOf({ ':authority': evil })).to.equal(403)
    expect(await statusOf({ ':authority': evil, host: ours })).to.equal(403)
    expect(await statusOf({ ':authority': ours, host: evil })).to.equal(403)
  })

  it('responds 503 before start() and logs the missing call', async () => {
    const log = createTestLog()
    const host = await embed('https://mcp.acme.example', {}, { log })
    const handle = host.callback()
    const url = await serve((req, res) => void handle(req, res))
    const early = await fetch(url)
    expect([early.status, early.headers.get('retry-after')]).to.deep.equal([503, '1'])
    expect(log.lines.map(({ message }) => message).join('\n')).to.match(/start\(\)/)
    await host.start()
    expect((await modern(url, 'tools/call', { name: 'where' })).status).to.equal(200)
  })

  it('starts once for repeated start() calls and cannot start after close()', async () => {
    started = 0
    const host = await embed('https://mcp.acme.example')
    await Promise.all([host.start(), host.start()])
    await host.start()
    expect(started).to.equal(1)
    await host.close()
    for (const again of [host.start(), host.listen()]) {
      const outcome = await again.then(
        () => 'started',
        error => error.message,
      )
      expect(outcome).to.contain('closed').and.to.contain('createHost')
    }
    const never = await embed('https://mcp.acme.example')
    await never.close()
    const outcome = await never.start().catch(error => error.message)
    expect(started).to.equal(1)
    expect(outcome).to.match(/createHost/)
  })

  it('reports a body that was already consumed', async () => {
    const host = await embed('https://mcp.acme.example')
    const handle = host.callback()
    await host.start()
    const url = await serve((req, res) => {
      req.resume().once('end', () => void handle(req, res))
    })
    expect((await modern(url, 'tools/list')).status).to.equal(500)
  })

  it('requires publicUrl', async () => {
    const host = await embed(undefined, { plugins: { 'transport-streamable': {} } })
    expect(() => host.callback()).to.throw('callback() requires http.publicUrl')
  })
})
