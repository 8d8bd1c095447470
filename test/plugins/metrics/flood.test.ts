// Readers of the metrics who ask without an end: calls are answered meanwhile, and the figures are read a bounded number of times.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { MOST_CONNECTIONS } from '../../../plugins/metrics/own-port.ts'
import { shareInTurn } from '../../../plugins/metrics/share-in-turn.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { type Metered, startMetered } from './scrape.ts'

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
  const counted = plugin(host => host.figures.gauge({ name: 'reads', help: 'Reads.' }, () => ++reads))
  const metered = await startMetered({ ...config, plugins: { counted } }, options)
  return { ...metered, renders: () => reads }
}

function connectTo(address: string): Socket {
  const { port, hostname } = new URL(address)
  const socket = connect(Number(port), hostname)
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

describe('a flood of readers of the metrics', function () {
  this.timeout(60_000)

  it('shares what is read, and calls are answered meanwhile', async () => {
    const { address, url, renders } = await startCounted()
    const [connections, ahead] = [50, 40]
    let flooding = true
    const floods = Promise.all(Array.from({ length: connections }, () => flood(address, ahead))).finally(() => {
      flooding = false
    })
    let calls = 0
    while (flooding) {
      const { status } = await modern(`${url}/mcp`, 'tools/call', { name: 'say' })
      expect(status).to.equal(200)
      calls++
    }
    const answered = (await floods).reduce((sum, count) => sum + count, 0)
    console.log(`      ${answered} answers of ${renders()} renders; ${calls} calls meanwhile`)
    expect(answered).to.be.at.least(connections * ahead * 0.99)
    expect(renders()).to.be.at.most(answered / 10)
    expect(calls).to.be.at.least(10)
  })

  it('is closed where a connection sends more ahead than it may', async () => {
    const { address, renders } = await startCounted()
    expect(await flood(address, 200)).to.be.below(200)
    expect(renders()).to.be.below(200)
    expect((await fetch(address)).status).to.equal(200)
  })

  it('has so many connections, and no more', async () => {
    const { address } = await startCounted()
    const all = Array.from({ length: MOST_CONNECTIONS }, () => connectTo(address))
    await Promise.all(all.map(socket => once(socket, 'connect')))
    const late = connectTo(address)
    await once(late, 'close')
    for (const socket of all.splice(0, 2)) {
      socket.end()
      await once(socket, 'close')
    }
    expect(await flood(address, 1)).to.equal(1)
  })

  it('gets no body read', async () => {
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

describe('what many ask for at once', () => {
  it('is made once for all, and one thing at a time', async () => {
    const order: string[] = []
    const get = shareInTurn(async (key: string) => {
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
