// OpenTelemetry spans of calls with a real SDK and receiver: names, attributes, parents, links and excluded data.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { symlink } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { definePlugin } from '../../../core/internal.ts'
import { StartError } from '../../../core/plugin.ts'
import { createTestLog } from '../../../core/testing/test-log.ts'
import { loadApi } from '../../../plugins/tracing/load-api.ts'
import { createFailureLog, createFailureReporter } from '../../../plugins/tracing/report-failures.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { compiledFile } from '../../support/compiled.ts'
import { ROOT, readBlocks } from '../../support/doc-blocks.ts'
import { eventually } from '../../support/eventually.ts'
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../../support/otlp-receiver.ts'
import { modern, modernRequest } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { type LogLine, stopHosts } from '../../support/start-host.ts'

const SECRET = 'an-argument-that-nobody-may-read'
const [SERVER, ERROR] = [2, 2]
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = 'b7ad6b7169203331'
const traceparent = (trace: string, span: string) => `00-${trace}-${span}-01`

const children = new Set<ChildProcess>()

/** The SDK, started as the plugin's page says; it sends when the host closes. */
async function writePreload(): Promise<string> {
  const page = 'docs/plugins/tracing.md'
  const [block] = readBlocks(page).filter(({ language }) => language === 'js')
  const folder = await makeFolder({ 'start-tracing.mjs': block?.code ?? '' })
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return join(folder, 'start-tracing.mjs')
}

/** A host in a process of its own; without a receiver it has no SDK. */
async function startTraced(receiver?: Pick<OtlpReceiver, 'url'>, more: Record<string, string> = {}) {
  const otel = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver?.url, OTEL_BSP_SCHEDULE_DELAY: '3600000' }
  const env = { ...process.env, ...otel, ...more }
  const execArgv = receiver ? ['--import', await writePreload()] : []
  const child = fork(compiledFile('test/support/traced-host.ts'), { execArgv, env })
  children.add(child)
  const [{ url, log }] = (await once(child, 'message')) as [{ url: string; log: LogLine[] }]
  /** Sends what is left; gives the whole log, and of each record the ids. */
  async function close() {
    const exit = once(child, 'exit')
    const told = once(child, 'message')
    child.send('close')
    const [seen] = (await told) as [{ log: LogLine[]; records: Array<Record<'id' | 'requestId' | 'traceId', unknown>> }]
    await exit
    return seen
  }
  return { url, log, close }
}

afterEach(stopHosts)
after(removeFolders)
after(() => {
  for (const child of children) child.kill('SIGKILL')
})

describe('tracing plugin', () => {
  let receiver: OtlpReceiver
  /** By the id of the request that each belongs to. */
  const byId = new Map<unknown, ReceivedSpan>()
  const asked: IncomingHttpHeaders[] = []
  let session: string
  let seen: Awaited<ReturnType<Awaited<ReturnType<typeof startTraced>>['close']>>
  const spanOf = (id: string): ReceivedSpan => {
    const span = byId.get(id)
    if (!span) throw new Error(`no span of the request ${id}: there are ${[...byId.keys()].join(', ')}`)
    return span
  }

  before(async () => {
    receiver = await startOtlpReceiver()
    const server = createServer((req, res) => {
      asked.push(req.headers)
      res.end('ok')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const target = `http://127.0.0.1:${port}/${SECRET}`
    const { url, close } = await startTraced(receiver)
    const mcp = `${url}/mcp`
    const call = (
      id: string,
      name: string,
      args = {},
      more: { meta?: object; headers?: Record<string, string> } = {},
    ) => modern(mcp, 'tools/call', { name, arguments: args }, { id, ...more } as object)

    await call('say', 'say', { text: SECRET }, { headers: { Authorization: `Bearer ${SECRET}` } })
    await call('fail', 'fail')
    await call('break', 'break', {}, { headers: { 'X-Request-Id': 'told-to-the-user' } })
    await call('relayed', 'say')
    await call('unknown', SECRET)
    await call('forbidden', 'forbidden')
    await call(`odd id \u001b[2J${'x'.repeat(100)}`, 'say')
    await modern(mcp, 'prompts/get', { name: 'greet' }, { id: 'prompt' })
    await modern(mcp, 'resources/read', { uri: `note://${SECRET}` }, { id: 'resource' })
    await modern(mcp, 'tools/list', {}, { id: 'list' })
    await modern(mcp, SECRET, {}, { id: 'method' })
    await modern(mcp, 'tools/call', { name: 'say', arguments: 5 }, { id: 'params' })
    await modern(`${url}/quiet`, 'tools/call', { name: 'say' }, { id: 'quiet' })

    const headers = { traceparent: traceparent(TRACE, CALLER) }
    const meta = {
      traceparent: traceparent('1'.repeat(32), '2'.repeat(16)),
      tracestate: 'a=b',
      baggage: `who=${SECRET}`,
    }
    await call('of header', 'say', {}, { headers })
    await call('of meta', 'say', {}, { meta })
    await call('of both', 'say', {}, { meta, headers })
    await call('of one', 'say', {}, { meta: headers, headers })
    await call('of nonsense', 'say', {}, { meta: { traceparent: 7, tracestate: {}, baggage: ['x'] } })
    const inHttp = (id: string, of: object) =>
      modern(`${url}/http`, 'tools/call', { name: 'say' }, { id, meta: of } as object)
    await inHttp('in http', {})
    await inHttp('in http of meta', meta)
    const nested = await call('nest', 'nest', { url: target }, { meta })
    expect(nested.message.result.content[0].text).to.equal('nobody')
    const passing = await modern(`${url}/baggage`, 'tools/call', { name: 'nest', arguments: { url: target } }, {
      id: 'baggage',
      meta,
    } as object)
    expect(passing.message.result.content[0].text).to.equal(SECRET)

    const controller = new AbortController()
    const begun = once(server, 'request')
    const waiting = modernRequest('tools/call', { name: 'wait', arguments: { url: target } }, { id: 'wait' })
    const gone = fetch(mcp, {
      method: 'POST',
      body: waiting.body,
      headers: {
        Accept: 'application/json, text/event-stream',
        'Content-Type': 'application/json',
        ...waiting.headers,
      } as Record<string, string>,
      signal: controller.signal,
    }).catch(() => undefined)
    await begun
    controller.abort()
    await gone

    const client = await openSession(mcp)
    session = client.id
    await client.request('tools/call', { name: 'say' }, { id: 'session' })
    await client.end()

    seen = await close()
    server.close()
    server.closeAllConnections()
    receiver.close()
    for (const span of receiver.spans) byId.set(span.attributes['jsonrpc.request.id'], span)
  })

  it('sets the attributes of the semantic conventions and the outcome', () => {
    const { name, kind, attributes, status, parentSpanId, links } = spanOf('say')
    expect({ name, kind, attributes, status, parentSpanId, links }).to.deep.equal({
      name: 'tools/call say',
      kind: SERVER,
      attributes: {
        'mcp.method.name': 'tools/call',
        'mcp.protocol.version': '2026-07-28',
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'say',
        'jsonrpc.request.id': 'say',
        'network.transport': 'tcp',
        'network.protocol.name': 'http',
        'mcp_host.route': '/mcp',
        'mcp_host.outcome': 'ok',
      },
      status: { code: 0 },
      parentSpanId: undefined,
      links: [],
    })
    expect(BigInt(spanOf('say').endTimeUnixNano) >= BigInt(spanOf('say').startTimeUnixNano)).to.equal(true)
  })

  it('has the server, its tool and the duration of a call to an upstream server', () => {
    const { attributes } = spanOf('relayed')
    expect(attributes).to.include({ 'mcp_host.upstream': 'files', 'mcp_host.upstream_tool': 'read' })
    expect(attributes['mcp_host.upstream_ms']).to.equal(1.5)
  })

  it('names spans of prompts, of resources by their template, and of other methods', () => {
    const about = (id: string) => {
      const { name, attributes } = spanOf(id)
      const { 'gen_ai.prompt.name': prompt, 'mcp.resource.uri': uri, 'gen_ai.operation.name': operation } = attributes
      return { name, prompt, uri, operation }
    }
    const none = { prompt: undefined, uri: undefined, operation: undefined }
    expect(about('prompt')).to.deep.equal({ ...none, name: 'prompts/get greet', prompt: 'greet' })
    expect(about('resource')).to.deep.equal({ ...none, name: 'resources/read', uri: 'note://{id}' })
    expect(about('list')).to.deep.equal({ ...none, name: 'tools/list' })
    expect(about('method').name).to.equal('_OTHER')
    expect(about('unknown').name).to.equal('tools/call _OTHER')
  })

  it('records the error and whether the client or server caused it', () => {
    const found = ['fail', 'break', 'unknown', 'method', 'params', 'forbidden'].map(id => {
      const { attributes, status } = spanOf(id)
      const named = [
        'error.type',
        'rpc.response.status_code',
        'mcp_host.outcome',
        'mcp_host.error',
        'mcp_host.refused_by',
      ]
      return [id, status.code, ...named.map(name => attributes[name])]
    })
    expect(found).to.deep.equal([
      ['fail', ERROR, 'tool_error', undefined, 'tool_error', undefined, undefined],
      ['break', ERROR, 'tool_error', undefined, 'tool_error', undefined, undefined],
      ['unknown', 0, undefined, '-32602', 'error', 'invalidParams', 'mcp-host'],
      ['method', 0, undefined, '-32601', 'error', 'methodNotFound', 'mcp-host'],
      ['params', 0, undefined, '-32602', 'error', 'invalidParams', 'mcp-host'],
      ['forbidden', ERROR, '-32000', '-32000', 'error', 'forbidden', 'refuse'],
    ])
    expect(spanOf('forbidden').status.message).to.equal('forbidden')
  })

  it('records a call whose client disconnected as cancelled', () => {
    expect(spanOf('wait').attributes['mcp_host.outcome']).to.equal('cancelled')
    expect(spanOf('wait').status.code).to.equal(0)
  })

  it('uses traceparent of the message as parent, or else of the HTTP request, otherwise linked', () => {
    const places = ['of header', 'of meta', 'of both', 'of one', 'of nonsense'].map(id => {
      const { traceId, parentSpanId, links } = spanOf(id)
      return [parentSpanId === undefined ? 'new' : traceId, parentSpanId, links.map(link => link.spanId)]
    })
    const [own, ownParent] = ['1'.repeat(32), '2'.repeat(16)]
    expect(places).to.deep.equal([
      [TRACE, CALLER, []],
      [own, ownParent, []],
      [own, ownParent, [CALLER]],
      [TRACE, CALLER, []],
      ['new', undefined, []],
    ])
    const [plain, named] = receiver.spans.filter(({ name }) => name === 'POST /http')
    expect(spanOf('in http')).to.include({ traceId: plain?.traceId, parentSpanId: plain?.spanId })
    expect(spanOf('in http of meta')).to.include({ traceId: own, parentSpanId: ownParent })
    expect(spanOf('in http of meta').links.map(({ traceId, spanId }) => ({ traceId, spanId }))).to.deep.equal([
      { traceId: named?.traceId, spanId: named?.spanId },
    ])
  })

  it('is the parent of handler spans, and ctx.fetch propagates it', () => {
    const inner = receiver.spans.find(({ name }) => name === 'inner')
    expect(inner).to.include({ traceId: '1'.repeat(32), parentSpanId: spanOf('nest').spanId })
    const [first, second, third] = asked
    expect(first).to.include({
      traceparent: traceparent('1'.repeat(32), inner?.spanId ?? ''),
      tracestate: 'a=b',
      'x-own': 'yes',
    })
    // An instrumentation of `fetch` adds its own, and two are none.
    expect(third).to.include({ traceparent: first?.['traceparent'] })
    expect(asked.slice(0, 3).map(({ baggage }) => baggage)).to.deep.equal([undefined, undefined, undefined])
    expect(asked.slice(3, 6).map(({ baggage }) => baggage)).to.deep.equal([`who=${SECRET}`, undefined, `who=${SECRET}`])
    expect(second).to.include({ traceparent: 'of the handler' }).and.not.have.property('tracestate')
  })

  it('identifies a session by a pseudonym on every call', () => {
    const named = receiver.spans.filter(({ attributes }) => attributes['mcp.session.id'] !== undefined)
    expect(named.map(({ name }) => name)).to.include.members(['initialize', 'tools/call say'])
    const ids = new Set(named.map(({ attributes }) => attributes['mcp.session.id']))
    expect(ids.size).to.equal(1)
    expect([...ids][0]).to.match(/^[\da-f]{16}$/)
    expect(spanOf('session').attributes['mcp.protocol.version']).to.equal('2025-11-25')
  })

  it('omits arguments, tokens, client names and session ids, and truncates values', () => {
    const all = receiver.bodies.join('\n')
    expect(all).to.include('my-mcp-host')
    expect(all).to.include('tools/call say')
    for (const secret of [SECRET, session, '\\u001b', 'no luck', 'a bug', 'words of the client']) {
      expect(all, secret).not.to.include(secret)
    }
    const odd = [...byId.keys()].find(id => String(id).startsWith('odd id'))
    expect(odd).to.equal(`odd id ?[2J${'x'.repeat(53)}`)
  })

  it('exposes trace ids in records and log lines, and the request id in the span', () => {
    for (const id of ['say', 'of header', 'of meta', 'of both', 'session', 'unknown']) {
      const record = seen.records.find(found => found.id === id)
      expect(record, id).to.include({ traceId: spanOf(id).traceId })
    }
    const { traceId, attributes } = spanOf('break')
    expect(attributes['mcp_host.request_id']).to.equal('told-to-the-user')
    const line = seen.log.find(({ message }) => message === 'a handler failed')
    expect(line).to.include({ requestId: 'told-to-the-user', traceId })
    expect(seen.records.find(({ id }) => id === 'break')).to.include({ requestId: 'told-to-the-user', traceId })
  })

  it('creates no spans on a route that disables the plugin', () => {
    expect(byId.has('quiet')).to.equal(false)
  })
})

describe('tracing with a failing receiver', () => {
  it('logs the failure once with later counts, and calls still succeed', async () => {
    let refused = 0
    const server = createServer((req, res) => {
      refused++
      req.resume()
      res.writeHead(400).end('<html>no\u001b[2J</html>')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const { url, close } = await startTraced({ url: `http://127.0.0.1:${port}` }, { OTEL_BSP_SCHEDULE_DELAY: '1' })
    for (let asked = 1; asked <= 3; asked++) {
      await modern(`${url}/mcp`, 'tools/call', { name: 'say' })
      await eventually('a refusal', () => refused >= asked)
    }
    const { log } = await close()
    server.close()
    server.closeAllConnections()
    const told = log.filter(({ message }) => message === 'OpenTelemetry failed: spans may be lost')
    expect(told.map(({ level, failures }) => [level, failures])).to.deep.equal([
      ['error', 1],
      ['error', refused - 1],
    ])
    expect(told[0]?.['problem'])
      .to.be.a('string')
      .and.match(/bad request|400/i)
  })

  it('keeps an OpenTelemetry logger that the program sets before or after', () => {
    const api = loadApi(ROOT)
    const { diag } = api
    const heard: string[] = []
    const ignore = () => undefined
    const mine = {
      error: (text: string) => void heard.push(text),
      warn: ignore,
      info: ignore,
      debug: ignore,
      verbose: ignore,
    }
    const kept = createTestLog()
    diag.setLogger(mine)
    const first = createFailureReporter(api, kept)
    first.start()
    diag.error('one')
    first.end()
    diag.error('two')
    diag.disable()
    const second = createFailureReporter(api, kept)
    second.start()
    diag.error('three')
    diag.setLogger(mine, { suppressOverrideMessage: true })
    second.end()
    diag.error('four')
    diag.disable()
    expect(heard).to.deep.equal(['one', 'two', 'four'])
    expect(kept.lines.map(line => line['problem'])).to.deep.equal(['three'])
  })

  it('counts repeated failures for a minute and logs one printable line', () => {
    let now = 0
    const kept = createTestLog()
    const { logger, settle } = createFailureLog(kept, () => now)
    logger.error(JSON.stringify({ message: `no\u001b[2J${'x'.repeat(1_000)}`, stack: 'a stack' }))
    for (let more = 0; more < 9; more++) logger.error('again')
    now = 60_000
    logger.error('later')
    logger.error('last')
    settle()
    settle()
    const told = kept.lines.map(line => [String(line['problem']).slice(0, 8), line['failures']])
    expect(told).to.deep.equal([
      ['no [2Jxx', 1],
      ['later', 10],
      ['last', 1],
    ])
    expect(String(kept.lines[0]?.['problem'])).to.have.length(300)
  })
})

describe('tracing without an SDK', () => {
  it('logs this at startup and serves requests', async () => {
    const { url, log, close } = await startTraced()
    const line = log.find(({ message }) => message?.includes('OpenTelemetry'))
    expect(line?.level).to.equal('info')
    const { message } = await modern(`${url}/mcp`, 'tools/call', { name: 'say' })
    expect(message.result.content[0].text).to.equal('said')
    await close()
  })
})

describe('tracing without the OpenTelemetry API', () => {
  it('fails startup with the package to install', async () => {
    const nowhere = await makeFolder({})
    expect(() => loadApi(nowhere, join(nowhere, 'here.js')))
      .to.throw(StartError, /plugins\.tracing: .*@opentelemetry\/api/)
      .with.property('message')
      .that.includes('npm i --save-prod @opentelemetry/api')
  })
})

describe('tracer slot', () => {
  it('rejects a second plugin on a route', async () => {
    const mine = definePlugin({
      setup: host => host.provide('tracer', { run: (start, answer) => answer(start), headersFor: () => ({}) }),
    })()
    const config = {
      toolsets: { all: [defineTool({ name: 'say', handler: () => 'said' })] },
      routes: { '/mcp': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, tracing: {}, mine },
    }
    await expectStopped(config, /tracing already provides the tracer/)
  })
})
