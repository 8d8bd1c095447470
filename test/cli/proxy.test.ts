// Tests `mcp-host proxy` in this process, with servers of every protocol version.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { ask, count, createWait, editorOf, grow, PAGE, page } from '../fixtures/line-toolset.ts'
import { initialize, meta, textOf } from '../plugins/transport-stdio/stdio-client.ts'
import { eventually } from '../support/eventually.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { itThorough } from '../support/thorough.ts'
import { endRelays, openProxy } from './proxy-client.ts'
import { closeServers, json, serve } from './raw-mcp-server.ts'
import { startSdkServer, stopSdkServers } from './sdk-server.ts'

const { tool: wait, aborted } = createWait()
const tools = [
  count,
  wait,
  ask,
  grow,
  editorOf(PAGE),
  defineTool({ name: 'large', handler: () => `${'x'.repeat(2_000_000)}\n☃` }),
  defineTool({
    name: 'place',
    input: {
      type: 'object',
      properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
      required: ['region'],
    } as const,
    handler: ({ region }) => `in ${region}`,
  }),
]
const toolsets = { all: [...tools, page] }

/** A name of the environment, as a header has it. */
const of = (name: string) => `\${${name}}`

describe('mcp-host proxy', () => {
  let url: string
  let plain: string
  before(async () => {
    const { url: host } = await startHost({
      toolsets,
      plugins: { 'transport-streamable': {}, 'transport-sse': {} },
      routes: {
        '/mcp': { toolsets: 'all' },
        '/plain': { toolsets: 'all', stateless: true, plugins: { 'transport-sse': false } },
      },
    })
    url = `${host}/mcp`
    plain = `${host}/plain`
  })
  after(async () => {
    await endRelays()
    closeServers()
    await stopHosts()
    await stopSdkServers()
    await removeFolders()
  })

  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
    const define = ['2024-11-05', '2025-11-25'].includes(revision) ? it : itThorough
    define(
      `forwards a session of ${revision}: progress, requests, changes, cancellation, large responses`,
      async () => {
        const client = await openProxy(url)
        const capabilities = revision >= '2025-06-18' ? { elicitation: { form: {} } } : {}
        expect((await initialize(client, revision, capabilities)).result).to.include({ protocolVersion: revision })
        expect((await client.request(1, 'tools/list')).result?.['tools']).to.have.length(tools.length)
        const counted = await client.request(2, 'tools/call', { name: 'count', _meta: { progressToken: 'p' } })
        expect(textOf(counted)).to.equal('counted')
        expect(client.seen.map(({ params }) => params?.['progress'])).to.deep.equal([1, 2])
        client.seen.length = 0
        if (revision >= '2025-06-18') {
          client.say({ id: 3, method: 'tools/call', params: { name: 'ask' } })
          const { id } = await client.until(({ method }) => method === 'elicitation/create')
          client.say({ id, result: { action: 'accept', content: { name: 'Ann' } } })
          expect(textOf(await client.until(message => message.id === 3))).to.equal('Hello, Ann')
        }
        await client.request(4, 'resources/subscribe', { uri: PAGE })
        await client.request(5, 'tools/call', { name: 'grow' })
        await client.request(6, 'tools/call', { name: 'edit' })
        for (const method of ['notifications/tools/list_changed', 'notifications/resources/updated']) {
          await client.until(message => message.method === method)
        }
        const before = aborted.length
        client.say({ id: 7, method: 'tools/call', params: { name: 'wait', _meta: { progressToken: 'w' } } })
        await client.until(({ method }) => method === 'notifications/progress')
        client.say({ method: 'notifications/cancelled', params: { requestId: 7 } })
        await eventually('the call is cancelled', () => aborted.length > before)
        expect(textOf(await client.request(7, 'tools/call', { name: 'large' }))).to.have.length(2_000_002)
        await client.request(8, 'tools/call', { name: 'grow' })
      },
    )
  }

  it('forwards 2026-07-28: headers come from the message, including tool parameters, also before any list', async () => {
    const client = await openProxy(url)
    expect((await client.request('d', 'server/discover', meta())).result).to.have.property('supportedVersions')
    const placed = (id: number, region: string) =>
      client.request(id, 'tools/call', { name: 'place', arguments: { region }, ...meta() })
    expect(textOf(await placed(1, 'eu'))).to.equal('in eu')
    expect(textOf(await placed(2, ' Zürich\n'))).to.equal('in  Zürich\n')
    expect((await client.request(3, 'resources/read', { uri: PAGE, ...meta() })).result).to.have.property('contents')
    const counted = await client.request(4, 'tools/call', { name: 'count', ...meta({ progressToken: 'p' }) })
    expect(textOf(counted)).to.equal('counted')
    expect(client.seen.splice(0).map(({ params }) => params?.['progress'])).to.deep.equal([1, 2])
    client.say({
      id: 'l',
      method: 'subscriptions/listen',
      params: { ...meta(), notifications: { toolsListChanged: true } },
    })
    await client.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    await client.request(5, 'tools/call', { name: 'grow', ...meta() })
    await client.until(({ method }) => method === 'notifications/tools/list_changed')
    const before = aborted.length
    client.say({ id: 6, method: 'tools/call', params: { name: 'wait', ...meta({ progressToken: 'w' }) } })
    await client.until(({ method }) => method === 'notifications/progress')
    client.say({ method: 'notifications/cancelled', params: { requestId: 6 } })
    await eventually('the call is cancelled', () => aborted.length > before)
    const refused = await client.request(7, 'tools/list', meta({}, '2099-01-01'))
    expect(refused.error?.code).to.equal(-32022)
    expect((await client.request(8, 'no/such', meta())).error?.code).to.equal(-32601)
    await client.request(9, 'tools/call', { name: 'grow', ...meta() })
  })

  it('forwards a stateless server, and one of SDK 1 with sessions, which it ends', async () => {
    const stateless = await openProxy(plain)
    await initialize(stateless)
    expect(textOf(await stateless.request(1, 'tools/call', { name: 'count' }))).to.equal('counted')
    const sdk = await startSdkServer()
    const client = await openProxy(sdk.streamable)
    await initialize(client)
    expect((await client.request(1, 'tools/call', { name: 'add', arguments: { a: 1, b: 2 } })).result).to.deep.include({
      structuredContent: { sum: 3 },
    })
    client.say({ id: 2, method: 'tools/call', params: { name: 'steps', _meta: { progressToken: 1 } } })
    await client.until(({ id }) => id === 2)
    expect(client.seen.map(({ params }) => params?.['progress'])).to.deep.equal([1, 2, 3])
    client.input.end()
    await client.relay.ended
    expect(sdk.ended).to.have.length(1)
  })

  it('falls back to HTTP+SSE if the server supports nothing newer, or at once with --transport', async () => {
    const sdk = await startSdkServer()
    for (const transport of ['auto', 'sse'] as const) {
      const client = await openProxy(sdk.sse, { transport })
      // Who knows the newest revision asks for it first, and falls back.
      if (transport === 'auto')
        expect((await client.request('d', 'server/discover', meta())).error).to.have.property('code')
      await initialize(client, '2024-11-05')
      expect(
        (await client.request(1, 'tools/call', { name: 'add', arguments: { a: 1, b: 2 } })).result,
      ).to.deep.include({ structuredContent: { sum: 3 } })
    }
    const ours = await openProxy(`${url}/sse`)
    await initialize(ours, '2024-11-05')
    expect(textOf(await ours.request(1, 'tools/call', { name: 'count' }))).to.equal('counted')
    const never = await openProxy(sdk.sse, { transport: 'http' })
    const refused = await never.request(0, 'initialize', {})
    expect(refused.error?.message).to.match(/is not an MCP endpoint \(HTTP 404\); check the path/)
    const nothing = await openProxy(`${url}/nowhere`)
    expect((await nothing.request(0, 'initialize', {})).error).to.have.property('message')
  })

  it('omits ignored tools, and rejects calls of them', async () => {
    const client = await openProxy(url, { 'ignore-tool': ['*row', 'la.ge', 'wait'] })
    await initialize(client)
    const names = async (more: object = {}) =>
      ((await client.request(1, 'tools/list', more)).result as { tools: { name: string }[] }).tools
        .map(({ name }) => name)
        .sort()
    expect(await names()).to.deep.equal(['ask', 'count', 'edit', 'large', 'place'])
    expect(await names(meta())).to.deep.equal(['ask', 'count', 'edit', 'large', 'place'])
    const { error } = await client.request(2, 'tools/call', { name: 'grow' })
    expect(error?.code).to.equal(-32602)
    expect(error?.message).to.include('--ignore-tool')
  })

  it('responds with errors to malformed, too long or too many messages, and continues', async () => {
    let held: ServerResponse[] = []
    const stuck = await serve((_request, response) => void held.push(response))
    const client = await openProxy(stuck)
    for (const [text, code] of [
      ['{', -32700],
      ['5', -32600],
      ['["x"]', -32600],
      [`{"jsonrpc":"2.0","id":1,"method":"${'x'.repeat(17 * 1024 * 1024)}"}`, -32000],
    ] as const) {
      client.write(`${text}\n`)
      expect((await client.until(() => true)).error?.code, text.slice(0, 20)).to.equal(code)
    }
    for (let id = 1; id <= 1_000; id++) client.say({ id, method: 'tools/call', params: { name: 'x', ...meta() } })
    client.say({ id: 1, method: 'ping' })
    expect((await client.until(({ id }) => id === 1)).error?.message).to.include('is already running')
    expect((await client.request(1_001, 'ping')).error?.message).to.equal('at most 1000 requests wait at once')
    client.relay.end()
    await client.relay.ended
    held = []
  })

  it('forwards only JSON-RPC, one message per line, and only expected responses', async () => {
    const strange = await serve((_request, response, body) => {
      const { id, method } = JSON.parse(body) as { id: unknown; method: string }
      if (method === 'html') return response.writeHead(200, { 'content-type': 'text/html' }).end('<b>')
      if (method === 'pretty')
        return response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result: { a: '\u001b[31m' } }, undefined, 2))
      if (method === 'nobody') return json(response, { jsonrpc: '2.0', id: 'other', result: {} })
      if (method === 'refused')
        return json(response, { jsonrpc: '2.0', id: null, error: { code: -32_099, message: 'no' } }, 400)
      if (method === 'moved') return response.writeHead(302, { location: 'https://elsewhere.example/' }).end()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(
        `data: not json\n\nevent: other\ndata: {}\n\ndata: {"jsonrpc":"2.0",\ndata: "id":${JSON.stringify(id)},"result":{}}\n\n`,
      )
    })
    const client = await openProxy(strange)
    const say = async (id: number, method: string) => {
      const { error, result } = await client.request(id, method)
      return error ? `${error.code} ${error.message}` : JSON.stringify(result)
    }
    expect(await say(1, 'html')).to.match(/^-32000 /)
    expect(await say(2, 'pretty')).to.equal('{"a":"\\u001b[31m"}')
    expect(await say(3, 'nobody')).to.match(/sent no response/)
    expect(await say(4, 'refused')).to.equal('-32099 no')
    expect(await say(5, 'moved')).to.match(/https:\/\/elsewhere\.example\//)
    expect(await say(6, 'stream')).to.equal('{}')
    expect(client.lines.every(line => line.startsWith('{') && !line.includes('\u001b'))).to.equal(true)
  })

  it('forwards numbers as server and client wrote them', async () => {
    const numbers = '[1915883588174806058,1e400,-0,1.50,"1e400",0.1,"\\\\",12345678901234567890]'
    const bodies: string[] = []
    const exact = await serve((_request, response, body) => {
      bodies.push(body)
      const { id, method } = JSON.parse(body) as { id: unknown; method: string }
      const tools = `{"name":"hidden"},{"name":"shown",\r\n"inputSchema":{"enum":${numbers}}}`
      const result = method === 'tools/list' ? `{"tools":[${tools}]}` : `{\r\n"a":${numbers}\n}`
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(`{"jsonrpc":"2.0",\n"id":${JSON.stringify(id)},\n"result":${result}}`)
    })
    const client = await openProxy(exact)
    await client.request(1, 'own')
    expect(client.lines.at(-1)).to.equal(`{"jsonrpc":"2.0", "id":1, "result":{ "a":${numbers} }}`)
    const filtering = await openProxy(exact, { 'ignore-tool': ['hidden'] })
    await filtering.request(1, 'tools/list')
    expect(filtering.lines.at(-1)).to.equal(
      `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"shown","inputSchema":{"enum":${numbers}}}]}}`,
    )
    const call = `"method":"tools/call","params":{"name":"shown","arguments":{"a":${numbers}}}`
    filtering.write(`{"jsonrpc":"2.0","id":2,${call}}\n`)
    await filtering.until(message => message.id === 2)
    expect(bodies.at(-1)).to.include(call)
  })

  it('sends headers: values of the environment and of files, and cookies of the server', async () => {
    const got: IncomingMessage['headers'][] = []
    const echo = await serve(({ headers }, response, body) => {
      got.push(headers)
      json(response, { jsonrpc: '2.0', id: JSON.parse(body).id, result: {} }, 200, {
        'set-cookie': 'lb=node-7; Path=/; HttpOnly',
      })
    })
    const file = join(
      await makeFolder({ headers: `# mine\nX-File: one\n\nAuthorization: Bearer ${of('TEST_KEY')}\n` }),
      'headers',
    )
    const values = { header: [`X-Key:${of('TEST_KEY')}!`], 'header-file': [file] }
    const client = await openProxy(echo, values, undefined, { TEST_KEY: 'of the environment' })
    await client.request(1, 'ping')
    await client.request(2, 'ping')
    expect(
      got.map(headers => [headers['x-key'], headers['x-file'], headers.authorization, headers['cookie']]),
    ).to.deep.equal([
      ['of the environment!', 'one', 'Bearer of the environment', undefined],
      ['of the environment!', 'one', 'Bearer of the environment', 'lb=node-7'],
    ])
    const refusalOf = (values: Parameters<typeof openProxy>[1], at = echo) =>
      openProxy(at, values).then(
        () => 'served',
        (error: Error) => error.message,
      )
    expect(await refusalOf({ header: [`X-Key: ${of('NO_SUCH')}`] }))
      .to.include(`--header: ${of('NO_SUCH')}`)
      .and.include('NO_SUCH')
    expect(await refusalOf({ 'header-file': ['/no/such'] })).to.match(/^--header-file: \/no\/such/)
    expect(await refusalOf({}, 'http://mcp.example/mcp')).to.match(/^mcp\.example.*--allow-http/)
    expect(await refusalOf({ 'allow-http': true }, 'http://mcp.example/mcp')).to.equal('served')
  })

  it('ends the session', async () => {
    const said: string[] = []
    const server = await serve(({ method: verb, headers }, response, body) => {
      const { id, method } =
        body === '' ? { id: 0, method: verb } : (JSON.parse(body) as { id: unknown; method: string })
      said.push(`${method} ${headers['mcp-session-id'] ?? '-'}`)
      if (verb === 'GET') return response.writeHead(405).end()
      if (id === undefined || verb === 'DELETE') return response.writeHead(202).end()
      json(response, { jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25', capabilities: {} } }, 200, {
        'mcp-session-id': 's1',
      })
    })
    const client = await openProxy(server)
    await initialize(client)
    client.input.end()
    await client.relay.ended
    expect([said[0], said[1]]).to.deep.equal(['initialize -', 'notifications/initialized s1'])
    expect(said).to.include('DELETE s1')
    expect(client.lines).to.have.length(1)
  })
})
