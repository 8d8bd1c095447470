// Tests large documents, which a worker thread reads: same tools and errors as for small ones, and calls during a refresh.
import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import { stringify } from 'yaml'
import { defineTool } from '../../../core/index.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { startFailure } from '../../fixtures/start-failure.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { modern, type RpcMessage } from '../../support/rpc.ts'
import { startHost, stopHosts, type TestConfig } from '../../support/start-host.ts'
import { type Api, type ReceivedRequest, startApi } from './api.ts'

after(removeFolders)

const documentOf = (operationId: string, ref = '#/components/schemas/Order') => ({
  openapi: '3.0.3',
  info: { title: 'Orders', version: '1' },
  paths: {
    '/orders/{id}': {
      get: {
        operationId,
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'integer' } },
          { name: 'limit', in: 'query', schema: { type: 'integer', nullable: true } },
          { name: 'filter', in: 'query', content: { 'application/json': { schema: { $ref: ref } } } },
        ],
        security: [{ key: [] }],
        responses: { 200: { content: { 'application/json': { schema: { $ref: ref } } } } },
      },
      put: {
        operationId: `${operationId}Put`,
        requestBody: { required: true, content: { 'application/json': { schema: { $ref: ref } } } },
        responses: {},
      },
    },
    '/invalid': { get: { parameters: {}, responses: {} } },
  },
  components: {
    securitySchemes: { key: { type: 'apiKey', in: 'query', name: 'api_key' } },
    schemas: { Order: { type: 'object', properties: { next: { $ref: '#/components/schemas/Order' } } } },
  },
})

/** Appends an extension, so that lines stay the same. */
const enlarged = (yaml: string) => `${yaml}x-filler: ${'x'.repeat(550_000)}\n`
const large = (...of: Parameters<typeof documentOf>) => enlarged(stringify(documentOf(...of)))

const workers: Worker[] = []
const keepWorker = (worker: Worker) => void workers.push(worker)
before(() => process.on('worker', keepWorker))
after(() => process.off('worker', keepWorker))

let api: Api

beforeEach(async () => {
  workers.length = 0
  api = await startApi()
})
afterEach(async () => {
  await stopHosts()
  await api[Symbol.asyncDispose]()
})

function configOf(documents: Record<string, object>): TestConfig {
  const own = defineTool({ name: 'own', description: 'Own.', input: { type: 'object' }, handler: () => 'own' })
  const common = { baseUrl: api.url, allowHosts: [api.host], methods: ['get', 'put'] }
  const filled = Object.entries(documents).map(([name, source]) => [name, { ...common, ...source }])
  return {
    toolsets: { own: [own] },
    routes: {
      '/own': { toolsets: 'own' },
      ...Object.fromEntries(Object.keys(documents).map(name => [`/${name}`, { toolsets: name }])),
    },
    plugins: {
      'transport-streamable': {},
      openapi: { documents: Object.fromEntries(filled), refresh: '1m' },
    } as TestConfig['plugins'] & object,
  }
}

const listOf = async (url: string, path: string): Promise<RpcMessage[]> =>
  (await modern(`${url}/${path}`, 'tools/list')).message.result.tools
const namesOf = async (url: string) => (await listOf(url, 'orders')).map(({ name }) => name)

describe('A large OpenAPI document', () => {
  it('becomes the same tools, requests and warnings as its small copy, and is read at the same time as others', async () => {
    const text = stringify(documentOf('getOrder', 'schemas.yaml#/Order'))
    const folder = await makeFolder({
      'small.yaml': text,
      'large.yaml': enlarged(text),
      'schemas.yaml': stringify({ Order: { type: 'object', properties: { next: { $ref: '#/Order' } } } }),
      'overlay.yaml': stringify({
        overlay: '1.0.0',
        info: { title: 'More', version: '1' },
        actions: [{ target: '$.paths.*.get', update: { summary: 'By overlay.' } }],
      }),
    })
    const source = {
      overlay: './overlay.yaml',
      output: 'pass',
      resources: ['getOrder'],
      headers: { 'x-own': () => 'a-header' },
      credentials: { key: () => 'a-secret' },
      overrides: { getOrder: { arguments: { limit: { value: 5 }, filter: { default: { next: {} } } } } },
    }
    const { url, log } = await startHost(
      configOf({
        small: { ...source, document: './small.yaml' },
        large: { ...source, document: './large.yaml' },
        other: { document: './large.yaml', credentials: { key: 'k' } },
      }),
      folder,
    )
    expect(workers).to.have.length(2)
    expect((await listOf(url, 'other')).map(({ name }) => name)).to.deep.equal(['getOrder', 'getOrderPut'])
    const tools = await listOf(url, 'large')
    expect(tools).to.deep.equal(await listOf(url, 'small'))
    expect(tools.map(({ name }) => name)).to.deep.equal(['getOrder', 'getOrderPut'])
    const templates = async (path: string) => {
      const { resourceTemplates } = (await modern(`${url}/${path}`, 'resources/templates/list')).message.result
      return JSON.stringify(resourceTemplates).replaceAll(path, '')
    }
    expect(await templates('large'))
      .to.equal(await templates('small'))
      .and.include('getOrder')
    for (const path of ['large', 'small'])
      await modern(`${url}/${path}`, 'tools/call', { name: 'getOrder', arguments: { id: 7 } })
    const [sent, other] = api.requests as [ReceivedRequest, ReceivedRequest]
    expect(sent.url).to.equal(other.url).and.include('limit=5').and.include('api_key=a-secret')
    expect(sent.headers['x-own']).to.equal('a-header')
    const placeIn = (name: string) =>
      new RegExp(`${name}\\.yaml:(\\d+ \\(#/paths/~1invalid[^)]*\\))`).exec(JSON.stringify(log))?.[1]
    expect(placeIn('large')).to.equal(placeIn('small')).and.not.equal(undefined)
  })

  it('that cannot be used stops startup with the same error', async () => {
    const failure = async (text: string) =>
      startFailure(configOf({ orders: { document: './api.yaml' } }), await makeFolder({ 'api.yaml': text }))
    const text = 'info: {}\nswagger: "2.0"\n'
    const [small, inThread] = [await failure(text), await failure(enlarged(text))]
    expect(inThread.message).to.equal(small.message)
    expect(inThread).to.have.property('code', 'MH3402')
    expect(workers).to.have.length(1)
  })

  it('whose thread ends early stops startup', async () => {
    process.once('worker', worker => void worker.terminate())
    const folder = await makeFolder({ 'api.yaml': large('getOrder') })
    expect(await startFailure(configOf({ orders: { document: './api.yaml' } }), folder)).to.have.property(
      'code',
      'MH3401',
    )
  })
})

describe('A large OpenAPI document at a URL', () => {
  /** Serves the document, and a schema that the thread requests, which `held` delays. */
  async function serve() {
    const served = { operationId: 'getOrder', held: undefined as Promise<void> | undefined }
    api.answer = async ({ url }, res) => {
      if (url.startsWith('/schemas.yaml')) {
        await served.held
        res.end('Order: { type: object }')
      } else res.end(large(served.operationId, 'schemas.yaml#/Order'))
    }
    const clock = createManualClock()
    const orders = { document: `${api.url}/orders.yaml`, credentials: { key: 'k' } }
    const started = await startHost(configOf({ orders }), undefined, { clock })
    const until = (condition: () => boolean) => eventually(`${condition}`, condition)
    const requestsOf = (path: string) => api.requests.filter(({ url }) => url === path).length
    return { ...started, clock, served, until, requestsOf }
  }

  it('does not block calls while it is read again, stays served if that fails, and is not read after close', async () => {
    const { host, url, log, clock, served, until, requestsOf } = await serve()
    let release = () => {}
    served.held = new Promise(resolve => {
      release = resolve
    })
    served.operationId = 'readOrder'
    const begun = once(process, 'worker')
    await clock.advance(60_000)
    const [worker] = (await begun) as [Worker]
    const ended = once(worker, 'exit')
    const { message } = await modern(`${url}/own`, 'tools/call', { name: 'own', arguments: {} })
    expect(message.result.content[0].text).to.equal('own')
    await until(() => requestsOf('/schemas.yaml') === 2)
    expect(await namesOf(url)).to.deep.equal(['getOrder', 'getOrderPut'])
    release()
    await ended
    const changes = () => log.filter(({ code }) => code === 'MH3409').length
    await until(() => changes() > 0)
    expect(await namesOf(url)).to.deep.equal(['readOrder', 'readOrderPut'])

    // Without a change, and if the thread ends early.
    await clock.advance(60_000)
    await until(() => workers.length === 3)
    await once(workers[2] as Worker, 'exit')
    process.once('worker', worker => void worker.terminate())
    await clock.advance(60_000)
    await until(() => log.some(({ code }) => code === 'MH3410'))
    expect(changes()).to.equal(1)
    expect(await namesOf(url)).to.deep.equal(['readOrder', 'readOrderPut'])

    // After close.
    const before = requestsOf('/schemas.yaml')
    served.held = new Promise(() => {})
    await clock.advance(60_000)
    await until(() => requestsOf('/schemas.yaml') > before)
    const closed = once(workers.at(-1) as Worker, 'exit')
    await host.close({ grace: 0 })
    await closed
    expect(log.filter(({ code }) => code === 'MH3410')).to.have.length(1)
  })
})
