// Tests the toolsets of documents on a real host: arguments, overrides, credentials, output schemas, reload and refresh.
import { expect } from 'chai'
import { parse } from 'yaml'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { rejectionOf } from '../../fixtures/rejection-of.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { startReloading, stopReloading } from '../../support/reloading-host.ts'
import { modern, type RpcMessage } from '../../support/rpc.ts'
import { type LogLine, startHost, stopHosts, type TestConfig } from '../../support/start-host.ts'
import { type Api, startApi } from './api.ts'
import { count, printCounts } from './attack-counts.ts'

after(printCounts)

afterEach(stopHosts)
after(removeFolders)

const DOCUMENT = `openapi: 3.0.3
info: { title: Orders, version: '1' }
paths:
  /orders/{id}:
    parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
    get:
      operationId: getOrder
      summary: Gets an order.
      parameters:
        - { name: id, in: query, schema: { type: string, pattern: '^(a+)+$' } }
        - { name: 'filter[name]', in: query, description: By name., schema: { type: string } }
        - { name: Authorization, in: header, schema: { type: string } }
        - { name: api_key, in: query, schema: { type: string } }
      responses:
        '200': { description: ok, content: { application/json: { schema: { $ref: '#/components/schemas/Order' } } } }
    put:
      operationId: putOrder
      security: [{ key: [] }]
      requestBody: { required: true, content: { application/json: { schema: { $ref: '#/components/schemas/Order' } } } }
      responses: { '200': { description: ok } }
components:
  securitySchemes: { key: { type: apiKey, in: query, name: api_key } }
  schemas:
    Order:
      type: object
      required: [id, item]
      properties: { id: { type: integer }, item: { type: string }, at: { type: string, readOnly: true } }
`

let api: Api

before(async () => {
  api = await startApi()
})
after(() => api[Symbol.asyncDispose]())

interface Settings {
  readonly source?: object
  readonly files?: Record<string, string>
  readonly more?: object
}

async function configOf({ source = {}, files = { 'orders.yaml': DOCUMENT } }: Settings) {
  const folder = await makeFolder(files)
  const orders = {
    document: 'orders.yaml',
    baseUrl: api.url,
    allowHosts: [api.host],
    methods: ['get', 'put'],
    ...source,
  }
  const config: TestConfig = {
    toolsets: {},
    routes: { '/': { toolsets: 'orders' } },
    plugins: { 'transport-streamable': {}, openapi: { documents: { orders } } } as TestConfig['plugins'] & object,
  }
  return { config, folder }
}

async function start(settings: Settings = {}) {
  const { config, folder } = await configOf(settings)
  return { ...(await startHost(config, folder, settings.more)), config, folder }
}

const toolsAt = async (url: string): Promise<RpcMessage[]> => (await modern(url, 'tools/list')).message.result.tools
const call = async (url: string, name: string, args: object): Promise<RpcMessage> =>
  (await modern(url, 'tools/call', { name, arguments: args })).message.result
const lastUrl = () => api.requests.at(-1)?.url

describe('A toolset of an OpenAPI document', () => {
  it('has flat arguments, whose names get a suffix if several places have them', async () => {
    const { url } = await start()
    const [tool] = await toolsAt(url)
    expect(tool).to.deep.include({
      name: 'getOrder',
      description: 'Gets an order.',
      annotations: { readOnlyHint: true },
    })
    expect(tool.inputSchema).to.deep.equal({
      type: 'object',
      properties: {
        id: { type: 'integer' },
        id_query: { type: 'string', pattern: '^(a+)+$' },
        filter_name_: { type: 'string', description: 'By name.' },
      },
      required: ['id'],
      additionalProperties: false,
    })
    expect(tool.outputSchema).to.equal(undefined)
    const result = await call(url, 'getOrder', { id: 5, id_query: 'b', filter_name_: 'x y' })
    expect(result.structuredContent, JSON.stringify(result)).to.deep.equal({ ok: true })
    expect(lastUrl()).to.equal('/orders/5?id=b&filter%5Bname%5D=x%20y')
  })

  it('reports invalid arguments without a request, and leaves patterns to the API', async () => {
    count('exploding regular expressions')
    const { url } = await start()
    const before = api.requests.length
    const invalid = await call(url, 'getOrder', { id: 'five', nme: 1 })
    expect(invalid.isError).to.equal(true)
    expect(invalid.content[0].text)
      .to.match(/^Invalid arguments for getOrder:\n/)
      .and.match(/nme: is not a known argument/)
    expect(api.requests.length).to.equal(before)
    expect((await call(url, 'getOrder', { id: 5, id_query: `${'a'.repeat(40)}!` })).isError).to.not.equal(true)
  })

  it('reports filters that match no operation', async () => {
    const { log } = await start({ source: { include: ['getOrder', 'getOrdr'], exclude: [{ tag: 'internal' }] } })
    const reported = log.filter(({ code }) => code === 'MH3405').map(line => JSON.stringify(line))
    expect(reported).to.have.lengthOf(2)
    expect(reported[0]).to.contain('`include[1]` matches no operation')
    expect(reported[1]).to.contain('`exclude[0]` matches no operation')
    const { log: empty } = await start({ source: { include: [] } })
    expect(JSON.stringify(empty.filter(({ code }) => code === 'MH3405'))).to.contain('`include` is empty')
  })

  it('shows invisible characters of descriptions', async () => {
    const text = DOCUMENT.replace('summary: Gets an order.', 'summary: "Gets\u200b an order.\u{e0041}"')
    const { url } = await start({ files: { 'orders.yaml': text } })
    expect((await toolsAt(url))[0]?.['description']).to.contain('Gets\\u{200b} an order.\\u{e0041}')
  })

  it('leaves out operations without credentials, and sends those that there are', async () => {
    const { url, log } = await start()
    expect((await toolsAt(url)).map(({ name }) => name)).to.deep.equal(['getOrder'])
    expect(log.find(({ code }) => code === 'MH3407')?.['reasons']).to.match(
      /no credential for the security scheme "key"/,
    )
    const other = await start({ source: { credentials: { key: 'the-secret' } } })
    await call(other.url, 'putOrder', { id: 5, id_body: 6, item: 'tea' })
    const { url: requested, body } = api.requests.at(-1) ?? {}
    expect(requested).to.equal('/orders/5?api_key=the-secret')
    expect(JSON.parse(`${body}`)).to.deep.equal({ id: 6, item: 'tea' })
  })

  it('can have arguments with the names of object members, with overrides for others', async () => {
    const text = DOCUMENT.replace('name: id, in: query,', 'name: constructor, in: query,')
    const overrides = { getOrder: { arguments: { id: { description: 'The order.' } } } }
    const { url } = await start({ source: { overrides }, files: { 'orders.yaml': text } })
    const [tool] = await toolsAt(url)
    expect(Object.keys(tool?.['inputSchema'].properties)).to.include.members(['id', 'constructor'])
    await call(url, 'getOrder', { id: 5, constructor: 'x' })
    expect(lastUrl()).to.equal('/orders/5?constructor=x')
  })

  it('can have its arguments in groups', async () => {
    const { url } = await start({ source: { arguments: 'grouped', credentials: { key: 'the-secret' } } })
    const put = (await toolsAt(url)).find(({ name }) => name === 'putOrder')
    expect(put.inputSchema.properties.path).to.deep.include({ required: ['id'], additionalProperties: false })
    expect(put.inputSchema.properties.body.required).to.deep.equal(['id', 'item'])
    expect(put.inputSchema.required).to.deep.equal(['path', 'body'])
    expect((await call(url, 'putOrder', { path: { id: 5 }, body: { id: 6, item: 'tea' } })).isError).to.not.equal(true)
  })

  it('has fixed, default and renamed arguments, names and hints by overrides', async () => {
    const { url } = await start({
      source: {
        prefix: 'shop_',
        overrides: {
          'GET /orders/{id}': {
            name: 'find',
            description: 'Finds an order.',
            annotations: { openWorldHint: false },
            arguments: {
              id: { name: 'order', description: 'Its number.' },
              id_query: { value: 'aa' },
              filter_name_: { default: 'all' },
            },
          },
        },
      },
    })
    const [tool] = await toolsAt(url)
    expect(tool).to.deep.include({ name: 'shop_find', description: 'Finds an order.' })
    expect(tool.annotations).to.deep.equal({ readOnlyHint: true, openWorldHint: false })
    expect(tool.inputSchema.properties).to.deep.equal({
      order: { type: 'integer', description: 'Its number.' },
      filter_name_: { type: 'string', description: 'By name.', default: 'all' },
    })
    await call(url, 'shop_find', { order: 5 })
    expect(lastUrl()).to.equal('/orders/5?id=aa&filter%5Bname%5D=all')
    expect((await call(url, 'shop_find', { order: 5, id_query: 'bb' })).isError).to.equal(true)
  })

  it('lists output schemas if that is configured, and checks results against them', async () => {
    const passing = await start({ source: { output: 'pass' } })
    const [tool] = await toolsAt(passing.url)
    expect(tool.outputSchema.$ref ?? tool.outputSchema).to.not.equal(undefined)
    expect((await call(passing.url, 'getOrder', { id: 5 })).structuredContent).to.deep.equal({ ok: true })
    const checking = await start({ source: { output: 'check' } })
    const result = await call(checking.url, 'getOrder', { id: 5 })
    expect(result.isError).to.equal(true)
    expect(result.structuredContent).to.equal(undefined)
    expect(result.content[0].text).to.match(/does not match the output schema:\n.*id/s)
    expect(result.content[1].text).to.equal('{"ok":true}')
  })

  it('can be selected with others, by a parameter of the route, and needs access', async () => {
    const { config, folder } = await configOf({})
    const { url } = await startHost({ ...config, routes: { '/only/:category': { toolsets: ':category' } } }, folder)
    expect(await toolsAt(`${url}/only/orders`)).to.have.length(1)
    const guarded = await start({ source: { access: 'buyer' } })
    expect(JSON.stringify(guarded.log)).to.match(/requires access/)
    expect((await modern(guarded.url, 'tools/list')).message.result?.tools ?? []).to.deep.equal([])
  })
})

describe('The options of a document', () => {
  for (const [what, source, message] of [
    [
      'an operation that does not exist',
      { overrides: { getOrders: { name: 'x' } } },
      /overrides\.getOrders: there is no such operation; did you mean "getOrder"\?/,
    ],
    [
      'an argument that does not exist',
      { overrides: { getOrder: { arguments: { nope: { value: 1 } } } } },
      /getOrder has no argument "nope"/,
    ],
    [
      'a scheme that does not exist',
      { credentials: { kee: 'a-secret' } },
      /credentials\.kee: the document has no security scheme "kee"; did you mean "key"\?/,
    ],
    ['a private address that is not allowed', { allowHosts: ['other.example'] }, /baseUrl: .*plain http/],
    [
      'a client secret without the authorization server that receives it',
      { auth: { kind: 'client-credentials', clientId: 'host', clientSecret: 'a-secret' } },
      /documents\.orders\.auth\.issuer\n.*missing/,
    ],
    ['a missing file', { document: 'order.yaml' }, /order\.yaml does not exist; did you mean "orders\.yaml"/],
    ['a header of the connection', { headers: { host: 'x' } }, /headers/],
    ['a header with credentials of the caller', { forwardHeaders: ['authorization'] }, /forwardHeaders/],
  ] as const) {
    it(`that name ${what} stop startup`, async () => {
      const { config, folder } = await configOf({ source })
      await expectStopped(config, message, folder)
    })
  }

  it('report servers of the document that are not allowed as warnings', async () => {
    const text = `${DOCUMENT}\nservers: [{ url: 'http://orders.example/v1' }]\n`
    const files = { 'orders.yaml': text }
    const { log } = await start({ files, source: { baseUrl: undefined } })
    expect(JSON.stringify(log)).to.match(
      /MH3408[^}]*all requests to this server of the document are blocked: .*plain http/,
    )
    const allowed = await start({ files, source: { baseUrl: undefined, allowHosts: ['orders.example'] } })
    expect(JSON.stringify(allowed.log)).not.to.contain('MH3408')
  })

  it('report parts of the document that are not used as warnings', async () => {
    const text = DOCUMENT.replace('summary: Gets an order.', 'security: [{ none: [] }]')
    const { log } = await start({ files: { 'orders.yaml': text } })
    expect(JSON.stringify(log))
      .to.match(/MH3404/)
      .and.match(/orders\.yaml:8 \(#\/paths\/~1orders~1\{id\}\/get\/security\/0\/none\)/)
  })
})

describe('A document that changes', () => {
  it('is read again on reload, and kept if the new version cannot be used', async () => {
    const config = JSON.stringify({
      server: { name: 'reloaded', version: '1.0.0' },
      http: { port: 0 },
      secrets: ['a secret for tests, long enough to be one'],
      toolsets: {},
      routes: { '/': { toolsets: 'orders' } },
      plugins: {
        'transport-streamable': {},
        openapi: { documents: { orders: { document: './orders.yaml', baseUrl: api.url, allowHosts: [api.host] } } },
      },
    })
    const served = await startReloading({ 'mcp.config.json': config, 'orders.yaml': DOCUMENT })
    try {
      await served.edit('orders.yaml', 'operationId: getOrder', 'operationId: readOrder')
      await served.reload()
      expect((await toolsAt(served.url)).map(({ name }) => name)).to.deep.equal(['readOrder'])
      expect((await call(served.url, 'readOrder', { id: 5 })).isError).to.not.equal(true)
      await served.edit('orders.yaml', 'openapi: 3.0.3', 'openapi: 1.0.0')
      await rejectionOf(served.reload())
      expect((await toolsAt(served.url)).map(({ name }) => name)).to.deep.equal(['readOrder'])
    } finally {
      await stopReloading()
    }
  })

  it('at a URL never loses `access` or a fixed argument of an override', async () => {
    let text = JSON.stringify(parse(DOCUMENT))
    await using documents = await startApi((_, res) => void res.end(text))
    const clock = createManualClock()
    const overrides = { getOrder: { access: 'admin' }, putOrder: { arguments: { item: { value: 'tea' } } } }
    const { config, folder } = await configOf({
      source: {
        document: `${documents.url}/orders.json`,
        allowHosts: [documents.host, api.host],
        credentials: { key: 'the-secret' },
        overrides,
      },
    })
    const openapi = { ...(config.plugins as Record<string, object>)['openapi'], refresh: '1m' }
    const plugins = { ...config.plugins, openapi } as TestConfig['plugins'] & object
    const { url, log } = await startHost({ ...config, plugins }, folder, { clock })
    const until = async (code: string, count: number) => {
      for (let turns = 0; turns < 100_000 && log.filter(line => line.code === code).length < count; turns++) {
        await new Promise(resolve => setImmediate(resolve))
      }
      return log.filter(line => line.code === code)
    }
    const original = text
    for (const [index, [before, after, message]] of [
      ['"getOrder"', '"readOrder"', /GET \/orders\/\{id\} is now "readOrder" .*use the key "GET \/orders\/\{id\}"/],
      ['"getOrder"', '"readOrder"', /GET \/orders\/\{id\} is now "readOrder"/],
      [
        '{"/orders/{id}":',
        '{"/order":{"get":{"operationId":"getOrder","responses":{}}},"/orders/{id}":',
        /is now "GET /,
      ],
      [
        /"\/orders\/\{id\}":\{"parameters":\[\{"name":"id"(.*?)"getOrder"/,
        '"/order":{"get":{"operationId":"getOrder","responses":{}}},"/orders/{order}":{"parameters":[{"name":"order"$1"readOrder"',
        /GET \/orders\/\{order\} is now "readOrder"/,
      ],
      ['"item":{"type":"string"}', '"goods":{"type":"string"}', /putOrder has no argument "item"; correct it/],
      ['"get":{"operationId":"getOrder"', '"head":{"operationId":"headOrder"', /no such operation.*; correct it/],
    ].entries()) {
      text = original.replace(before as string, `${after}`)
      expect(text).to.not.equal(original)
      await clock.advance(60_000)
      const logged = (await until('MH3410', index + 1)).at(-1)
      expect(String((logged?.['err'] as Error | undefined)?.message)).to.match(message as RegExp)
      const tools = await toolsAt(url)
      expect(tools.map(({ name }) => name)).to.deep.equal(['putOrder'])
      expect(tools[0].inputSchema.properties).to.not.have.any.keys('item', 'goods')
    }
    await expectStopped({ ...config, plugins }, /no such operation.*correct it/, folder)
  })

  it('at a URL keeps its previous version while the rules of a tool do not match its new name', async () => {
    let text = JSON.stringify(parse(DOCUMENT))
    await using documents = await startApi((_, res) => void res.end(text))
    const clock = createManualClock()
    const { config, folder } = await configOf({
      source: { document: `${documents.url}/orders.json`, allowHosts: [documents.host, api.host] },
    })
    const openapi = { ...(config.plugins as Record<string, object>)['openapi'], refresh: '1m' }
    const rules = { getOrder: { role: 'admin' }, findOrder: { role: 'admin' }, '*Order': {} }
    const plugins = { ...config.plugins, openapi, 'tool-policy': { rules } } as TestConfig['plugins'] & object
    const { url, log } = await startHost({ ...config, plugins }, folder, { clock })
    const original = text
    const refresh = async (name: string) => {
      text = original.replace('getOrder', name)
      const count = log.length
      await clock.advance(60_000)
      for (let turns = 0; turns < 100_000 && log.length === count; turns++) {
        await new Promise(resolve => setImmediate(resolve))
      }
      const { code, err } = log[log.length - 1] as LogLine
      return `${code} ${(err as Error | undefined)?.message ?? ''}`
    }
    const refused = /^MH3410 .*"getOrder" do not match its new name "readOrder"; add rules for "readOrder" and reload/
    expect(await refresh('readOrder')).to.match(refused)
    expect(await refresh('readOrder')).to.match(refused)
    expect(await toolsAt(url)).to.deep.equal([])
    expect(await refresh('findOrder')).to.equal('MH3409 ')
    expect(await toolsAt(url)).to.deep.equal([])
  })

  it('at a URL gets `access` that a reload adds to an override', async () => {
    const text = JSON.stringify(parse(DOCUMENT))
    await using documents = await startApi((_, res) => void res.end(text))
    const override = { title: 'Order' }
    const orders = {
      document: `${documents.url}/orders.json`,
      baseUrl: api.url,
      allowHosts: [documents.host, api.host],
      overrides: { getOrder: override },
    }
    const config = JSON.stringify({
      server: { name: 'reloaded', version: '1.0.0' },
      http: { port: 0 },
      secrets: ['a secret for tests, long enough to be one'],
      toolsets: {},
      routes: { '/': { toolsets: 'orders' } },
      plugins: { 'transport-streamable': {}, openapi: { documents: { orders } } },
    })
    const served = await startReloading({ 'mcp.config.json': config })
    try {
      await served.edit('mcp.config.json', '"title":"Order"', '"title":"Order","access":"admin"')
      await served.reload()
      for (let turns = 0; turns < 1_000 && (await toolsAt(served.url)).length > 0; turns++);
      expect(await toolsAt(served.url)).to.deep.equal([])
    } finally {
      await stopReloading()
    }
  })

  it('in a file does not give the restrictions of one operation to another', async () => {
    const overrides = { getOrder: { access: 'admin' } }
    const orders = { document: './orders.yaml', baseUrl: api.url, allowHosts: [api.host], overrides }
    const config = JSON.stringify({
      server: { name: 'reloaded', version: '1.0.0' },
      http: { port: 0 },
      secrets: ['a secret for tests, long enough to be one'],
      toolsets: {},
      routes: { '/': { toolsets: 'orders' } },
      plugins: { 'transport-streamable': {}, openapi: { documents: { orders } } },
    })
    const served = await startReloading({ 'mcp.config.json': config, 'orders.yaml': DOCUMENT })
    try {
      await served.edit('orders.yaml', 'operationId: getOrder', 'operationId: readOrder')
      await served.edit('orders.yaml', 'operationId: putOrder', 'operationId: getOrder')
      expect(String(await rejectionOf(served.reload()))).to.match(/use the key "GET \/orders\/\{id\}"/)
      expect(await toolsAt(served.url)).to.deep.equal([])
      await served.edit('mcp.config.json', '"getOrder"', '"GET /orders/{id}"')
      await served.reload()
      expect(await toolsAt(served.url)).to.deep.equal([])
    } finally {
      await stopReloading()
    }
  })

  it('is read again from its URL at intervals, and kept while that fails', async () => {
    let text = JSON.stringify(parse(DOCUMENT))
    let status = 200
    await using documents = await startApi((_, res) => void res.writeHead(status).end(text))
    const clock = createManualClock()
    const { config, folder } = await configOf({
      source: { document: `${documents.url}/orders.json`, allowHosts: [documents.host, api.host] },
    })
    const openapi = { ...(config.plugins as Record<string, object>)['openapi'], refresh: '1m' }
    const plugins = { ...config.plugins, openapi } as TestConfig['plugins'] & object
    const { url, log } = await startHost({ ...config, plugins }, folder, { clock })
    const names = async () => (await toolsAt(url)).map(({ name }) => name)
    expect(await names()).to.deep.equal(['getOrder'])
    text = text.replace('getOrder', 'readOrder')
    const until = async (code: string) => {
      for (let turns = 0; turns < 100_000 && !log.some(line => line.code === code); turns++) {
        await new Promise(resolve => setImmediate(resolve))
      }
      expect(log.map(line => line.code)).to.include(code)
    }
    await clock.advance(60_000)
    await until('MH3409')
    expect(await names()).to.deep.equal(['readOrder'])
    status = 500
    await clock.advance(60_000)
    await until('MH3410')
    expect(await names()).to.deep.equal(['readOrder'])
  })
})
