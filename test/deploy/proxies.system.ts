// Tests the proxies of examples/deploy with real nginx and Caddy: calls, streaming, HTTP+SSE, client addresses and
// failover.
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { needsProgram } from '../support/needs-program.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { modernRequest } from '../support/rpc.ts'
import { openSseSession } from '../support/sse-client.ts'
import { type StartedHost, startHost, stopHosts } from '../support/start-host.ts'
import { exchange } from '../support/stream-exchange.ts'
import { type NameServer, startNameServer } from './support/name-server.ts'
import {
  nginxCommand,
  type RunningProxy,
  readExample,
  removeFolders,
  replaced,
  startCaddy,
  startListening,
  startMcpConf,
  writeNginx,
} from './support/processes.ts'

/** The second node's address; it has the first one's port. */
const OTHER = '127.0.0.2'

const puppet = createPuppet()
let runs = 0
const seen: string[] = []
const counted = defineTool({ name: 'counted', input: { type: 'object' }, handler: () => `run ${++runs}` })
let host: StartedHost
let nodePort: number
let names: NameServer

before(async () => {
  host = await startHost({
    toolsets: { main: [puppet.tool, counted] },
    routes: { '/mcp': { toolsets: 'main' } },
    http: { trustProxy: 1, keepAliveTimeout: '75s' },
    plugins: { 'transport-streamable': {}, 'transport-sse': {}, health: {} },
    configureSession: ({ ip }) => void seen.push(ip),
  })
  nodePort = Number(new URL(host.url).port)
  names = await startNameServer(['127.0.0.1', OTHER])
})
after(async () => {
  names?.close()
  await stopHosts()
  removeFolders()
})

const startNginx = (text: string, port: number) => startListening(nginxCommand(writeNginx(text)), port)

const PROXIES: readonly (readonly [name: string, program: string, start: (port: number) => Promise<RunningProxy>])[] = [
  ['nginx/mcp.conf', 'nginx', port => startMcpConf([`127.0.0.1:${nodePort}`, `${OTHER}:${nodePort}`], port)],
  [
    'docker/nginx.conf',
    'nginx',
    port =>
      startNginx(
        replaced(readExample('deploy/docker/nginx.conf'), [
          ['host:3000', `host:${nodePort}`],
          ['resolver 127.0.0.11', `resolver 127.0.0.1:${names.port}`],
          ['listen 8080;', `listen 127.0.0.1:${port};`],
          ['/dev/stdout', 'mcp.log'],
        ]),
        port,
      ),
  ],
  ['caddy/Caddyfile', 'caddy', port => startCaddy([`127.0.0.1:${nodePort}`, `${OTHER}:${nodePort}`], port)],
]

/** Lives at the second node's address, takes requests, and breaks each connection once a whole one has come. */
async function startBreaking(): Promise<{ readonly server: Server; broken(): number }> {
  let broken = 0
  const server = createServer(socket => {
    let text = ''
    socket.setEncoding('utf8').on('error', () => undefined)
    socket.on('data', part => {
      text += part
      if (text.startsWith('GET /livez ')) return void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      if (!text.includes('"method"')) return
      broken += 1
      socket.destroy()
    })
  }).listen(nodePort, OTHER)
  await once(server, 'listening')
  return { server, broken: () => broken }
}

type Sent = {
  readonly tool: string
  readonly called?: string
  readonly headers?: Record<string, string>
  readonly from?: string
}

/** A call of 2026-07-28 whose answer is read while it is open. */
function send(url: string, { tool, called, headers: more = {}, from }: Sent) {
  const params = { name: tool, arguments: called === undefined ? {} : { name: called } }
  const { headers, body } = modernRequest('tools/call', params, { headers: more, meta: { progressToken: tool } })
  const sent = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers }
  const own = from === undefined ? {} : { localAddress: from }
  return exchange(url, { method: 'POST', headers: sent as Record<string, string>, body, ...own })
}

for (const [name, program, start] of PROXIES) {
  describe(`reverse proxy examples/deploy/${name}`, () => {
    let proxy: RunningProxy
    let url: string
    before(async function () {
      needsProgram(this, program, `apt-get install ${program}`)
      const port = await freePort()
      proxy = await start(port)
      url = `http://127.0.0.1:${port}/mcp`
      // Caddy refuses a POST whose node is down until it has looked; each takes its turn, so two tell of both.
      const twice = async () => [
        (await send(url, { tool: 'counted' })).status,
        (await send(url, { tool: 'counted' })).status,
      ]
      await eventually('the node that is down is passed over', twice, statuses => statuses.join() === '200,200')
    })
    after(() => proxy?.stop())

    it('answers all calls while one node is down', async () => {
      const before = runs
      for (let count = 0; count < 20; count++) {
        const answer = await send(url, { tool: 'counted' })
        expect([answer.status, await answer.text()]).to.satisfy(([status]: [number]) => status === 200)
      }
      expect(runs - before).to.equal(20)
    })

    it('forwards each event immediately while the call runs', async () => {
      const opening = send(url, { tool: 'puppet', called: name })
      const { ctx, finish } = await puppet.call(name)
      ctx.progress(1, 2)
      const stream = await opening
      expect((await stream.next())?.message.params).to.include({ progress: 1, total: 2 })
      ctx.progress(2, 2)
      expect((await stream.next())?.message.params).to.include({ progress: 2 })
      finish('done')
      expect((await stream.next())?.message.result.content[0].text).to.equal('done')
      expect(await stream.whole).to.equal(true)
    })

    it('forwards a client disconnect, which cancels the call', async () => {
      const opening = send(url, { tool: 'puppet', called: `${name}, leaving` })
      const { ctx } = await puppet.call(`${name}, leaving`)
      ctx.progress(1)
      const stream = await opening
      await stream.next()
      stream.drop()
      await eventually('the call is cancelled', () => ctx.signal.aborted)
    })

    it('supports the HTTP+SSE transport', async () => {
      const client = await openSseSession(url)
      expect((await client.request('tools/list')).result.tools).to.have.length(2)
      const { result } = await client.request('tools/call', { name: 'counted', arguments: {} })
      expect(result.content[0].text).to.match(/^run \d+$/)
      client.stream.drop()
    })

    it('forwards the client address and ignores forged headers', async () => {
      seen.length = 0
      const headers = {
        'X-Forwarded-For': '192.0.2.66',
        'X-Forwarded-Host': 'evil.example',
        'X-Forwarded-Proto': 'https',
      }
      const answer = await send(url, { tool: 'counted', headers, from: '127.0.0.9' })
      expect([answer.status, await answer.text()]).to.satisfy(([status]: [number]) => status === 200)
      expect(seen).to.deep.equal(['127.0.0.9'])
    })

    it('forwards an oversized request to the node, which answers 413', async () => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x'.repeat(5_000_000) })
      const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
      // Who still sends when the answer comes may find the connection reset instead, through Caddy.
      const sendLarge = () =>
        exchange(url, { method: 'POST', headers, body }).then(
          ({ status }) => status,
          ({ code }) => code,
        )
      const isTold = (answer: unknown) => !['ECONNRESET', 'EPIPE'].includes(String(answer))
      expect(await eventually('it is told', sendLarge, isTold)).to.equal(413)
      expect((await send(url, { tool: 'counted' })).status).to.equal(200)
    })

    it('does not retry a POST at another node', async () => {
      const before = runs
      const { server, broken } = await startBreaking()
      const statuses: number[] = []
      const sendOne = async () => void statuses.push((await send(url, { tool: 'counted' })).status)
      await eventually('12 were sent, and some broken off', sendOne, () => statuses.length >= 12 && broken() > 0)
      server.close()
      // A retried request would count twice. A proxy can also refuse requests while its health checks time out.
      expect(runs - before + broken()).to.be.at.most(statuses.length)
      expect(statuses.filter(status => status === 200)).to.have.length(runs - before)
    })
  })
}
