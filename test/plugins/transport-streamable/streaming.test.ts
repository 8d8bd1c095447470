import { expect } from 'chai'
import { defineTool, HostError } from '../../../core/index.ts'
import { META } from '../../../core/transport.ts'
import { openCall } from '../../support/event-reader.ts'
import { createGate, type Gate } from '../../support/gate.ts'
import { openSocket, requestBytes } from '../../support/raw-http.ts'
import { modern, modernRequest, type RpcMessage, type RpcOptions } from '../../support/rpc.ts'
import { type LogLine, startHost, stopHosts } from '../../support/start-host.ts'

/** Held by calls of `wait`, by the name they give. */
const gates = new Map<string, Gate>()
const watch = () => ({ started: createGate(), aborted: createGate<unknown>(), over: createGate() })
let seen = watch()

const instant = defineTool({ name: 'instant', handler: () => 'at once' })
const remark = defineTool({
  name: 'remark',
  handler: (_args, { progress }) => {
    progress(1, 1, 'said')
    return 'after a remark'
  },
})
const wait = defineTool({
  name: 'wait',
  input: { type: 'object', properties: { gate: { type: 'string' } }, required: ['gate'] },
  async handler({ gate }, { progress }) {
    progress(1, 2, gate)
    await gates.get(gate)?.opened
    progress(2, 2, gate)
    return gate
  },
})
const fail = defineTool({
  name: 'fail',
  input: { type: 'object', properties: { how: { type: 'string' } }, required: ['how'] },
  async handler({ how }, { progress }) {
    progress(1)
    await Promise.resolve()
    if (how === 'HostError') throw new HostError('resourceNotFound', { detail: 'no such thing', data: { uri: 'x:y' } })
    throw new Error('a secret of the handler')
  },
})
const endless = defineTool({
  name: 'endless',
  async handler(_args, { signal, progress, log }) {
    progress(1)
    seen.started.open()
    await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
    seen.aborted.open(signal.reason)
    progress(2)
    log('error', 'nobody hears this')
    seen.over.open()
    return 'too late'
  },
})
const lines = defineTool({
  name: 'lines',
  handler(_args, { log }) {
    log('info', 'one\n\nevent: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\r\n\r\n\u2028')
    return 'a\n\ndata: b'
  },
})
const large = defineTool({
  name: 'large',
  handler(_args, { progress }) {
    progress(1)
    return 'x'.repeat(6 * 1024 * 1024)
  },
})

let url: string
let log: LogLine[]
before(async () => {
  const all = [instant, remark, wait, fail, endless, lines, large]
  const routes = { '/': { toolsets: 'all' }, '/old': { toolsets: 'all', stateless: true } }
  ;({ url, log } = await startHost({ toolsets: { all }, routes }))
})
after(stopHosts)

const called = (name: string, args: object = {}, options: RpcOptions = {}) =>
  modern(url, 'tools/call', { name, arguments: args }, options)

const withToken = (progressToken: string | number) => ({ meta: { progressToken } })

const open = (name: string, args: object, options: RpcOptions = {}) => openCall(url, name, args, options)

const textOf = (message: RpcMessage) => message.result.content[0].text
const progressOf = (messages: readonly RpcMessage[]) =>
  messages.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params.progress)

describe('JSON or event stream response', () => {
  it('is JSON if the result is ready immediately without notifications', async () => {
    const { headers, messages } = await called('instant')
    expect(headers.get('content-type')).to.equal('application/json')
    expect(headers.get('x-accel-buffering')).to.equal(null)
    expect(messages).to.have.length(1)
  })

  it('is an event stream with proxy-safe headers from the first notification, with the result last', async () => {
    const { status, headers, messages } = await called('remark', {}, { ...withToken('t'), id: 'last' })
    expect(status).to.equal(200)
    expect(headers.get('content-type')).to.equal('text/event-stream')
    expect(headers.get('cache-control')).to.include('no-cache').and.include('no-transform')
    expect(headers.get('x-accel-buffering')).to.equal('no')
    expect(headers.get('content-length')).to.equal(null)
    expect(headers.get('mcp-session-id')).to.equal(null)
    expect(messages.map(({ method, id }) => method ?? id)).to.deep.equal(['notifications/progress', 'last'])
    expect(textOf(messages[1])).to.equal('after a remark')
  })

  it('switches to a stream for a slow handler without notifications', async () => {
    const gate = createGate()
    gates.set('slow', gate)
    const { response, events } = await open('wait', { gate: 'slow' })
    // Its headers are here while the handler cannot end.
    expect(response.headers.get('content-type')).to.equal('text/event-stream')
    gate.open()
    const messages = await events.rest()
    expect(messages.map(textOf)).to.deep.equal(['slow'])
  })

  it('delivers a notification while the handler runs', async () => {
    const gate = createGate()
    gates.set('held', gate)
    const { events } = await open('wait', { gate: 'held' }, withToken('t'))
    expect((await events.next()).params).to.deep.equal({ progressToken: 't', progress: 1, total: 2, message: 'held' })
    gate.open()
    const rest = await events.rest()
    expect(progressOf(rest)).to.deep.equal([2])
    expect(textOf(rest.at(-1))).to.equal('held')
  })

  it('sends one event per message, with any line breaks in it', async () => {
    const { text, messages } = await called('lines', {}, { meta: { [META.logLevel]: 'debug' } })
    expect(messages).to.have.length(2)
    expect(text.split('\n\n').filter(Boolean)).to.have.length(2)
    expect(text).not.to.include('\r')
    expect(messages[0].params.data).to.include('one\n\nevent: message\ndata: {')
    expect(textOf(messages[1])).to.equal('a\n\ndata: b')
  })

  it('streams a result of several megabytes to a client that reads', async () => {
    const { messages } = await called('large', {}, withToken(1))
    expect(textOf(messages.at(-1))).to.have.length(6 * 1024 * 1024)
  })
})

describe('Concurrent calls', () => {
  it('have separate streams with their own notifications and results', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `call-${index}`)
    for (const name of names) gates.set(name, createGate())
    const calls = await Promise.all(
      names.map(gate => open('wait', { gate }, { ...withToken(`token-${gate}`), id: `id-${gate}` })),
    )
    for (const { events } of calls) expect((await events.next()).params.progress).to.equal(1)
    for (const name of [...names].reverse()) gates.get(name)?.open()
    const ends = await Promise.all(calls.map(({ events }) => events.rest()))
    for (const [index, name] of names.entries()) {
      const [second, result] = ends[index] ?? []
      expect(second.params).to.deep.equal({ progressToken: `token-${name}`, progress: 2, total: 2, message: name })
      expect([result.id, textOf(result)]).to.deep.equal([`id-${name}`, name])
      expect(ends[index]).to.have.length(2)
    }
  })

  it('with the same id and token from different clients are each answered', async () => {
    gates.set('same', createGate())
    const same = { ...withToken('t'), id: 1 }
    const calls = await Promise.all([open('wait', { gate: 'same' }, same), open('wait', { gate: 'same' }, same)])
    gates.get('same')?.open()
    for (const { events } of calls) expect((await events.rest()).at(-1).id).to.equal(1)
  })
})

describe('Client disconnect', () => {
  beforeEach(() => {
    seen = watch()
  })

  it('aborts ctx.signal and discards later output of the handler', async () => {
    const leave = new AbortController()
    const { events } = await open('endless', {}, { ...withToken('t'), init: { signal: leave.signal } })
    await events.next()
    leave.abort()
    expect(await seen.aborted.opened).to.be.an.instanceOf(Error)
    await seen.over.opened
    expect(textOf((await called('instant')).message)).to.equal('at once')
    expect(log.filter(({ level }) => level === 'error')).to.deep.equal([])
  })

  it('aborts ctx.signal before any output, in both eras', async () => {
    const bodies = [
      modernRequest('tools/call', { name: 'endless' }),
      { headers: {}, body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"endless"}}' },
    ]
    for (const { headers, body } of bodies) {
      seen = watch()
      const socket = await openSocket(url)
      socket.write(requestBytes(url, body, { path: '/old', headers }))
      await seen.started.opened
      socket.destroy()
      expect(await seen.aborted.opened).to.be.an.instanceOf(Error)
    }
  })
})

describe('Error after the stream started', () => {
  it('arrives as the last event: a tool error as a result without its text', async () => {
    const { status, messages } = await called('fail', { how: 'Error' }, { ...withToken('t'), id: 5 })
    expect(status).to.equal(200)
    expect(messages.map(({ id, method }) => method ?? id)).to.deep.equal(['notifications/progress', 5])
    expect(messages[1].result).to.deep.include({ isError: true, content: [{ type: 'text', text: 'fail failed' }] })
    expect(JSON.stringify(messages)).not.to.include('secret')
  })

  it('arrives as the last event: a protocol error with its code and data', async () => {
    const { status, messages } = await called('fail', { how: 'HostError' }, { ...withToken('t'), id: 6 })
    expect(status).to.equal(200)
    expect(messages.at(-1)).to.deep.equal({
      jsonrpc: '2.0',
      id: 6,
      error: { code: -32602, message: 'Resource not found: no such thing', data: { uri: 'x:y' } },
    })
  })
})
