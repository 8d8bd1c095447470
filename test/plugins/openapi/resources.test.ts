// Tests GET operations as resources and resource templates.
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { modern, type RpcMessage } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { as, bearerJson } from '../tool-policy/bearer-json.ts'
import { type Api, startApi } from './api.ts'

after(removeFolders)

const parameter = (name: string, where: string, type: string, required = true) => ({
  ...{ name, in: where, required },
  schema: { $ref: `#/components/schemas/${type}` },
})
const operation = (operationId: string, type: string, ...parameters: object[]) => ({
  get: { operationId, summary: `About ${operationId}.`, parameters, responses: { 200: { content: { [type]: {} } } } },
})
const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Shop', version: '1' },
  paths: {
    '/orders': {
      ...operation('listOrders', 'application/json', parameter('limit', 'query', 'Number', false)),
      post: { operationId: 'addOrder', responses: {} },
    },
    '/orders/{order-id}/{part}': operation(
      ...(['getPart', 'application/json'] as const),
      parameter('order-id', 'path', 'Number'),
      parameter('part', 'path', 'Text'),
    ),
    '/search': operation('search', 'application/json', parameter('q', 'query', 'Text')),
    '/logo': operation('getLogo', 'image/png'),
  },
  components: { schemas: { Number: { type: 'integer' }, Text: { type: 'string' } } },
}

describe('GET operations of an OpenAPI document as resources', () => {
  let api: Api
  beforeEach(async () => {
    api = await startApi()
  })
  afterEach(async () => {
    await stopHosts()
    await api[Symbol.asyncDispose]()
  })

  async function serve(source: object, more: object = {}) {
    const folder = await makeFolder({ 'shop.json': JSON.stringify(DOCUMENT) })
    const document = { document: './shop.json', baseUrl: api.url, allowHosts: [api.host], ...source }
    const openapi = { documents: { shop: document } }
    const plugins = { 'transport-streamable': {}, bearer: bearerJson(), openapi, ...more }
    const { url, log } = await startHost({ routes: { '/': { toolsets: ['shop'] } }, plugins } as never, folder)
    const list = async (kind: 'resources' | 'resourceTemplates', scopes: readonly string[] = []) => {
      const method = kind === 'resources' ? 'resources/list' : 'resources/templates/list'
      const { message } = await modern(url, method, {}, { headers: as({ subject: 'ann', scopes }) })
      return (message.result?.[kind] ?? []) as RpcMessage[]
    }
    const read = async (uri: string) => (await modern(url, 'resources/read', { uri })).message
    return { url, log, list, read }
  }

  it('are not served by default', async () => {
    const { list } = await serve({})
    expect(await list('resources')).to.deep.equal([])
    expect(await list('resourceTemplates')).to.deep.equal([])
  })

  it('are all listed with `true`, unless they require arguments outside of the path', async () => {
    const { url, list } = await serve({ resources: true, methods: ['get', 'post'] })
    const json = 'application/json'
    expect(await list('resources')).to.deep.equal([
      { uri: 'openapi://shop/getLogo', name: 'getLogo', description: 'About getLogo.', mimeType: 'image/png' },
      { uri: 'openapi://shop/listOrders', name: 'listOrders', description: 'About listOrders.', mimeType: json },
    ])
    expect((await list('resourceTemplates')).map(({ uriTemplate }) => uriTemplate)).to.deep.equal([
      'openapi://shop/getPart/{order_id}/{part}',
    ])
    const { message } = await modern(url, 'tools/list')
    expect(message.result.tools).to.have.length(5)
  })

  it('are selected by filters, which must match an operation', async () => {
    const { list, log } = await serve({ resources: ['getLogo', { path: '/none' }] })
    expect((await list('resources')).map(({ name }) => name)).to.deep.equal(['getLogo'])
    expect(await list('resourceTemplates')).to.deep.equal([])
    const reported = log.filter(({ code }) => code === 'MH3405').map(line => JSON.stringify(line))
    expect(reported).to.have.length(1)
    expect(reported[0]).to.contain('resources[1]')
  })

  it('have JSON and binary contents, and notes about the response', async () => {
    const { read } = await serve({ resources: true })
    const uri = 'openapi://shop/listOrders'
    api.answer = (_, res) =>
      res.writeHead(200, { 'content-type': 'application/json', link: '</orders?limit=2>; rel="next"' }).end('[1]')
    const { contents } = (await read(uri)).result
    expect(contents[0]).to.deep.equal({ uri, mimeType: 'application/json', text: '[1]' })
    expect(contents[1]).to.deep.include({ uri, mimeType: 'text/plain' })
    api.answer = (_, res) => res.writeHead(200, { 'content-type': 'image/png' }).end('png')
    expect((await read('openapi://shop/getLogo')).result.contents).to.deep.equal([
      { uri: 'openapi://shop/getLogo', mimeType: 'image/png', blob: Buffer.from('png').toString('base64') },
    ])
  })

  it('take the variables of a template as arguments of their types', async () => {
    const { read } = await serve({ resources: true })
    const { result } = await read('openapi://shop/getPart/12/34')
    expect(JSON.parse(result.contents[0].text)).to.deep.equal({ ok: true })
    await read('openapi://shop/getPart/12/a%20b%3Fc')
    expect(api.requests.map(({ url }) => url)).to.deep.equal(['/orders/12/34', '/orders/12/a%20b%3Fc'])
  })

  it('can have grouped, fixed and default arguments', async () => {
    const overrides = {
      getPart: { name: 'part', arguments: { 'path.order-id': { value: 7 }, 'path.part': { name: 'of' } } },
      search: { arguments: { 'query.q': { default: 'all' } } },
    }
    const { read } = await serve({ resources: true, arguments: 'grouped', overrides })
    await read('openapi://shop/part/x')
    await read('openapi://shop/search')
    expect(api.requests.map(({ url }) => url)).to.deep.equal(['/orders/7/x', '/search?q=all'])
  })

  it('refuse URIs that are invalid or leave the path, without a request', async () => {
    const { read } = await serve({ resources: true })
    for (const end of ['x/y', '1/..', '1/%2e%2e', '1/%2fx', '1/%252e%252e', '1/a%5Cb', '1', '1/2/3', '1/a%0Ab']) {
      const { error } = await read(`openapi://shop/getPart/${end}`)
      expect(error, end).to.not.equal(undefined)
    }
    expect(api.requests).to.deep.equal([])
  })

  it('do not exist for status 404, and fail for other errors, without credentials', async () => {
    const { read } = await serve({ resources: true, headers: { 'x-key': 'the-real-key-4711' } })
    api.answer = (_, res) => res.writeHead(404).end()
    const missing = await read('openapi://shop/listOrders')
    expect(missing.error.code).to.equal((await read('openapi://shop/none')).error.code)
    expect(missing.error.data).to.deep.include({ uri: 'openapi://shop/listOrders' })
    api.answer = ({ headers }, res) => res.writeHead(500).end(JSON.stringify(headers))
    const failed = await read('openapi://shop/listOrders')
    expect(JSON.stringify(failed.error)).to.include('HTTP 500').and.not.include('the-real-key')
    expect(failed.error.code).to.not.equal(missing.error.code)
  })

  it('require the access of the document or tool', async () => {
    const policy = { 'tool-policy': { policies: { buyer: { scope: 'buyer' } } } }
    const { list, read } = await serve({ resources: true, overrides: { getLogo: { access: 'buyer' } } }, policy)
    expect((await list('resources')).map(({ name }) => name)).to.deep.equal(['listOrders'])
    expect((await list('resources', ['buyer'])).map(({ name }) => name)).to.deep.equal(['getLogo', 'listOrders'])
    expect((await read('openapi://shop/getLogo')).result).to.equal(undefined)
    expect(api.requests).to.deep.equal([])
  })
})
