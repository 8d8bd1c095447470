// Tests HTTP pipelining: one request of a connection is served, requests behind it are refused.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { expect } from 'chai'
import { createPipelineRefusal, MAX_PIPELINED } from '../../core/http/create-server.ts'
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
  const refuse = createPipelineRefusal(socket => refused.push(socket))
  server = createServer((req, res) => {
    if (!res.socket) return refuse(req, res)
    begun.push(String(req.url))
    serve(req, res)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
})

const names = (count: number) => Array.from({ length: count }, (_, index) => `/${index}`)
const gets = (paths: readonly string[]) => paths.map(path => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join('')
/** A client that still sends when the connection closes can get a reset. */
const reset = () => ''
const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
const respondLater = (req: IncomingMessage, res: ServerResponse) => void setImmediate(() => res.end(String(req.url)))

describe('HTTP pipelining', () => {
  it('sends the current response, refuses further requests and closes the connection', async () => {
    serve = respondLater
    const socket = await openSocket(url)
    const text = readToEnd(socket)
    socket.write(gets(names(1 + MAX_PIPELINED)))
    expect(await text).to.match(/^HTTP\/1\.1 200[\s\S]*\/0HTTP\/1\.1 503[\s\S]*\r\nConnection: close\r\n/)
    expect(statuses(await text)).to.deep.equal([200, 503])
    expect([begun, refused.length]).to.deep.equal([['/0'], 1])
  })

  it('serves sequential requests on one connection', async () => {
    serve = respondLater
    const socket = await openSocket(url)
    for (const path of names(3)) {
      socket.write(gets([path]))
      expect(String((await once(socket, 'data'))[0])).to.match(/^HTTP\/1\.1 200/)
    }
    socket.destroy()
    expect([begun, refused.length]).to.deep.equal([names(3), 0])
  })

  it('refuses requests with bodies of any size and chunking', async () => {
    serve = respondLater
    const chunked = `Transfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(50_000)}0\r\n\r\n`
    const sized = `Content-Length: 5000000\r\n\r\n${'x'.repeat(5_000_000)}`
    for (const body of [chunked, sized]) {
      const socket = await openSocket(url)
      const text = readToEnd(socket)
      socket.write(`${gets(['/0'])}POST /1 HTTP/1.1\r\nHost: a\r\n${body}`)
      await text.catch(reset)
    }
    expect([begun, refused.length]).to.deep.equal([['/0', '/0'], 2])
  })

  it('starts no refused request when the client disconnects', async () => {
    const first = createGate<ServerResponse>()
    serve = (_req, res) => first.open(res)
    const socket = await openSocket(url)
    socket.write(gets(names(MAX_PIPELINED)))
    const res = await first.opened
    const closed = once(res, 'close')
    socket.destroy()
    await closed
    await new Promise(resolve => setImmediate(resolve))
    expect(begun).to.deep.equal(['/0'])
  })

  it(`closes the connection at once for more than ${MAX_PIPELINED} refused requests`, async () => {
    serve = () => undefined
    const socket = await openSocket(url)
    const text = readToEnd(socket)
    socket.write(gets(names(2 + MAX_PIPELINED)))
    expect(await text.catch(reset)).to.equal('')
    expect([begun.length, refused.length]).to.deep.equal([1, 1])
  })

  it('does not delay requests of other connections', async () => {
    serve = (req, res) => {
      if (req.url === '/quick') res.end('/quick')
    }
    const busy = await openSocket(url)
    busy.write(gets(names(3)))
    const other = await openSocket(url)
    other.write(gets(['/quick']))
    expect(String((await once(other, 'data'))[0])).to.include('/quick')
    busy.destroy()
    other.destroy()
  })
})
