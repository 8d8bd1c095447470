import { expect } from 'chai'
import { defineResource, defineTool } from '../../../core/index.ts'
import { ERROR_KINDS, HANDSHAKE_REVISIONS, META, MODERN_REVISION } from '../../../core/transport.ts'
import { createMeta, modern, modernRequest, post, type RpcAnswer } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const echo = defineTool({
  name: 'echo',
  description: 'Says it again.',
  input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'], additionalProperties: false },
  handler: ({ text }) => text,
})
const regional = defineTool({
  name: 'regional',
  input: {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      count: { type: 'integer', 'x-mcp-header': 'Count' },
      deep: { type: 'object', properties: { dry: { type: 'boolean', 'x-mcp-header': 'Dry-Run' } } },
    },
  },
  handler: args => JSON.stringify(args),
})
const odd = defineTool({ name: 'émile', handler: () => 'bonjour' })
const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'text' })

let url: string
before(async () => {
  ;({ url } = await startHost({ toolsets: { all: [echo, regional, odd, page] }, routes: { '/': { toolsets: 'all' } } }))
})
after(stopHosts)

function expectRefused(answer: RpcAnswer, kind: keyof typeof ERROR_KINDS, words: string | RegExp = '') {
  const { status, code } = ERROR_KINDS[kind]
  expect([answer.status, answer.message.error.code], answer.text).to.deep.equal([status, code])
  expect(answer.message.error.message).to.match(new RegExp(words))
}

const call = (text = 'hi') => modern(url, 'tools/call', { name: 'echo', arguments: { text } })

describe('2026-07-28: requests', () => {
  it('are answered as one JSON body with resultType and the server in _meta', async () => {
    const { status, headers, message } = await modern(
      url,
      'tools/call',
      { name: 'echo', arguments: { text: 'hi' } },
      { id: 'a' },
    )
    expect(status).to.equal(200)
    expect(headers.get('content-type')).to.equal('application/json')
    expect(headers.get('mcp-session-id')).to.equal(null)
    expect(message).to.deep.equal({
      jsonrpc: '2.0',
      id: 'a',
      result: {
        resultType: 'complete',
        content: [{ type: 'text', text: 'hi' }],
        _meta: { [META.serverInfo]: { name: 'test-host', version: '1.2.3' } },
      },
    })
  })

  it('keep string and number ids, including 0 and "", in results and errors', async () => {
    for (const id of [0, -5, '', 'x', 2 ** 53 - 1]) {
      expect((await modern(url, 'server/discover', {}, { id })).message.id).to.equal(id)
      expect((await modern(url, 'no/such', {}, { id })).message.id).to.equal(id)
    }
  })

  it('server/discover lists protocol versions, capabilities and cache lifetime', async () => {
    const { result } = (await modern(url, 'server/discover')).message
    expect(result.supportedVersions).to.deep.equal([MODERN_REVISION, ...HANDSHAKE_REVISIONS])
    expect(result.capabilities).to.deep.equal({
      logging: {},
      resources: { listChanged: true, subscribe: true },
      tools: { listChanged: true },
    })
    expect(result).to.include({ resultType: 'complete', cacheScope: 'public' })
    expect(result.ttlMs).to.be.greaterThan(0)
    expect(result._meta[META.serverInfo]).to.deep.equal({ name: 'test-host', version: '1.2.3' })
  })

  it('server/discover omits listChanged on a stateless route', async () => {
    const stateless = await startHost({
      stateless: true,
      toolsets: { all: [echo] },
      routes: { '/': { toolsets: 'all' } },
    })
    const { result } = (await modern(stateless.url, 'server/discover')).message
    expect(result.supportedVersions).to.deep.equal([MODERN_REVISION, ...HANDSHAKE_REVISIONS])
    expect(result.capabilities).to.deep.equal({ logging: {}, tools: {} })
  })

  it('ignore Mcp-Session-Id and Last-Event-ID', async () => {
    const options = { headers: { 'Mcp-Session-Id': 'abc', 'Last-Event-ID': '7' } }
    const { status, headers } = await modern(url, 'tools/call', { name: 'echo', arguments: { text: 'a' } }, options)
    expect([status, headers.get('mcp-session-id')]).to.deep.equal([200, null])
  })

  it('accept a notification with 202 and no body, with or without Mcp-Method', async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    for (const extra of [{}, { 'Mcp-Method': 'notifications/cancelled' }]) {
      const answer = await post(url, body, { 'MCP-Protocol-Version': MODERN_REVISION, ...extra })
      expect([answer.status, answer.text, answer.headers.get('content-type')]).to.deep.equal([202, '', null])
    }
    const wrong = await post(url, body, { 'MCP-Protocol-Version': MODERN_REVISION, 'Mcp-Method': 'tools/call' })
    expectRefused(wrong, 'headerMismatch')
    expect(wrong.message).not.to.have.property('id')
  })

  it('refuse responses, batches and initialize', async () => {
    const version = { 'MCP-Protocol-Version': MODERN_REVISION }
    expectRefused(await post(url, '{"jsonrpc":"2.0","id":1,"result":{}}', version), 'invalidRequest', 'no responses')
    const { body } = modernRequest('server/discover')
    expectRefused(
      await post(url, `[${body}]`, version),
      'invalidRequest',
      'only protocol version 2025-03-26 has batches',
    )
    expectRefused(await post(url, `[${body}]`), 'invalidRequest', '2026-07-28 has no batches')
    expectRefused(await modern(url, 'initialize', { protocolVersion: MODERN_REVISION }), 'methodNotFound')
  })
})

describe('2026-07-28: _meta', () => {
  const cases: Array<[string, Record<string, unknown>, RegExp]> = [
    ['no protocol version', { [META.protocolVersion]: undefined }, /needs io\.modelcontextprotocol\/protocolVersion/],
    [
      'a protocol version that is not a string',
      { [META.protocolVersion]: 5 },
      /needs io\.modelcontextprotocol\/protocolVersion/,
    ],
    ['no client capabilities', { [META.clientCapabilities]: undefined }, /clientCapabilities, an object/],
    ['client capabilities that are not an object', { [META.clientCapabilities]: [] }, /clientCapabilities, an object/],
    ['client info that is not an object', { [META.clientInfo]: 'me' }, /clientInfo must be an object/],
    ['an unknown log level', { [META.logLevel]: 'loud' }, /logLevel must be one of debug, info/],
  ]
  for (const [what, meta, words] of cases) {
    it(`with ${what} is refused with 400 -32602, naming the key`, async () => {
      const answer = await modern(url, 'server/discover', {}, { meta, id: 9 })
      expectRefused(answer, 'invalidMeta', words.source)
      expect(answer.message.id).to.equal(9)
    })
  }

  it('missing is refused with 400 -32602', async () => {
    expectRefused(await modern(url, 'server/discover', { _meta: undefined }), 'invalidMeta', '_meta` is missing')
    expectRefused(await modern(url, 'server/discover', { _meta: 'x' }), 'invalidMeta', '_meta` is missing')
  })

  it('does not require the client info', async () => {
    const { status } = await modern(url, 'server/discover', {}, { meta: { [META.clientInfo]: undefined } })
    expect(status).to.equal(200)
  })
})

describe('2026-07-28: header validation', () => {
  it('refuses a missing or mismatching version header', async () => {
    expectRefused(
      await modern(url, 'server/discover', {}, { headers: { 'MCP-Protocol-Version': undefined } }),
      'headerMismatch',
      'missing',
    )
    const other = { headers: { 'MCP-Protocol-Version': '2025-11-25' } }
    expectRefused(
      await modern(url, 'server/discover', {}, other),
      'headerMismatch',
      'is 2025-11-25, the body says 2026-07-28',
    )
    const meta = { [META.protocolVersion]: 'v999' }
    expectRefused(await modern(url, 'server/discover', {}, { meta }), 'headerMismatch')
  })

  it('refuses an unsupported version and lists the supported ones', async () => {
    for (const version of ['v999.0.0', '2027-01-01', '1900-01-01']) {
      const answer = await modern(
        url,
        'server/discover',
        {},
        {
          meta: { [META.protocolVersion]: version },
          headers: { 'MCP-Protocol-Version': version },
          id: 3,
        },
      )
      expectRefused(answer, 'unsupportedVersion')
      expect(answer.message.error.data).to.deep.equal({
        supported: [MODERN_REVISION, ...HANDSHAKE_REVISIONS],
        requested: version,
      })
      expect(answer.message.id).to.equal(3)
    }
    const headerOnly = await post(url, '{"jsonrpc":"2.0","id":1,"method":"ping"}', { 'MCP-Protocol-Version': 'v9' })
    expectRefused(headerOnly, 'unsupportedVersion')
  })

  it('requires Mcp-Method to equal the method, case-sensitively', async () => {
    for (const header of [undefined, 'prompts/list', 'TOOLS/LIST', '']) {
      expectRefused(
        await modern(url, 'tools/list', {}, { headers: { 'Mcp-Method': header } }),
        'headerMismatch',
        'Mcp-Method',
      )
    }
  })

  it('requires Mcp-Name to equal the name, case-sensitively', async () => {
    const params = { name: 'echo', arguments: { text: 'a' } }
    for (const header of [undefined, 'other', 'ECHO']) {
      expectRefused(
        await modern(url, 'tools/call', params, { headers: { 'Mcp-Name': header } }),
        'headerMismatch',
        'Mcp-Name',
      )
    }
    expectRefused(
      await modern(url, 'resources/read', { uri: 'test://page' }, { headers: { 'Mcp-Name': 'test://other' } }),
      'headerMismatch',
    )
    expectRefused(await modern(url, 'tools/call', {}, { headers: { 'Mcp-Name': 'echo' } }), 'headerMismatch')
  })

  it('ignores header name case and surrounding white space', async () => {
    const { body } = modernRequest('tools/call', { name: 'echo', arguments: { text: 'a' } })
    const headers = { 'mcp-protocol-VERSION': MODERN_REVISION, 'MCP-METHOD': 'tools/call', 'mcp-name': '  echo  ' }
    expect((await post(url, body, headers)).status).to.equal(200)
  })

  it('decodes Mcp-Name from Base64 before the comparison', async () => {
    const encoded = `=?base64?${Buffer.from('émile').toString('base64')}?=`
    const params = { name: 'émile' }
    const { message } = await modern(url, 'tools/call', params, { headers: { 'Mcp-Name': encoded } })
    expect(message.result.content[0].text).to.equal('bonjour')
    for (const broken of ['=?base64?SGVs!!!bG8=?=', '=?base64?w6k?=', '=?BASE64?w6ltaWxl?=', '=?base64?/w==?=']) {
      expectRefused(await modern(url, 'tools/call', params, { headers: { 'Mcp-Name': broken } }), 'headerMismatch')
    }
  })

  it('requires x-mcp-header parameters in their headers, only for such parameters', async () => {
    const run = (args: object, headers: Record<string, string>) =>
      modern(url, 'tools/call', { name: 'regional', arguments: args }, { headers })
    const fine: Array<[object, Record<string, string>]> = [
      [{}, {}],
      [{ region: null }, {}],
      [{ region: 'eu' }, { 'Mcp-Param-Region': 'eu' }],
      [{ region: 'é' }, { 'Mcp-Param-Region': '=?base64?w6k=?=' }],
      [{ count: 42 }, { 'Mcp-Param-Count': '42.0' }],
      [{ deep: { dry: true } }, { 'mcp-param-dry-run': 'true' }],
    ]
    for (const [args, headers] of fine) {
      const { status, message } = await run(args, headers)
      expect([status, message.error], JSON.stringify([args, headers])).to.deep.equal([200, undefined])
    }
    const wrong: Array<[object, Record<string, string>]> = [
      [{ region: 'eu' }, {}],
      [{ region: 'eu' }, { 'Mcp-Param-Region': 'us' }],
      [{ region: 'eu' }, { 'Mcp-Param-Region': 'EU' }],
      [{}, { 'Mcp-Param-Region': 'eu' }],
      [{ region: null }, { 'Mcp-Param-Region': 'eu' }],
      [{ count: 42 }, { 'Mcp-Param-Count': '43' }],
      [{ deep: { dry: true } }, { 'Mcp-Param-Dry-Run': 'True' }],
      [{ region: 'Hello' }, { 'Mcp-Param-Region': '=?base64?SGVsbG8?=' }],
    ]
    for (const [args, headers] of wrong) expectRefused(await run(args, headers), 'headerMismatch', '[Mm]cp-[Pp]aram')
  })
})

describe('2026-07-28: methods', () => {
  it('answer 404 -32601 if unknown, removed or without their capability', async () => {
    const gone = ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']
    for (const method of [...gone, 'unknown/method', 'completion/complete', 'toString', '__proto__']) {
      expectRefused(await modern(url, method), 'methodNotFound', method)
    }
  })

  it('answer -32602 on a 200 to an unknown tool, or resource with its uri', async () => {
    expectRefused(await modern(url, 'tools/call', { name: 'nope' }), 'invalidParams', 'unknown tool "nope"')
    expectRefused(await modern(url, 'tools/call', { name: 'toString' }), 'invalidParams', 'unknown tool')
    const answer = await modern(url, 'resources/read', { uri: 'test://nope' })
    expectRefused(answer, 'resourceNotFound')
    expect(answer.message.error.data).to.deep.equal({ uri: 'test://nope' })
  })

  it('resources/read returns the cache lifetime and scope', async () => {
    const { result } = (await modern(url, 'resources/read', { uri: 'test://page' })).message
    expect(result).to.deep.include({
      ttlMs: 0,
      cacheScope: 'private',
      contents: [{ uri: 'test://page', text: 'text' }],
    })
  })

  it('work after all previous errors', async () => {
    expect((await call()).message.result.content[0].text).to.equal('hi')
    expect(
      (
        await post(
          url,
          JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: createMeta() } }),
        )
      ).status,
    ).to.equal(400)
  })
})
