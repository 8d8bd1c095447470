// Every limit of the configuration: body size, request timeout, keep-alive, call timeout and fetch timeout.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import type { HttpSettings } from '../../../core/config/define-config.ts'
import { defineTool } from '../../../core/index.ts'
import { createCallFetch } from '../../../core/transport.ts'
import { createGate } from '../../support/gate.ts'
import { openSocket, parseAnswer, readToEnd, requestBytes, requestHead } from '../../support/raw-http.ts'
import { modern, modernRequest, post } from '../../support/rpc.ts'
import { startHost, stopHosts, type TestConfig } from '../../support/start-host.ts'

/** A server that accepts requests and answers none. */
let silent: Server
let silentUrl: string
before(async () => {
  silent = createServer(() => undefined).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  silentUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
})
after(async () => {
  await stopHosts()
  silent.closeAllConnections()
  silent.close()
  await once(silent, 'close')
})

let held = createGate()
let aborted = createGate<Error>()
const hang = (name: string, timeout?: string) =>
  defineTool({
    name,
    ...(timeout !== undefined && { timeout }),
    handler(_args, { signal }) {
      signal.addEventListener('abort', () => aborted.open(signal.reason), { once: true })
      return new Promise(() => undefined)
    },
  })
const patient = (name: string, timeout?: string) =>
  defineTool({
    name,
    ...(timeout !== undefined && { timeout }),
    async handler() {
      await held.opened
      return 'done'
    },
  })
const fetching = defineTool({
  name: 'fetching',
  async handler(_args, { fetch }) {
    try {
      await fetch(silentUrl)
      return 'answered'
    } catch (error) {
      return (error as Error).name
    }
  },
})
const careless = defineTool({ name: 'careless', handler: async (_args, { fetch }) => (await fetch(silentUrl)).text() })

const serve = (more: Partial<TestConfig>) =>
  startHost({
    toolsets: {
      all: [
        hang('hang'),
        hang('hang-briefly', '60ms'),
        patient('patient'),
        patient('very-patient', '1h'),
        fetching,
        careless,
      ],
    },
    routes: { '/': { toolsets: 'all' } },
    ...more,
  })
const serveHttp = (http: HttpSettings) => serve({ http })
const call = (url: string, name: string) => modern(url, 'tools/call', { name })

describe('Limits', () => {
  beforeEach(() => {
    held = createGate()
    aborted = createGate<Error>()
  })

  describe('http.maxBodySize', () => {
    it('defaults to 4 MB', async () => {
      const { url } = await serve({})
      const body = (size: number) => modernRequest('tools/list', { filler: 'x'.repeat(size) })
      const { headers, body: fits } = body(4 * 1024 * 1024 - 1_000)
      expect((await post(url, fits, headers)).status).to.equal(200)
      expect((await post(url, body(4 * 1024 * 1024).body, headers)).status).to.equal(413)
    })

    it('accepts a size with a unit, and counts bytes', async () => {
      const { url } = await serveHttp({ maxBodySize: '1kb' })
      const { headers, body } = modernRequest('tools/list', { filler: '' })
      const filled = (filler: string) => body.replace('"filler":""', `"filler":"${filler}"`)
      const room = 1024 - Buffer.byteLength(body)
      expect((await post(url, filled('x'.repeat(room)), headers)).status).to.equal(200)
      expect((await post(url, filled('x'.repeat(room + 1)), headers)).status).to.equal(413)
      expect((await post(url, filled('é'.repeat(room)), headers)).status).to.equal(413)
    })
  })

  describe('http.requestTimeout', () => {
    it('answers 408 to an incomplete body or head, and closes the connection', async () => {
      const { url } = await serveHttp({ requestTimeout: 200 })
      const unfinished = [
        `${requestHead(url, { headers: { 'Content-Length': '500' } })}{"jsonrpc"`,
        'POST / HTTP/1.1\r\nHo',
      ]
      const statuses = unfinished.map(async bytes => {
        const socket = await openSocket(url)
        const answer = readToEnd(socket)
        socket.write(bytes)
        return parseAnswer(await answer).status
      })
      expect(await Promise.all(statuses)).to.deep.equal([408, 408])
      expect((await modern(url, 'tools/list')).status).to.equal(200)
    })

    it('does not end a running call or its stream', async () => {
      const { url } = await serveHttp({ requestTimeout: 200 })
      const answer = call(url, 'patient')
      const slow = await openSocket(url)
      slow.write(requestHead(url, { headers: { 'Content-Length': '500' } }))
      // The limit has acted on a request that came later than the call.
      expect(parseAnswer(await readToEnd(slow)).status).to.equal(408)
      held.open()
      expect((await answer).message.result.content[0].text).to.equal('done')
    })
  })

  describe('http.keepAliveTimeout', () => {
    /** A connection that was kept after one answered request; resolves with what it received once it is closed. */
    async function keep(url: string) {
      const { headers, body } = modernRequest('tools/list')
      const socket = await openSocket(url)
      const closed = readToEnd(socket)
      const answered = once(socket, 'data')
      socket.write(requestBytes(url, body, { headers: { ...headers, Connection: 'keep-alive' } }))
      await answered
      return { socket, closed }
    }

    it('closes an idle connection on expiry, before one with a longer timeout', async () => {
      const brief = await keep((await serveHttp({ keepAliveTimeout: 100 })).url)
      const long = await keep((await serveHttp({ keepAliveTimeout: '1h' })).url)
      const { status, headers } = parseAnswer(await brief.closed)
      expect([status, headers.get('connection')]).to.deep.equal([200, 'keep-alive'])
      expect([long.socket.closed, long.socket.readableEnded]).to.deep.equal([false, false])
      long.socket.destroy()
      await long.closed
    })
  })

  describe('tools.callTimeout', () => {
    it('ends a call with an error that names the timeout, and aborts its signal', async () => {
      const { url, log } = await serve({ tools: { callTimeout: '60ms' } })
      const { status, message } = await call(url, 'hang')
      expect([status, message.result.isError]).to.deep.equal([200, true])
      expect(message.result.content[0].text).to.equal('hang: The call took too long: stopped after 60 ms')
      expect(await aborted.opened).to.be.an.instanceOf(Error)
      expect(log.filter(({ level }) => level === 'error')).to.deep.equal([])
    })

    it('is overridden by a shorter or longer tool timeout', async () => {
      const brief = await serve({ tools: { callTimeout: '60ms' } })
      const longer = call(brief.url, 'very-patient')
      expect((await call(brief.url, 'patient')).message.result.isError).to.equal(true)
      held.open()
      expect((await longer).message.result.content[0].text).to.equal('done')
      const long = await serve({ tools: { callTimeout: '1h' } })
      const { result } = (await call(long.url, 'hang-briefly')).message
      expect(result.content[0].text).to.include('stopped after 60 ms')
    })

    it('is off by default, and a tool timeout still applies', async () => {
      const { url } = await serve({})
      const patiently = call(url, 'patient')
      expect((await call(url, 'hang-briefly')).message.result.isError).to.equal(true)
      held.open()
      expect((await patiently).message.result.content[0].text).to.equal('done')
    })
  })

  describe('tools.fetchTimeout', () => {
    it('ends a ctx.fetch without response with an error that the tool can catch', async () => {
      const { url } = await serve({ tools: { fetchTimeout: '60ms' } })
      expect((await call(url, 'fetching')).message.result.content[0].text).to.equal('TimeoutError')
      const { result } = (await call(url, 'careless')).message
      expect([result.isError, result.content[0].text]).to.deep.equal([true, 'careless failed'])
    })

    it('ends a body that does not end, also after a garbage collection', async () => {
      const started = createServer((_, response) => void response.write('x')).listen(0, '127.0.0.1')
      await once(started, 'listening')
      const { port } = started.address() as AddressInfo
      setFlagsFromString('--expose_gc')
      const collecting = setInterval(runInNewContext('gc') as () => void, 50)
      const settings = { signal: () => new AbortController().signal, timeout: 300, headers: () => ({}) }
      try {
        // On a busy machine the limit can end the wait for the headers already, with the same error.
        const text = async () => (await createCallFetch(settings)(`http://127.0.0.1:${port}/`)).text()
        const failure = await text().catch((error: Error) => error)
        expect((failure as Error).name).to.equal('TimeoutError')
      } finally {
        clearInterval(collecting)
        started.closeAllConnections()
        started.close()
      }
    })

    it('is not required if the call ends first, which aborts ctx.fetch', async () => {
      const left = new Promise(resolve => silent.once('request', req => req.once('close', resolve)))
      const { url } = await serve({ tools: { fetchTimeout: '1h', callTimeout: '60ms' } })
      expect((await call(url, 'careless')).message.result.isError).to.equal(true)
      await left
    })
  })
})
