// The floods that once ended a host, in their size: requests sent ahead and left, answers that nobody reads.
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { definePlugin, defineTool, type Services } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { openSocket, readToEnd, requestBytes, requestHead } from '../support/raw-http.ts'
import { modern, modernRequest } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const MIB = 1024 * 1024
const large = 'x'.repeat(4 * MIB)
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
          given.serving(services => {
            host = services
          })
        },
      })(),
    },
  })

afterEach(stopHosts)

const inMib = (bytes: number) => `${Math.round(bytes / MIB)} MiB`
const callLarge = (url: string, headers: Record<string, string> = {}) => {
  const request = modernRequest('tools/call', { name: 'large' })
  return requestBytes(url, request.body, { headers: { ...request.headers, ...headers } })
}

describe('floods', () => {
  it('30,000 GET /sse sent ahead on 300 connections that are dropped leave nothing', async function () {
    this.timeout(120_000)
    const { url } = await start(30_000)
    const headers = { Accept: 'text/event-stream', Connection: 'keep-alive' }
    const flood = requestHead(url, { method: 'GET', path: '/sse', headers }).repeat(100)
    const before = process.memoryUsage().rss
    for (let connection = 0; connection < 300; connection++) {
      const socket = await openSocket(url)
      socket.write(flood)
      await once(socket, 'data')
      socket.destroy()
    }
    await eventually('no session left', () => host.sessions.count === 0)
    console.log(
      `      sessions left: ${host.sessions.count}; memory grew by ${inMib(process.memoryUsage().rss - before)}`,
    )
    expect((await modern(url, 'tools/list')).status).to.equal(200)
  })

  it('300 calls of 4 MiB sent ahead by one who reads nothing have one answer made at a time', async function () {
    this.timeout(120_000)
    const { url } = await start(1_000)
    runs = 0
    for (const [count, most] of [
      [90, 10],
      [300, 1],
    ] as const) {
      const before = runs
      const socket = await openSocket(url)
      socket.pause()
      socket.write(Buffer.concat(Array(count).fill(callLarge(url, { Connection: 'keep-alive' }))))
      await pause(500)
      const closed = readToEnd(socket.resume())
      console.log(`      ${count} sent ahead: ${runs - before} were run while nothing was read`)
      expect(runs - before).to.be.at.most(most)
      socket.destroy()
      await closed
    }
  })

  it('100 clients that never read their 4 MiB are given up, all of them', async function () {
    this.timeout(120_000)
    const { url, log } = await start(1_000)
    const sockets = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = await openSocket(url)
        socket.pause()
        // Twice: kernels buffer more than one.
        socket.write(Buffer.concat(Array(3).fill(callLarge(url, { Connection: 'keep-alive' }))))
        return socket
      }),
    )
    const given = () =>
      log
        .filter(({ message }) => message === 'closed connections whose readers do not read')
        .reduce((sum, line) => sum + Number(line['connections']), 0)
    await eventually('all 100 given up', given, count => count >= 100)
    console.log(`      ${given()} of 100 given up; memory ${inMib(process.memoryUsage().rss)}`)
    expect((await modern(url, 'tools/list')).status).to.equal(200)
    for (const socket of sockets) socket.destroy()
  })
})
