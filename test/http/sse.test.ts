// Tests SSE streams on real responses: framing, backpressure and keep-alive, with a simulated keep-alive clock.
import { once } from 'node:events'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { mock } from 'node:test'
import { expect } from 'chai'
import { createHttpServer } from '../../core/http/create-server.ts'
import {
  type EventStream,
  KEEP_ALIVE_GROUPS,
  KEEP_ALIVE_INTERVAL,
  LARGE_TEXT,
  MAX_PENDING,
  openEventStream,
} from '../../core/http/sse.ts'
import { openSocket, readToEnd, requestHead } from '../support/raw-http.ts'

interface Opened {
  readonly response: Response
  readonly stream: EventStream
  readonly res: ServerResponse
  readonly stalled: number[]
}

const LIMITS = { requestTimeout: 10_000, keepAliveTimeout: 5_000, writeTimeout: 10_000 }
const NEWS = { pipelined: () => undefined, slowReaders: () => undefined }

const KINDS: ReadonlyArray<readonly [string, (serve: RequestListener) => Server]> = [
  ['SSE stream of the host server', serve => createHttpServer(serve, LIMITS, NEWS).server],
  ['SSE stream of another HTTP server', serve => createServer(serve)],
]

const servers: Server[] = []
let url: string
let accept: (res: ServerResponse) => void

async function startServer(create: (serve: RequestListener) => Server) {
  const server = create((_req, res) => accept(res)).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

after(async () => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
})

/** A stream with both of its ends. The response is there before anything was sent. */
async function openStream(): Promise<Opened> {
  const stalled: number[] = []
  const opened = new Promise<Pick<Opened, 'stream' | 'res'>>(resolve => {
    accept = res =>
      resolve({ res, stream: openEventStream(res, { log: { warn: ({ waiting }) => stalled.push(waiting) } }) })
  })
  const response = await fetch(url)
  return { response, stalled, ...(await opened) }
}

for (const [kind, create] of KINDS) {
  describe(kind, () => {
    before(() => startServer(create))

    it('flushes headers immediately', async () => {
      const { response, stream } = await openStream()
      expect(response.status).to.equal(200)
      expect(response.headers.get('content-type')).to.equal('text/event-stream')
      expect(response.headers.get('cache-control')).to.equal('no-cache, no-transform')
      expect(response.headers.get('x-accel-buffering')).to.equal('no')
      stream.end()
      expect(await response.text()).to.equal('')
    })

    it('sends each message as one event in order, with the final message last', async () => {
      const { response, stream } = await openStream()
      expect(stream.send('{"a":1}')).to.equal(true)
      expect(stream.send('{"b":2}')).to.equal(true)
      stream.endWith('{"c":3}')
      const event = (data: string) => `event: message\ndata: ${data}\n\n`
      expect(await response.text()).to.equal(event('{"a":1}') + event('{"b":2}') + event('{"c":3}'))
    })

    it('ignores messages after its end and returns false', async () => {
      const { response, stream } = await openStream()
      stream.end()
      expect(stream.send('{}')).to.equal(false)
      expect(await response.text()).to.equal('')
    })

    it('ignores messages after a disconnect and returns false', async () => {
      const { response, stream, res, stalled } = await openStream()
      await response.body?.cancel()
      await once(res, 'close')
      expect(stream.send('{}')).to.equal(false)
      expect(stalled).to.deep.equal([])
    })

    it('accepts one message above the buffer limit for an active reader', async () => {
      const { response, stream, stalled } = await openStream()
      const large = 'x'.repeat(MAX_PENDING + 1)
      expect(stream.send(large)).to.equal(true)
      stream.endWith('last')
      const text = await response.text()
      expect(text.length).to.be.greaterThan(large.length)
      expect(text.endsWith('data: last\n\n')).to.equal(true)
      expect(stalled).to.deep.equal([])
    })

    it('is closed and reported once if a stalled reader exceeds the buffer limit', async () => {
      const stalled: number[] = []
      const opened = new Promise<[ServerResponse, EventStream]>(resolve => {
        accept = res => resolve([res, openEventStream(res, { log: { warn: ({ waiting }) => stalled.push(waiting) } })])
      })
      const socket = await openSocket(url)
      socket.pause()
      socket.write(requestHead(url, { method: 'GET' }))
      const [res, stream] = await opened
      const message = 'x'.repeat(256 * 1024)
      for (let sent = 0; sent < 1_000 && stream.send(message); sent++) await new Promise(setImmediate)
      expect(res.destroyed).to.equal(true)
      expect(stream.send(message)).to.equal(false)
      expect(stalled).to.have.length(1)
      expect(stalled[0]).to.be.within(MAX_PENDING + 1, MAX_PENDING + 2 * message.length)
      socket.resume()
      await readToEnd(socket)
    })

    it('sends identical bytes for ASCII, Latin-1 and other text of any size', async () => {
      const { response, stream } = await openStream()
      const messages = ['plain', 'caf\u00e9', '\u4f60\u597d \ud83d\ude00'].flatMap(text => [
        text,
        text.repeat(LARGE_TEXT),
      ])
      const text = response.text()
      for (const [index, message] of messages.entries()) {
        stream.send(message, `s.${index}`)
        await stream.drained()
      }
      stream.event({ id: 's.9', data: '' })
      stream.endWith(messages.at(-1) ?? '')
      const sent = messages.map((message, index) => `event: message\nid: s.${index}\ndata: ${message}\n\n`)
      expect(await text).to.equal(
        [...sent, 'id: s.9\ndata: \n\n', `event: message\ndata: ${messages.at(-1)}\n\n`].join(''),
      )
    })

    it('keeps the order of events and direct writes to the response', async () => {
      const { response, stream, res } = await openStream()
      stream.send('1')
      res.write(': by itself\n\n')
      stream.send('2')
      stream.endWith('3')
      expect((await response.text()).match(/by itself|\d/g)).to.deep.equal(['1', 'by itself', '2', '3'])
    })

    it('drains when the reader consumed the buffered data', async () => {
      const { response, stream } = await openStream()
      stream.send('x'.repeat(MAX_PENDING / 2))
      const drained = stream.drained()
      const text = response.text()
      await drained
      stream.end()
      expect((await text).length).to.be.greaterThan(MAX_PENDING / 2)
    })
  })
}

/** A stream of a response that is none: it only counts its comments. */
function openSilent() {
  let comments = 0
  const res = Object.assign(new PassThrough(), { writeHead: () => res, flushHeaders: () => undefined })
  res.on('data', chunk => {
    if (String(chunk) === ': keep-alive\n\n') comments++
  })
  const stream = openEventStream(res as unknown as ServerResponse, { log: { warn: () => undefined } })
  return { stream, comments: () => comments }
}

describe('SSE keep-alive', () => {
  before(() => startServer(KINDS[0]?.[1] ?? createServer))
  beforeEach(() => mock.timers.enable({ apis: ['setInterval'] }))
  afterEach(() => mock.timers.reset())

  it(`sends a comment on every open stream every ${KEEP_ALIVE_INTERVAL} ms`, async () => {
    const [first, second] = [await openStream(), await openStream()]
    mock.timers.tick(KEEP_ALIVE_INTERVAL)
    first.stream.send('{}')
    mock.timers.tick(KEEP_ALIVE_INTERVAL)
    first.stream.end()
    second.stream.end()
    const comment = ': keep-alive\n\n'
    expect(await first.response.text()).to.equal(`${comment}event: message\ndata: {}\n\n${comment}`)
    expect(await second.response.text()).to.equal(comment + comment)
  })

  it('sends no comment early or on an ended stream', async () => {
    const [ended, open] = [await openStream(), await openStream()]
    mock.timers.tick(KEEP_ALIVE_INTERVAL - 1)
    ended.stream.end()
    mock.timers.tick(1)
    open.stream.end()
    expect(await ended.response.text()).to.equal('')
    expect(await open.response.text()).to.equal(': keep-alive\n\n')
  })

  it('restarts after a period without streams', async () => {
    const before = await openStream()
    before.stream.end()
    await before.response.text()
    mock.timers.tick(KEEP_ALIVE_INTERVAL * 3)
    const { stream, response } = await openStream()
    mock.timers.tick(KEEP_ALIVE_INTERVAL)
    stream.end()
    expect(await response.text()).to.equal(': keep-alive\n\n')
  })

  it('spreads comments of many streams over several event loop turns', async () => {
    const streams = await Promise.all(Array.from({ length: 3 * KEEP_ALIVE_GROUPS }, openSilent))
    const waiting = () => streams.reduce((sum, { comments }) => sum + comments(), 0)
    const perTurn: number[] = []
    for (let turn = 0; turn < KEEP_ALIVE_GROUPS; turn++) {
      const before = waiting()
      mock.timers.tick(KEEP_ALIVE_INTERVAL / KEEP_ALIVE_GROUPS)
      perTurn.push(waiting() - before)
    }
    expect(new Set(perTurn)).to.deep.equal(new Set([3]))
    for (const { stream } of streams) stream.end()
  })
})
