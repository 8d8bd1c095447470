// Tests HTTP pipelining: sequential processing, response order, limits and disconnects.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { expect } from 'chai'
import { serveInTurn } from '../../core/http/in-turn.ts'
import { MAX_HELD_AHEAD, MAX_SENT_AHEAD } from '../../core/http/limits.ts'
import { createGate } from '../support/gate.ts'
import { openSocket, readToEnd } from '../support/raw-http.ts'

let server: Server
let url: string
let begun: string[]
let refused: Socket[]
let serve: (req: IncomingMessage, res: ServerResponse) => void

beforeEach(async () => {
  begun = []
  refused = []
  server = createServer(
    serveInTurn(
      (req, res) => {
        begun.push(String(req.url))
        serve(req, res)
      },
      socket => refused.push(socket),
    ),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
})

const names = (count: number) => Array.from({ length: count }, (_, index) => `/${index}`)
const gets = (paths: readonly string[], headers = '') =>
  paths.map(path => `GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`).join('')
const LAST = 'GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
/** What is cut while it still sends may be told so. */
const reset = () => ''
const bodies = (text: string) => [...text.matchAll(/\r\n\r\n(\/[a-z0-9]+)/g)].map(([, body]) => body)

describe('HTTP pipelining', () => {
  it('processes requests sequentially and responds in order', async () => {
    let open = 0
    let most = 0
    serve = (req, res) => {
      open++
      most = Math.max(most, open)
      res.once('close', () => open--)
      const answer = () => res.end(String(req.url))
      // Some at once, some later: later ones would overtake.
      if (begun.length % 2 === 0) answer()
      else setImmediate(answer)
    }
    const socket = await openSocket(url)
    const text = readToEnd(socket)
    socket.write(gets(names(60)) + LAST)
    expect(bodies(await text)).to.deep.equal([...names(60), '/last'])
    expect([begun.length, most]).to.deep.equal([61, 1])
  })

  it('processes requests with bodies sequentially, for any chunking', async () => {
    serve = async (req, res) => {
      let size = 0
      for await (const chunk of req) size += chunk.length
      res.end(`/${size}`)
    }
    const socket = await openSocket(url)
    const text = readToEnd(socket)
    const sizes = [0, 10, 200_000, 3, 70_000]
    const all = Buffer.from(
      sizes.map(size => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(size)}`).join('') +
        LAST,
    )
    for (let from = 0; from < all.length; from += 33_333) {
      socket.write(all.subarray(from, from + 33_333))
      await new Promise(resolve => setImmediate(resolve))
    }
    expect(bodies(await text)).to.deep.equal([...sizes, 0].map(size => `/${size}`))
  })

  it('drops queued requests when the client disconnects', async () => {
    const first = createGate<ServerResponse>()
    serve = (_req, res) => first.open(res)
    const socket = await openSocket(url)
    socket.write(gets(names(MAX_SENT_AHEAD)))
    const res = await first.opened
    const closed = once(res, 'close')
    socket.destroy()
    await closed
    await new Promise(resolve => setImmediate(resolve))
    expect(begun).to.deep.equal(['/0'])
  })

  it('drops queued requests after a response that closes the connection', async () => {
    serve = (_req, res) => void setImmediate(() => res.setHeader('Connection', 'close').end('/only'))
    const socket = await openSocket(url)
    const text = readToEnd(socket)
    socket.write(gets(names(5)))
    expect(bodies(await text)).to.deep.equal(['/only'])
    expect(begun).to.deep.equal(['/0'])
  })

  it(`closes the connection for more than ${MAX_SENT_AHEAD} queued requests`, async () => {
    serve = () => undefined
    const socket = await openSocket(url)
    const text = readToEnd(socket)
    socket.write(gets(names(MAX_SENT_AHEAD + 2)))
    expect(await text).to.equal('')
    expect([begun.length, refused.length]).to.deep.equal([1, 1])
  })

  it(`closes the connection for more than ${MAX_HELD_AHEAD} queued bytes, including short headers`, async () => {
    serve = () => undefined
    // Node takes 1,000 headers at most; newer ones refuse more.
    for (const headers of ['a: 1\r\n'.repeat(900), `a: ${'x'.repeat(15_000)}\r\n`]) {
      begun = []
      refused = []
      const socket = await openSocket(url)
      const text = readToEnd(socket)
      socket.write(gets(names(MAX_SENT_AHEAD), headers))
      expect(await text.catch(reset)).to.equal('')
      expect([begun.length, refused.length]).to.deep.equal([1, 1])
    }
  })

  it('closes the connection if queued bodies exceed the byte limit', async () => {
    serve = () => undefined
    const socket = await openSocket(url)
    const text = readToEnd(socket)
    const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12000\r\n\r\n${'x'.repeat(12_000)}`
    socket.write(post.repeat(MAX_SENT_AHEAD))
    expect(await text.catch(reset)).to.equal('')
    expect(refused).to.have.length(1)
  })

  it('closes the connection if a queued body consists of too many chunks', async () => {
    serve = () => undefined
    const socket = await openSocket(url)
    const text = readToEnd(socket)
    const post = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
    const body = `${'1\r\nx\r\n'.repeat(9_000)}0\r\n\r\n`
    socket.write(`${gets(['/0'])}${post}${body}${LAST}`)
    expect(await text.catch(reset)).to.equal('')
    expect(refused).to.have.length(1)
  })

  it('serves queued requests with tokens and browser-sized headers', async () => {
    serve = (req, res) => void setImmediate(() => res.end(String(req.url)))
    const headers = Array.from({ length: 20 }, (_, index) => `Header-${index}: ${'x'.repeat(60)}\r\n`).join('')
    const socket = await openSocket(url)
    const text = readToEnd(socket)
    const sent = names(MAX_SENT_AHEAD)
    socket.write(gets(sent, `${headers}Authorization: Bearer ${'x'.repeat(1_500)}\r\n`) + LAST)
    expect(bodies(await text)).to.deep.equal([...sent, '/last'])
    expect(refused).to.have.length(0)
  })

  it('counts and drops requests queued behind a response of Node.js itself', async () => {
    serve = (_req, res) => res.end()
    server.on('checkExpectation', (_req, res) => res.writeHead(417).end())
    const socket = await openSocket(url)
    const closed = once(socket, 'close')
    socket.resume()
    socket.write(gets(['/odd'], 'Expect: nope\r\n') + gets(names(MAX_SENT_AHEAD + 1)))
    await closed
    expect([begun.length, refused.length]).to.deep.equal([0, 1])
  })

  it('does not delay requests of other connections', async () => {
    serve = (req, res) => {
      if (req.url === '/quick') res.end('/quick')
    }
    const busy = await openSocket(url)
    busy.write(gets(names(3)))
    const other = await openSocket(url)
    const text = readToEnd(other)
    other.write(gets(['/quick'], 'Connection: close\r\n'))
    expect(bodies(await text)).to.deep.equal(['/quick'])
    busy.destroy()
  })
})
