// Tests that rejected requests with large bodies get their response without the body being read.
import { channel } from 'node:diagnostics_channel'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { expect } from 'chai'
import { defineTool, HostError } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const MIB = 1024 * 1024
const BODY = 10 * MIB
/** Node reads so much at once; its buffer takes one or two of these before it stops. */
const ONE_READ = 64 * 1024
const FEW_READS = 3 * ONE_READ

const begun = channel('http.server.request.start')
let socket: Socket | undefined
const note = (message: unknown) => {
  socket = (message as { readonly socket: Socket }).socket
}

/** Refuses by what a header of the request says. */
const refusing = definePlugin({
  setup(host) {
    host.authenticate((ctx, next) => {
      const kind = ctx.get('X-Refuse')
      if (kind === 'unauthorized' || kind === 'forbidden' || kind === 'tooManyRequests') throw new HostError(kind)
      return next()
    })
    // Begins its answer before it reads.
    host.mount('/echo', ctx => {
      ctx.respond = false
      ctx.req.pipe(ctx.res.writeHead(200))
    })
  },
})

const start = (maxBodySize: number) =>
  startHost({
    toolsets: { all: [defineTool({ name: 'here', handler: () => 'here' })] },
    routes: { '/': { toolsets: 'all' } },
    http: { maxBodySize },
    plugins: { 'transport-streamable': {}, refusing: refusing() },
  })

interface Refused {
  readonly status: number | undefined
  /** The host closed the connection. */
  readonly closed: boolean
  /** Bytes of the answer's body. */
  readonly got: number
  /** Bytes that the host read of the request. */
  readonly read: number
}

/** Sends `size` bytes as fast as they are taken, from a client that loses the answer where its connection is reset. */
function send(url: string, size: number, headers: Record<string, string> = {}, method = 'POST'): Promise<Refused> {
  return new Promise((resolve, reject) => {
    const all = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers }
    const agent = new Agent({ keepAlive: true })
    const req = request(url, { method, agent, headers: all }, res => {
      const { statusCode: status } = res
      let got = 0
      res.on('data', chunk => {
        got += chunk.length
      })
      const end = (closed: boolean) => () => {
        resolve({ status, closed, got, read: socket?.bytesRead ?? 0 })
        req.destroy()
        agent.destroy()
      }
      res.socket.once('end', end(true))
      // The client would use the connection again.
      res.socket.once('free', end(false))
    })
    req.on('error', reject)
    const chunk = Buffer.alloc(64 * 1024, 'x')
    let left = size
    function write() {
      while (left > 0) {
        left -= chunk.length
        if (!req.write(chunk)) return void req.once('drain', write)
      }
      req.end()
    }
    write()
  })
}

type Refusal = readonly [status: number, path: string, headers: Record<string, string>, method?: string]

const REFUSALS: readonly Refusal[] = [
  [401, '/', { 'X-Refuse': 'unauthorized' }],
  [403, '/', { 'X-Refuse': 'forbidden' }],
  [403, '/', { Origin: 'https://evil.example' }],
  [404, '/nothing', {}],
  [405, '/', {}, 'PUT'],
  [415, '/', { 'Content-Type': 'text/plain' }],
  [429, '/', { 'X-Refuse': 'tooManyRequests' }],
]

describe('Rejected 10 MiB request body', () => {
  const length = { 'Content-Length': String(BODY) }

  before(() => begun.subscribe(note))
  after(() => begun.unsubscribe(note))
  afterEach(stopHosts)

  /** As often as a reset would hide some of the answers. */
  async function expectLeft(url: string, [status, path, headers, method]: Refusal, most: number) {
    for (let time = 0; time < 3; time++) {
      const { read, got, ...answer } = await send(`${url}${path}`, BODY, headers, method)
      expect(answer).to.deep.equal({ status, closed: true })
      expect(got).to.be.greaterThan(0)
      expect(read).to.be.at.most(most)
    }
  }

  for (const [status, path, headers, method = 'POST'] of REFUSALS) {
    it(`is not read: ${status} for ${method} ${path} ${JSON.stringify(headers)}`, async () => {
      const { url } = await start(2 * BODY)
      await expectLeft(url, [status, path, { ...headers, ...length }, method], FEW_READS)
    })
  }

  it('is not read if Content-Length exceeds the limit', async () => {
    const { url } = await start(MIB)
    await expectLeft(url, [413, '/', length], FEW_READS)
  })

  it('is read up to the limit with chunked encoding', async () => {
    const { url } = await start(MIB)
    await expectLeft(url, [413, '/', {}], MIB + FEW_READS)
  })
})

describe('Request body read after the response', () => {
  afterEach(stopHosts)

  it('keeps the connection alive for a small rejected body', async () => {
    const { url } = await start(MIB)
    const headers = { 'X-Refuse': 'unauthorized', 'Content-Length': String(ONE_READ) }
    expect(await send(url, ONE_READ, headers)).to.include({ status: 401, closed: false })
  })

  it('reaches an app that reads it after responding', async () => {
    const { url } = await start(BODY)
    const headers = { 'Content-Length': String(MIB) }
    expect(await send(`${url}/echo`, MIB, headers)).to.include({ status: 200, got: MIB })
  })
})
