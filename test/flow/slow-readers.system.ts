// Tests write timeouts and buffer limits for clients that read responses slowly or not at all.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectSecurely } from 'node:tls'
import { expect } from 'chai'
import { type SlowReaders, watchReaders } from '../../core/http/create-server.ts'
import { defineResource, defineTool } from '../../core/index.ts'
import { makeCertificate } from '../plugins/dev-auth-server/certificate.ts'
import { eventually } from '../support/eventually.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'
import { needsProgram } from '../support/needs-program.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { openSocket, readToEnd, requestBytes, requestHead } from '../support/raw-http.ts'
import { modern, modernRequest } from '../support/rpc.ts'
import { readSlowly } from '../support/slow-reader.ts'
import { type StartedHost, startHost, stopHosts } from '../support/start-host.ts'
import { openStreamingSession } from '../support/streaming-session.ts'

/** More than kernels buffer for a connection. */
const LARGE = 16 * 1024 * 1024
const CLIENTS = 4
const text = 'x'.repeat(LARGE)

const puppet = createPuppet()
const wordy = Array.from({ length: 8 }, (_, index) =>
  defineTool({ name: `wordy-${index}`, description: text.slice(0, LARGE / 8), handler: () => '' }),
)

const start = (writeTimeout: number, clock?: ManualClock) =>
  startHost(
    {
      toolsets: {
        all: [
          puppet.tool,
          defineTool({ name: 'large', handler: () => text }),
          defineResource({ name: 'large', uri: 'doc://large', handler: () => text }),
        ],
        wordy,
      },
      routes: { '/': { toolsets: 'all' }, '/wordy': { toolsets: 'wordy' } },
      http: { writeTimeout },
    },
    undefined,
    clock && { clock },
  )

afterEach(stopHosts)

/** The readers that the host says it gave up. */
function givenUp({ log }: StartedHost): SlowReaders {
  const lines = log.filter(({ code }) => code === 'MH1309')
  const sum = (field: string) => lines.reduce((total, line) => total + Number(line[field]), 0)
  return { connections: sum('connections'), waiting: sum('waiting') }
}

const bytesOf = (url: string, method: string, params: Record<string, unknown> = {}) => {
  const { headers, body } = modernRequest(method, params)
  return requestBytes(url, body, { path: new URL(url).pathname, headers })
}

/** Sends this and reads nothing. */
async function ask(url: string, bytes: string | Buffer): Promise<Socket> {
  const socket = await openSocket(url)
  socket.pause()
  socket.write(bytes)
  return socket
}

const areGivenUp = (started: StartedHost, count: number) =>
  eventually(
    `${count} readers given up`,
    () => givenUp(started).connections,
    connections => connections === count,
  )

/** `CLIENTS` of them, who must all be given up before they had it all. */
async function expectGivenUp(started: StartedHost, url: string, bytes: string | Buffer) {
  const sockets = await Promise.all(Array.from({ length: CLIENTS }, () => ask(url, bytes)))
  await areGivenUp(started, CLIENTS)
  const read = await Promise.all(sockets.map(async socket => (await readToEnd(socket.resume())).length))
  expect(Math.max(...read)).to.be.below(LARGE)
  expect((await modern(started.url, 'tools/list')).status).to.equal(200)
}

describe('write timeout for stalled clients', () => {
  it('closes the connection of an unread JSON response', async () => {
    const started = await start(300)
    await expectGivenUp(started, started.url, bytesOf(started.url, 'tools/call', { name: 'large' }))
  })

  it('closes the connection of an unread resource', async () => {
    const started = await start(300)
    await expectGivenUp(started, started.url, bytesOf(started.url, 'resources/read', { uri: 'doc://large' }))
  })

  it('closes the connection of an unread list', async () => {
    const started = await start(300)
    const url = `${started.url}/wordy`
    await expectGivenUp(started, url, bytesOf(url, 'tools/list'))
  })

  it('closes an unread event stream and lets the call continue', async () => {
    const started = await start(300)
    const session = await openStreamingSession(started.url)
    const opening = session.call('puppet', { name: 'slow' })
    const { ctx } = await puppet.call('slow')
    ctx.log('info', 'opens the stream')
    const stream = await opening
    stream.pause()
    ctx.log('info', text)
    await areGivenUp(started, 1)
    expect(ctx.signal.aborted).to.equal(false)
  })
})

/** Milliseconds. */
const PATIENCE = 4_000
/** Bytes that a slow reader takes at a time. It receives the whole response before the timeout. */
const PIECE = 768 * 1024
const PIECES = 2 * Math.ceil(LARGE / PIECE)

describe('write timeout for slow clients', () => {
  it('delivers the response to a slow client in time, and drops a stalled client', async () => {
    const clock = createManualClock()
    const started = await start(PATIENCE, clock)
    const bytes = bytesOf(started.url, 'tools/call', { name: 'large' })
    const slow = await ask(started.url, bytes)
    const silent = await ask(started.url, bytes)
    const reader = readSlowly(slow)
    for (let piece = 0; piece < PIECES / 2; piece++) {
      await reader.read(PIECE)
      await clock.advance(PATIENCE / PIECES)
    }
    expect(givenUp(started).connections).to.equal(0)
    await reader.read(Number.POSITIVE_INFINITY)
    expect(reader.got).to.be.greaterThan(LARGE)
    for (let time = 0; time < 8; time++) await clock.advance(PATIENCE / 4)
    expect(givenUp(started).connections).to.equal(1)
    silent.destroy()
  })
})

describe('write timeout for slow clients over TLS', () => {
  it('delivers the response to a slow client in time, and drops a stalled client', async function () {
    needsProgram(this, 'openssl', 'apt-get install openssl')
    const folder = await mkdtemp(join(tmpdir(), 'tls-'))
    const { key, cert } = makeCertificate(folder)
    await rm(folder, { recursive: true })
    const clock = createManualClock()
    const ended: SlowReaders[] = []
    const { watch } = watchReaders({ timeout: PATIENCE, clock }, readers => ended.push(readers))
    const server = createSecureServer({ key, cert }, (req, res) => {
      watch(req.socket, res)
      res.end(text)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    async function ask() {
      const socket = connectSecurely({ port, rejectUnauthorized: false })
      socket.on('error', () => undefined)
      await once(socket, 'secureConnect')
      socket.pause()
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
      return socket
    }
    const [slow, silent] = [await ask(), await ask()]
    const reader = readSlowly(slow)
    for (let piece = 0; piece < PIECES / 2; piece++) {
      await reader.read(PIECE)
      await clock.advance(PATIENCE / PIECES)
    }
    expect(ended).to.have.length(0)
    await reader.read(Number.POSITIVE_INFINITY)
    expect(reader.got).to.be.greaterThan(LARGE)
    for (let time = 0; time < 8; time++) await clock.advance(PATIENCE / 4)
    expect(ended.map(({ connections }) => connections)).to.deep.equal([1])
    silent.destroy()
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
})

describe('total buffer limit of unread responses', () => {
  it('drops the connections with the largest buffers first', async () => {
    const ended: SlowReaders[] = []
    const server = createServer((req, res) => res.end(Buffer.alloc(Number(req.url?.slice(1)))))
    const { watch } = watchReaders({ timeout: 60_000, maxTotal: 2 * LARGE }, readers => ended.push(readers))
    server.on('connection', socket => watch(socket, socket))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const large = await Promise.all(
      [1, 2, 3].map(() => ask(url, requestHead(url, { method: 'GET', path: `/${2 * LARGE}` }))),
    )
    const less = await ask(url, requestHead(url, { method: 'GET', path: `/${LARGE}` }))
    const connections = () => ended.reduce((total, one) => total + one.connections, 0)
    await eventually('three readers given up', connections, count => count === 3)
    const sizes = await Promise.all([...large, less].map(async socket => (await readToEnd(socket.resume())).length))
    expect(sizes.map((size, index) => size > (index < 3 ? 2 : 1) * LARGE)).to.deep.equal([false, false, false, true])
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
})
