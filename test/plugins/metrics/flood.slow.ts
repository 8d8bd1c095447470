// Floods of metrics requests: connection limits per address, shared renders, and unaffected calls.
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { shareResults } from '../../../plugins/metrics/exposition.ts'
import { MAX_CONNECTIONS, MAX_PER_ADDRESS } from '../../../plugins/metrics/metrics-server.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { eventually } from '../../support/eventually.ts'
import { repeatDuring } from '../../support/repeat-during.ts'
import { modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { type Metered, scrapeOf, startMetered } from './scrape.ts'

const open: Socket[] = []
afterEach(async () => {
  for (const socket of open.splice(0)) socket.destroy()
  await stopHosts()
})

const config = {
  toolsets: { all: [defineTool({ name: 'say', handler: () => 'said' })] },
  routes: { '/mcp': { toolsets: 'all' } },
}
const GET = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** With a figure that counts how often it is read. */
async function startCounted(options: object = {}): Promise<Metered & { renders(): number }> {
  let reads = 0
  const counted = plugin(host => host.metrics.gauge({ name: 'reads', help: 'Reads.' }, () => ++reads))
  const metered = await startMetered({ ...config, plugins: { counted } }, options)
  return { ...metered, renders: () => reads }
}

function connectTo(address: string, from: Partial<TcpNetConnectOpts> = {}): Socket {
  const { port, hostname } = new URL(address)
  const socket = connect({ ...from, port: Number(port), host: hostname })
  // Whoever is closed while it writes is reset.
  socket.on('error', () => undefined)
  open.push(socket)
  return socket
}

/** Sends `count` requests at once; resolves with how many were answered, when all are or the connection is closed. */
function flood(address: string, count: number, request = GET): Promise<number> {
  const socket = connectTo(address)
  let answered = 0
  return new Promise(resolve => {
    socket.on('data', chunk => {
      answered += chunk.toString('latin1').split('HTTP/1.1 200').length - 1
      if (answered >= count) resolve(answered)
    })
    socket.once('close', () => resolve(answered))
    socket.write(request.repeat(count))
  })
}

/** Sends `count` requests, each after the response to the previous one; resolves with how many were answered. */
async function askInTurn(address: string, count: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let answered = 0
  try {
    while (answered < count) {
      const [response] = (await once(get(address, { agent }), 'response')) as [IncomingMessage]
      expect(response.statusCode).to.equal(200)
      await once(response.resume(), 'end')
      answered++
    }
  } finally {
    agent.destroy()
  }
  return answered
}

/** Connections that send nothing, the oldest first. */
async function connectAll(address: string, count: number): Promise<Socket[]> {
  const all: Socket[] = []
  for (let at = 0; at < count; at++) {
    const socket = connectTo(address)
    await once(socket, 'connect')
    all.push(socket)
  }
  return all
}

const TOKEN = 'a token of more than 16'
const headers = { Authorization: `Bearer ${TOKEN}` }

/** What the answer says, once the connection is closed. */
async function answerTo(socket: Socket, request: string): Promise<string> {
  let text = ''
  socket.on('data', chunk => {
    text += String(chunk)
  })
  socket.write(request)
  await once(socket, 'close')
  return text
}

describe('Metrics flood without the token', () => {
  it('closes refused connections, for each kind of refusal', async () => {
    const { address } = await startCounted({ token: TOKEN })
    const open = await startCounted()
    const own = `Host: localhost\r\nAuthorization: Bearer ${TOKEN}`
    for (const [status, at, request] of [
      [401, address, GET],
      [403, open.address, GET.replace('localhost', 'page.example')],
      [404, address, `GET /other HTTP/1.1\r\n${own}\r\n\r\n`],
      [405, address, `DELETE /metrics HTTP/1.1\r\n${own}\r\n\r\n`],
    ] as const) {
      const text = await answerTo(connectTo(at), request)
      expect(text).to.match(new RegExp(`^HTTP/1.1 ${status} [^]*\r\nConnection: close\r\n`))
    }
  })

  it('does not block the scraper on the same address', async () => {
    const { address } = await startCounted({ token: TOKEN })
    let came = 0
    for (let wave = 0; wave < 10; wave++) {
      const all = await connectAll(address, MAX_CONNECTIONS + 6)
      for (const socket of all) socket.write(came++ % 2 ? GET : GET.slice(0, 10))
      const samples = await scrapeOf(address, headers)
      expect(samples.length).to.be.above(0)
    }
    expect(came).to.equal(10 * (MAX_CONNECTIONS + 6))
  })

  it('does not block the scraper on another address', async () => {
    const { address } = await startCounted({ token: TOKEN })
    let came = 0
    let isOver = false
    function come() {
      if (isOver) return
      const socket = connectTo(address, { localAddress: '127.0.0.2' }).resume()
      if (came++ % 2) socket.write(GET)
      socket.once('close', () => {
        open.splice(open.indexOf(socket), 1)
        setImmediate(come)
      })
    }
    for (let count = 0; count < MAX_CONNECTIONS * 2; count++) come()
    let scrapes = 0
    const scrape = async () => {
      const samples = await scrapeOf(address, { ...headers, Connection: 'close' })
      if (samples.length > 0) scrapes++
      return scrapes >= 10 && came >= 10 * MAX_CONNECTIONS
    }
    await eventually('ten scrapes during the flood', scrape).finally(() => {
      isOver = true
    })
  })

  it('limits connections per address, and the newest replaces the oldest', async () => {
    const { address } = await startCounted({ token: TOKEN })
    const all = await connectAll(address, MAX_PER_ADDRESS + 2)
    const gone = all.slice(0, 2)
    await Promise.all(gone.map(socket => socket.destroyed || once(socket, 'close')))
    expect(all.slice(2).filter(socket => socket.destroyed)).to.have.length(0)
  })
})

describe('Metrics flood', () => {
  it('shares renders, and calls are answered during the flood', async () => {
    const { address, url, renders } = await startCounted()
    const [connections, requests] = [50, 40]
    const floodAll = () => Promise.all(Array.from({ length: connections }, () => askInTurn(address, requests)))
    let calls = 0
    const callTool = async () => {
      const { status } = await modern(`${url}/mcp`, 'tools/call', { name: 'say' })
      expect(status).to.equal(200)
      calls++
    }
    const answered = (await repeatDuring(callTool, floodAll)).reduce((sum, count) => sum + count, 0)
    expect(answered).to.equal(connections * requests)
    expect(renders()).to.be.at.most(answered / 10)
    expect(calls).to.be.at.least(10)
  })

  it('closes a connection that pipelines too many requests', async () => {
    const { address, renders } = await startCounted()
    expect(await flood(address, 200)).to.be.below(200)
    expect(renders()).to.be.below(200)
    expect((await fetch(address)).status).to.equal(200)
  })

  it('limits connections, and the oldest unanswered one is evicted', async () => {
    const { address } = await startCounted()
    const [oldest, ...others] = await connectAll(address, MAX_CONNECTIONS)
    if (!oldest) throw new Error('no connection')
    expect(await flood(address, 1)).to.equal(1)
    if (!oldest.destroyed) await once(oldest, 'close')
    expect(others.filter(socket => socket.destroyed)).to.have.length(0)
  })

  it('evicts no answered reader while all connections are in use', async () => {
    const { address } = await startCounted()
    const readers = await connectAll(address, MAX_CONNECTIONS)
    const answered = Promise.all(readers.map(socket => once(socket, 'data')))
    for (const socket of readers) socket.write(GET)
    await answered
    await once(connectTo(address), 'close')
    expect(readers.filter(socket => socket.destroyed)).to.have.length(0)
    for (const socket of readers.slice(0, 2)) {
      socket.end()
      await once(socket, 'close')
    }
    expect(await flood(address, 1)).to.equal(1)
  })

  it('does not read request bodies', async () => {
    const { address } = await startCounted()
    const head = (verb: string) => `${verb} /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n`
    for (const verb of ['GET', 'POST']) {
      const socket = connectTo(address)
      socket.write(head(verb))
      let text = ''
      socket.on('data', chunk => {
        text += String(chunk)
      })
      await once(socket, 'close')
      expect(text).to.match(/^HTTP\/1\.1 (200|405) [\s\S]*\r\nConnection: close\r\n/)
    }
  })
})

describe('Shared computation of concurrent requests', () => {
  it('runs once for all waiting requests, one run at a time', async () => {
    const order: string[] = []
    const get = shareResults(async (key: string) => {
      order.push(`${key} begins`)
      await new Promise(resolve => setImmediate(resolve))
      order.push(`${key} ends`)
      if (key === 'b') throw new Error('b')
      return key
    })
    const got = await Promise.allSettled([get('a'), get('b'), get('a'), get('b'), get('c')])
    expect(got.map(({ status }) => status)).to.deep.equal([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ])
    expect(order).to.deep.equal(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
    expect(await get('a')).to.equal('a')
    expect(order).to.have.length(8)
  })
})
