// Tests the timeouts of examples/deploy/caddy/Caddyfile with real Caddy: endless requests end, streams continue.
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { needsProgram } from '../support/needs-program.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { openSocket, readToEnd, sendRaw } from '../support/raw-http.ts'
import { modernRequest } from '../support/rpc.ts'
import { type StartedHost, startHost, stopHosts } from '../support/start-host.ts'
import { exchange } from '../support/stream-exchange.ts'
import {
  caddyEnv,
  makeCertificate,
  ownFolder,
  type RunningProxy,
  readExample,
  removeFolders,
  replaced,
  startListening,
  writeCaddy,
} from './support/processes.ts'

type Change = readonly [string | RegExp, string]
const SHORT: readonly Change[] = [
  ['read_header 10s', 'read_header 2s'],
  ['read_body 60s', 'read_body 2s'],
]
/** Milliseconds between two bytes of a client that sends without end. */
const DRIP = 100

const puppet = createPuppet()
let runs = 0
const counted = defineTool({ name: 'counted', input: { type: 'object' }, handler: () => `run ${++runs}` })
let host: StartedHost
const running: RunningProxy[] = []

before(async function () {
  needsProgram(this, 'caddy', 'apt-get install caddy')
  host = await startHost({
    toolsets: { main: [puppet.tool, counted] },
    routes: { '/mcp': { toolsets: 'main' } },
    http: { trustProxy: 1 },
    plugins: { 'transport-streamable': {}, health: {} },
  })
})
afterEach(() => Promise.all(running.splice(0).map(proxy => proxy.stop())))
after(async () => {
  await stopHosts()
  removeFolders()
})

/** Returns its port. It opens one port after the other, so the test waits for each of `others` as well. */
async function startCaddy(
  scheme: 'http' | 'https',
  changes: readonly Change[],
  folder = ownFolder(),
  others: readonly number[] = [],
): Promise<number> {
  const port = await freePort()
  const file = join(folder, 'Caddyfile')
  writeFileSync(file, replaced(readExample('deploy/caddy/Caddyfile'), changes))
  const env = caddyEnv(folder, { site: `${scheme}://localhost:${port}`, nodes: [new URL(host.url).host] })
  running.push(await startListening(['caddy', 'run', '--config', writeCaddy(file, env, folder)], port, env, others))
  return port
}

/** The head of a call that runs, were it whole, and its body. */
function callOf(port: number, framing: string) {
  const { headers, body } = modernRequest('tools/call', { name: 'counted', arguments: {} })
  const sent = {
    Host: `localhost:${port}`,
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
  }
  const lines = Object.entries({ ...sent, ...headers }).map(([name, value]) => `${name}: ${value}`)
  return { head: ['POST /mcp HTTP/1.1', ...lines, framing, '', ''].join('\r\n'), body }
}

/** Sends the first part, and then the second again and again until it is shut out; what came back. */
async function sendWithoutEnd(port: number, first: string, again: string): Promise<string> {
  const socket = await openSocket(`http://127.0.0.1:${port}`)
  const answer = readToEnd(socket)
  socket.write(first)
  const drip = setInterval(() => socket.write(again), DRIP)
  try {
    return await answer
  } finally {
    clearInterval(drip)
    socket.destroy()
  }
}

const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`

/** Bodies whose JSON is whole and whose end never comes: were they passed on as they are, they would run. */
const ENDLESS: readonly (readonly [what: string, send: (port: number) => Promise<string>])[] = [
  [
    'shorter than its Content-Length',
    port => {
      const { head, body } = callOf(port, 'Content-Length: 1000000')
      return sendWithoutEnd(port, head + body, ' ')
    },
  ],
  [
    'close to the size limit',
    port => {
      const { head, body } = callOf(port, 'Content-Length: 4000000')
      return sendWithoutEnd(port, head + body.padEnd(3_900_000), ' ')
    },
  ],
  [
    'in chunks without an end',
    port => {
      const { head, body } = callOf(port, 'Transfer-Encoding: chunked')
      return sendWithoutEnd(port, head + chunk(body), chunk(' '))
    },
  ],
]

const url = (port: number) => `http://localhost:${port}/mcp`

/** A whole call of the same kind. */
async function callWhole(port: number): Promise<number> {
  const { headers, body } = modernRequest('tools/call', { name: 'counted', arguments: {} })
  const sent = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers }
  const answer = await exchange(url(port), { method: 'POST', headers: sent as Record<string, string>, body })
  await answer.text()
  return answer.status
}

describe('request body with trailing white space', () => {
  it('runs when complete through Caddy, and does not run when truncated', async () => {
    const port = await startCaddy('http', SHORT)
    const before = runs
    const whole = callOf(port, 'Content-Length: 5000\r\nConnection: close')
    expect((await sendRaw(url(port), whole.head + whole.body.padEnd(5000))).text).to.include(`run ${before + 1}`)
    const cut = callOf(port, 'Content-Length: 5000')
    const socket = await openSocket(host.url)
    const answer = readToEnd(socket)
    socket.end(cut.head + cut.body.padEnd(4999))
    expect(await answer).to.not.include('run ')
    expect([await callWhole(port), runs - before]).to.deep.equal([200, 2])
  })
})

describe('examples/deploy/caddy/Caddyfile: request timeouts', () => {
  it('end an endless header', async () => {
    const port = await startCaddy('http', SHORT)
    const answer = await sendWithoutEnd(port, `GET /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nX-Long: `, 'x')
    expect(answer).to.not.match(/^HTTP\/1\.1 2/)
  })

  it('end an endless header over plain HTTP and redirect a complete one to HTTPS', async () => {
    const [folder, plain] = [ownFolder(), await freePort()]
    const { cert, key } = makeCertificate(folder, 'localhost')
    const named: Change = [/^\treverse_proxy /, `\ttls ${cert} ${key}\n$&`]
    const changes: readonly Change[] = [...SHORT, named, [/^\tservers \{/, `\thttp_port ${plain}\n$&`]]
    const https = await startCaddy('https', changes, folder, [plain])
    const first = `GET /mcp?a=b HTTP/1.1\r\nHost: localhost:${https}\r\nConnection: close\r\n`
    expect(await sendWithoutEnd(plain, `${first}X-Long: `, 'x')).to.not.include('301')
    const { status, headers } = await sendRaw(`http://127.0.0.1:${plain}`, `${first}\r\n`)
    expect([status, headers.get('location')]).to.deep.equal([301, 'https://localhost/mcp?a=b'])
  })

  for (const [what, send] of ENDLESS) {
    it(`end a body ${what} without running the call`, async () => {
      const port = await startCaddy('http', SHORT)
      const before = runs
      const answer = await send(port)
      expect(answer).to.not.include('run ')
      expect([await callWhole(port), runs - before]).to.deep.equal([200, 1])
    })
  }

  it('do not end event streams; a client disconnect cancels the call', async () => {
    const port = await startCaddy('http', SHORT)
    const { headers, body } = modernRequest(
      'tools/call',
      { name: 'puppet', arguments: { name: 'long' } },
      {
        meta: { progressToken: 'long' },
      },
    )
    const sent = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers }
    const opening = exchange(url(port), { method: 'POST', headers: sent as Record<string, string>, body })
    const { ctx } = await puppet.call('long')
    ctx.progress(1)
    const stream = await opening
    expect((await stream.next())?.message.params).to.include({ progress: 1 })
    // It begins later than the stream did, and is ended by the same limit; twice.
    const [, [, slow]] = ENDLESS as [unknown, (typeof ENDLESS)[number]]
    await slow(port)
    await slow(port)
    ctx.progress(2)
    expect((await stream.next())?.message.params).to.include({ progress: 2 })
    expect(ctx.signal.aborted).to.equal(false)
    stream.drop()
    await eventually('the call is cancelled', () => ctx.signal.aborted)
  })

  it('apply to HTTP/1.1 only, so HTTP/2 is disabled for TLS', async () => {
    const folder = ownFolder()
    const { cert, key } = makeCertificate(folder, 'localhost')
    const port = await startCaddy(
      'https',
      [
        [/^\tservers \{/, '\tauto_https disable_redirects\n$&'],
        [/^\treverse_proxy /, `\ttls ${cert} ${key}\n$&`],
      ],
      folder,
    )
    const socket = connect({
      port,
      host: '127.0.0.1',
      servername: 'localhost',
      rejectUnauthorized: false,
      ALPNProtocols: ['h2', 'http/1.1'],
    })
    await once(socket, 'secureConnect')
    expect(socket.alpnProtocol).to.equal('http/1.1')
    socket.destroy()
  })
})
