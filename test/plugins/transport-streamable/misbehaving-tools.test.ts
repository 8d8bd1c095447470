import { once } from 'node:events'
import { expect } from 'chai'
import { MAX_PENDING } from '../../../core/http/sse.ts'
import { type CallContext, defineResource, defineTool, HostError, ToolError } from '../../../core/index.ts'
import { META } from '../../../core/transport.ts'
import { createGate } from '../../support/gate.ts'
import { openSocket, requestBytes } from '../../support/raw-http.ts'
import { legacy, modern, modernRequest, type RpcOptions } from '../../support/rpc.ts'
import { type LogLine, startHost, stopHosts } from '../../support/start-host.ts'

const SECRET = 'password=hunter2'
const circular: Record<string, unknown> = {}
circular['self'] = circular
const content = [{ type: 'text' as const, text: 'fine' }]

/** What a tool may wrongly return, by name. */
const GARBAGE: Readonly<Record<string, () => unknown>> = {
  function: () => () => 1,
  symbol: () => Symbol('x'),
  bigint: () => 5n,
  circular: () => circular,
  'an object that holds a bigint': () => ({ deep: [{ count: 5n }] }),
  'a result that holds a bigint': () => ({ content, structuredContent: { count: 5n } }),
  'a circular result': () => ({ content, _meta: circular }),
  'an object whose toJSON throws': () => ({
    toJSON() {
      throw new Error(SECRET)
    },
  }),
  'an object whose getter throws': () => ({
    get text(): string {
      throw new Error(SECRET)
    },
  }),
}

const THROWN: Readonly<Record<string, unknown>> = {
  'an Error': new Error(SECRET),
  'a string': SECRET,
  nothing: undefined,
  'an object': { message: SECRET },
  'an Error with a cause': new Error('outer', { cause: new Error(SECRET) }),
  'an Error that claims a code': Object.assign(new Error(SECRET), { code: -32001, status: 403, kind: 'forbidden' }),
}

/** Characters of each progress message of `flood`. */
const FLOOD = 512 * 1024
const ended = createGate<CallContext>()
const named = { type: 'object', properties: { what: { type: 'string' } }, required: ['what'] } as const
const tools = [
  defineTool({ name: 'good', handler: () => 'good' }),
  defineTool({ name: 'garbage', input: named, handler: ({ what }) => GARBAGE[what]?.() as object }),
  defineTool({ name: 'garbage-later', input: named, handler: async ({ what }) => GARBAGE[what]?.() as object }),
  defineTool({
    name: 'throw',
    input: named,
    handler({ what }) {
      throw THROWN[what]
    },
  }),
  defineTool({
    name: 'throw-later',
    input: named,
    async handler({ what }, { progress }) {
      progress(1)
      await new Promise(resolve => setImmediate(resolve))
      throw THROWN[what]
    },
  }),
  defineTool({
    name: 'told',
    handler() {
      throw new ToolError('The warehouse is closed.', { cause: new Error(SECRET) })
    },
  }),
  defineTool({
    name: 'refuse',
    handler() {
      throw new HostError('forbidden', { detail: 'not you', data: { why: 'rules' }, cause: new Error(SECRET) })
    },
  }),
  defineTool({ name: 'hang', timeout: 50, handler: () => new Promise(() => undefined) }),
  defineTool({ name: 'huge', handler: () => 'x'.repeat(8 * 1024 * 1024) }),
  defineTool({
    name: 'flood',
    async handler(_args, ctx) {
      for (let step = 1; !ctx.signal.aborted; step++) {
        ctx.progress(step, undefined, 'y'.repeat(FLOOD))
        await new Promise(resolve => setImmediate(resolve))
      }
      ended.open(ctx)
    },
  }),
  defineTool({
    name: 'after-the-end',
    handler(_args, { progress, log }) {
      setImmediate(() => {
        progress(5)
        log('error', 'late')
        late.open()
      })
      return 'over'
    },
  }),
]
const late = createGate()
const broken = defineResource({
  name: 'broken',
  uri: 'test://broken',
  handler() {
    throw new Error(SECRET)
  },
})

let url: string
let log: LogLine[]
before(async () => {
  const routes = { '/': { toolsets: 'all' }, '/old': { toolsets: 'all', stateless: true } }
  ;({ url, log } = await startHost({ toolsets: { all: [...tools, broken] }, routes }))
})
after(stopHosts)

const call = (name: string, args: object = {}, options: RpcOptions = {}) =>
  modern(url, 'tools/call', { name, arguments: args }, options)

const failures = () => log.filter(({ level }) => level === 'error')

describe('Misbehaving tools', () => {
  beforeEach(() => void log.splice(0))
  afterEach(async () => {
    expect((await call('good')).message.result.content[0].text).to.equal('good')
  })

  describe('Tool that throws', () => {
    for (const what of Object.keys(THROWN)) {
      for (const name of ['throw', 'throw-later']) {
        it(`${what} (${name}) becomes a result with isError, hides its text and is logged once`, async () => {
          const { status, text, message } = await call(name, { what })
          expect(status).to.equal(200)
          expect(message.result).to.deep.include({ isError: true, content: [{ type: 'text', text: `${name} failed` }] })
          expect(text).not.to.include('hunter2')
          expect(failures()).to.have.length(1)
          expect(failures()[0]).to.deep.include({ err: THROWN[what], name, method: 'tools/call', route: '/' })
        })
      }
    }

    it('a ToolError becomes a result with its text and is not logged as a bug', async () => {
      const { status, text, message } = await call('told')
      expect([status, message.result.isError, message.result.content[0].text]).to.deep.equal([
        200,
        true,
        'The warehouse is closed.',
      ])
      expect(text).not.to.include('hunter2')
      expect(failures()).to.deep.equal([])
    })

    it('a HostError becomes a protocol error with its code and data on a 200, in both eras', async () => {
      const answers = [await call('refuse'), await legacy(`${url}/old`, 'tools/call', { name: 'refuse' })]
      for (const { status, text, message } of answers) {
        expect(status).to.equal(200)
        expect(message.error).to.deep.equal({ code: -32000, message: 'Forbidden: not you', data: { why: 'rules' } })
        expect(text).not.to.include('hunter2')
      }
    })
  })

  describe('Resource that throws', () => {
    it('answers -32603 on a 200 in both eras, hides the text and logs each error once', async () => {
      const params = { uri: 'test://broken' }
      const answers = [
        await modern(url, 'resources/read', params),
        await legacy(`${url}/old`, 'resources/read', params),
      ]
      for (const { status, message } of answers) {
        expect([status, message.error]).to.deep.equal([200, { code: -32603, message: 'Internal error' }])
      }
      expect(failures()).to.have.length(2)
      expect(failures()[0]).to.deep.include({ method: 'resources/read', name: 'test://broken' })
    })
  })

  describe('Tool that returns an invalid value', () => {
    for (const what of Object.keys(GARBAGE)) {
      for (const name of ['garbage', 'garbage-later']) {
        it(`(${what}, ${name}) answers with a failure on a 200 in both eras, and logs each once`, async () => {
          const params = { name, arguments: { what } }
          const answers = [await call(name, { what }), await legacy(`${url}/old`, 'tools/call', params)]
          for (const { status, text, message } of answers) {
            expect(status).to.equal(200)
            expect(message.result?.isError ?? message.error.code === -32603, text).to.equal(true)
            expect(text).not.to.include('hunter2')
          }
          expect(failures()).to.have.length(2)
        })
      }
    }

    it('answers a result of several megabytes completely in one body', async () => {
      const { headers, message } = await call('huge')
      expect(headers.get('content-type')).to.equal('application/json')
      expect(message.result.content[0].text).to.have.length(8 * 1024 * 1024)
    })
  })

  describe('Tool that does not end properly', () => {
    it('answers with isError after the timeout of a hanging tool', async () => {
      const { status, message } = await call('hang')
      expect([status, message.result.isError]).to.deep.equal([200, true])
      expect(message.result.content[0].text).to.match(/hang: .*too long/)
    })

    it('ignores notifications after the end of the call', async () => {
      const { messages } = await call('after-the-end', {}, { meta: { progressToken: 1, [META.logLevel]: 'debug' } })
      await late.opened
      expect(messages).to.have.length(1)
      expect(failures()).to.deep.equal([])
    })

    it('disconnects a client that does not read endless notifications, at the buffer limit, and logs it', async () => {
      const { headers, body } = modernRequest('tools/call', { name: 'flood' }, { meta: { progressToken: 1 } })
      const socket = await openSocket(url)
      socket.pause()
      socket.write(requestBytes(url, body, { headers }))
      const { signal } = await ended.opened
      expect(signal.aborted).to.equal(true)
      const line = log.find(({ code }) => code === 'MH1309')
      // The bound and the message that met it, no more.
      expect(line?.['waiting']).to.be.within(MAX_PENDING, MAX_PENDING + 2 * FLOOD)
      socket.resume()
      if (!socket.closed) await once(socket, 'close')
    })
  })
})
