// Tests connection handling over TLS: stalled handshakes, stalled readers, unread bodies, timeouts and shutdown.
import { once } from 'node:events'
import { connect as connectPlain, createServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { type Authority, certify, type Pair, removeTlsFolders } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { parseAnswer, readToEnd, requestBytes, requestHead } from '../support/raw-http.ts'
import { createMeta, modernRequest } from '../support/rpc.ts'
import { stopHosts } from '../support/start-host.ts'
import { ask, CONFIG, call, handshakeFailures, openSecure, startSecure } from './tls-host.ts'

/** More than the system keeps for a connection of this machine. */
const LARGE = 12_000_000
const text = 'x'.repeat(LARGE)
const large = defineTool({
  name: 'large',
  handler(_, { progress }) {
    progress(1)
    return text
  },
})

let authority: Authority
let pair: Pair

before(function () {
  ;({ authority, pair } = certify(this))
})
afterEach(stopHosts)
after(removeTlsFolders)

const connectTo = async (url: string): Promise<Socket> => {
  const socket = connectPlain(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

/** Whether nobody listens there any more. */
const isLeft = (url: string): Promise<boolean> =>
  connectTo(url).then(
    socket => !socket.destroy(),
    () => true,
  )

/** The first bytes that a client sends for its handshake. */
async function firstFlight(): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const client = connect({ port, host: '127.0.0.1' }).on('error', () => undefined)
  const [socket] = await accepted
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  client.destroy()
  socket.destroy()
  server.close()
  return bytes
}

describe('Stalled TLS handshakes', () => {
  it('end at handshakeTimeout without blocking other clients, also with trickled bytes', async () => {
    const { url, log } = await startSecure(pair, { tls: { handshakeTimeout: 5_000 } })
    const flight = await firstFlight()
    let ended = 0
    const stalled = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const socket = await connectTo(url)
        socket.resume().once('close', () => ended++)
        // A quarter says nothing, a quarter stops in the middle, a quarter never answers, and a quarter drips.
        if (index % 4 === 1) socket.write(flight.subarray(0, 100))
        if (index % 4 === 2) socket.write(flight)
        return socket
      }),
    )
    let at = 0
    const dripping = setInterval(() => {
      for (const [index, socket] of stalled.entries()) if (index % 4 === 3) socket.write(flight.subarray(at, at + 1))
      at++
    }, 100)
    let served = 0
    try {
      while (ended < stalled.length) {
        served += (await ask(`${url}/health`, { ca: authority.cert })).status === 200 ? 1 : 0
        expect(at, 'a quarter of the bytes that would do').to.be.below(flight.length / 2)
        await pause(10)
      }
    } finally {
      clearInterval(dripping)
    }
    expect(served, 'requests while they stalled').to.be.greaterThan(0)
    expect(new Set(handshakeFailures(log).map(({ reason }) => reason))).to.deep.equal(
      new Set(['ERR_TLS_HANDSHAKE_TIMEOUT']),
    )
  })

  it('do not delay shutdown', async () => {
    const { host, url } = await startSecure(pair, { tls: { handshakeTimeout: '1h' } })
    const stalled = await Promise.all(Array.from({ length: 20 }, () => connectTo(url)))
    const flight = await firstFlight()
    for (const socket of stalled) socket.resume().write(flight)
    await Promise.all(stalled.map(socket => once(socket, 'data')))
    const closed = Promise.all(stalled.map(socket => once(socket, 'close')))
    await host.close({ grace: 100 })
    await closed
  })
})

describe('TLS connections', () => {
  it('are closed and counted if their readers stall', async () => {
    const { url, log } = await startSecure(pair, { toolsets: { all: [large] }, http: { writeTimeout: 300 } })
    const { headers, body } = modernRequest('tools/call', { name: 'large', arguments: {} })
    const sockets = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const socket = await openSecure(url, authority)
        socket.pause()
        socket.write(requestBytes(url, body, { headers }))
        return socket
      }),
    )
    const closed = () =>
      log.filter(({ code }) => code === 'MH1309').reduce((total, { connections }) => total + Number(connections), 0)
    await eventually('all of them given up', closed, count => count === sockets.length)
    const read = await Promise.all(sockets.map(async socket => (await readToEnd(socket.resume())).length))
    expect(Math.max(...read)).to.be.below(LARGE)
    expect((await ask(`${url}/health`, { ca: authority.cert })).status).to.equal(200)
  })

  for (const [kind, meta, handOver] of [
    ['JSON', undefined, true],
    ['a stream', createMeta({ progressToken: 'p' }), false],
  ] as const) {
    it(`deliver a slow response at shutdown: ${kind}, ${handOver ? 'handing over' : 'at once'}`, async () => {
      const http = { keepAliveTimeout: 100 }
      const { host, url } = await startSecure(pair, { toolsets: { all: [large] }, http })
      const { headers, body } = modernRequest('tools/call', { name: 'large', arguments: {} }, { ...(meta && { meta }) })
      const socket = await openSecure(url, authority)
      socket.write(requestBytes(url, body, { headers: { ...headers, Connection: 'keep-alive' } }))
      await once(socket, 'readable')
      const closed = host.close({ handOver })
      await eventually('the port is left', () => isLeft(url))
      const answer = parseAnswer(await readToEnd(socket.resume()))
      await closed
      expect(answer.status).to.equal(200)
      expect(answer.body.length).to.be.greaterThan(LARGE)
    })
  }

  it('are closed after one more response at port hand-over, also during a handshake', async () => {
    const { host, url } = await startSecure(pair, { http: { keepAliveTimeout: '1h' } })
    const request = requestHead(url, { method: 'GET', path: '/health', headers: { Connection: undefined } })
    const [used, fresh] = [await openSecure(url, authority), await openSecure(url, authority)]
    used.write(request)
    expect(String((await once(used, 'data'))[0])).to.match(/^HTTP\/1\.1 200[\s\S]*\r\nConnection: keep-alive/)
    const below = await connectTo(url)
    await eventually('it is accepted', () => connectTo(url).then(socket => socket.destroy() !== undefined))
    const handedOver = host.handOver()
    await eventually('the port is left', () => isLeft(url))
    const late = connect({ socket: below, ca: authority.cert, servername: 'localhost' })
    await once(late, 'secureConnect')
    for (const socket of [used, fresh, late] as TLSSocket[]) {
      const answer = readToEnd(socket)
      socket.write(request)
      expect(await answer).to.match(/^HTTP\/1\.1 200[\s\S]*\r\nConnection: close\r\n/)
    }
    await handedOver
    expect(await host.close()).to.deep.equal({ finished: 0, cancelled: 0 })
  })

  it('deliver the response of a running call at hand-over', async () => {
    const puppet = createPuppet()
    const { host, url } = await startSecure(pair, {
      toolsets: { all: [puppet.tool] },
      routes: { '/': { toolsets: 'all', stateless: true } },
      http: { keepAliveTimeout: 500 },
    })
    const running = call(url, { ca: authority.cert }, 'puppet', { name: 'running' })
    const { finish } = await puppet.call('running')
    const handedOver = host.handOver()
    await eventually('the port is left', () => isLeft(url))
    finish('done')
    expect((await running).status).to.equal(200)
    await handedOver
    await host.close()
  })

  it('get 408 for slow requests and are closed after the keep-alive timeout', async () => {
    const { url } = await startSecure(pair, { http: { requestTimeout: 2_000, keepAliveTimeout: 300 } })
    const slow = await openSecure(url, authority)
    slow.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Le')
    expect(parseAnswer(await readToEnd(slow)).status).to.equal(408)
    const idle = await openSecure(url, authority)
    idle.write(requestHead(url, { method: 'GET', path: '/health', headers: { Connection: undefined } }))
    expect(parseAnswer(await readToEnd(idle)).status).to.equal(200)
  })

  it('get the response to a rejected body while still sending it', async () => {
    const { url } = await startSecure(pair, { http: { maxBodySize: '1kb' } })
    const socket = await openSecure(url, authority)
    const { headers, body } = modernRequest('tools/call', {
      name: 'echo',
      arguments: { text: text.slice(0, 5_000_000) },
    })
    socket.write(requestBytes(url, body, { headers: { ...headers, Connection: 'keep-alive' } }))
    let answer = ''
    socket.setEncoding('utf8').on('data', chunk => {
      answer += chunk
    })
    await once(socket, 'end')
    expect(parseAnswer(answer).status).to.equal(413)
    socket.destroy()
  })

  it('close after the current response if requests are pipelined', async () => {
    const { url } = await startSecure(pair, CONFIG)
    const socket = await openSecure(url, authority)
    const requests = Array.from({ length: 5 }, (_, index) => {
      const { headers, body } = modernRequest('tools/call', { name: 'echo', arguments: { text: `number ${index}.` } })
      return requestBytes(url, body, { headers: { ...headers, Connection: 'keep-alive' } })
    })
    socket.write(Buffer.concat(requests))
    const text = await readToEnd(socket)
    expect(text.match(/HTTP\/1\.1 \d+/g)).to.deep.equal(['HTTP/1.1 200', 'HTTP/1.1 503'])
    expect(text.match(/number \d+/)?.[0]).to.equal('number 0')
  })

  it('can be cut at any point without errors', async () => {
    const { url, log } = await startSecure(pair)
    const { headers, body } = modernRequest('tools/call', { name: 'echo', arguments: {} })
    for (let length = 1; length < 400; length += 13) {
      const socket = await openSecure(url, authority)
      socket.write(requestBytes(url, body, { headers }).subarray(0, length * 2))
      if (length % 2 === 0) await pause(1)
      socket.destroy()
    }
    expect((await ask(`${url}/health`, { ca: authority.cert })).status).to.equal(200)
    expect(log.filter(({ level }) => level === 'error')).to.deep.equal([])
  })
})
