// Tests floods of pipelined requests and unread responses at full size.
import { once } from 'node:events'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { definePlugin, type Services } from '../../core/internal.ts'
import { eventually } from '../support/eventually.ts'
import { openSocket, readToEnd, requestBytes, requestHead } from '../support/raw-http.ts'
import { modern, modernRequest } from '../support/rpc.ts'
import { type LogLine, startHost, stopHosts } from '../support/start-host.ts'

const MIB = 1024 * 1024
/** Linux buffers up to 4 MiB for the sender, and less than 1 MiB for a receiver that does not read. */
const large = 'x'.repeat(6 * MIB)
let host: Services
let runs = 0

const start = (writeTimeout: number) =>
  startHost({
    toolsets: {
      all: [
        defineTool({
          name: 'large',
          handler: () => {
            runs++
            return large
          },
        }),
      ],
    },
    routes: { '/': { toolsets: 'all' } },
    http: { writeTimeout },
    plugins: {
      'transport-streamable': {},
      'transport-sse': {},
      look: definePlugin<Record<never, never>>({
        options: { type: 'object', additionalProperties: false, properties: {} },
        setup(given) {
          given.onReady(() => {
            const services = given.services
            host = services
          })
        },
      })(),
    },
  })

afterEach(stopHosts)

/** Connections that the host closed because their readers do not read. */
const connectionsClosed = (log: readonly LogLine[]) =>
  log.filter(({ code }) => code === 'MH1309').reduce((sum, line) => sum + Number(line['connections']), 0)

const callLarge = (url: string, headers: Record<string, string> = {}) => {
  const request = modernRequest('tools/call', { name: 'large' })
  return requestBytes(url, request.body, { headers: { ...request.headers, ...headers } })
}

/** A client that still sends when the connection closes can get a reset. */
const reset = () => ''

describe('floods of requests', () => {
  const openStreams = (url: string, count: number) =>
    requestHead(url, {
      method: 'GET',
      path: '/sse',
      headers: { Accept: 'text/event-stream', Connection: 'keep-alive' },
    }).repeat(count)

  it('2,000 pipelined GET /sse on 20 connections, which the host closes, leave no session', async () => {
    const { url } = await start(30_000)
    const flood = openStreams(url, 100)
    for (let connection = 0; connection < 20; connection++) {
      const socket = await openSocket(url)
      socket.write(flood)
      await readToEnd(socket).catch(reset)
    }
    await eventually('no session left', () => host.sessions.count === 0)
    expect((await modern(url, 'tools/list')).status).to.equal(200)
  })

  it('200 pipelined GET /sse on 20 connections, which the clients close, leave no session', async () => {
    const { url } = await start(30_000)
    const flood = openStreams(url, 10)
    for (let connection = 0; connection < 20; connection++) {
      const socket = await openSocket(url)
      socket.write(flood)
      const [head] = await once(socket, 'data')
      expect(String(head)).to.match(/^HTTP\/1.1 200 /)
      expect(host.sessions.count).to.be.at.least(1)
      socket.destroy()
    }
    await eventually('no session left', () => host.sessions.count === 0)
    expect((await modern(url, 'tools/list')).status).to.equal(200)
  })

  it('runs at most 10 pipelined calls of a client that does not read', async () => {
    const { url } = await start(1_000)
    runs = 0
    for (const count of [90, 300]) {
      const before = runs
      const socket = await openSocket(url)
      socket.pause()
      socket.write(Buffer.concat(Array(count).fill(callLarge(url, { Connection: 'keep-alive' }))))
      await eventually('the first call runs', () => runs > before)
      // Meanwhile the host has the time to run more of them, if it would.
      for (let others = 0; others < 50; others++) await modern(url, 'tools/list')
      const closed = readToEnd(socket.resume()).catch(reset)
      expect(runs - before).to.be.within(1, 10)
      socket.destroy()
      await closed
    }
  })

  it('20 clients that do not read their 6 MiB responses are disconnected', async () => {
    const { url, log } = await start(1_000)
    const sockets = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const socket = await openSocket(url)
        socket.pause()
        socket.write(callLarge(url, { Connection: 'keep-alive' }))
        return socket
      }),
    )
    await eventually(
      'all closed',
      () => connectionsClosed(log),
      count => count >= 20,
    )
    expect((await modern(url, 'tools/list')).status).to.equal(200)
    for (const socket of sockets) socket.destroy()
  })
})
