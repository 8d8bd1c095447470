// `mcp-host proxy --protocol auto` by hand: what is answered by the proxy, what cannot be translated, and that nothing is
// changed where client and server have a revision in common.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { defineResource, defineTool } from '../../core/index.ts'
import { removeFolders } from '../config/folder.ts'
import { INITIALIZE, initialize, meta, type Received, textOf } from '../plugins/transport-stdio/stdio-client.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { startModernHost } from '../support/modern-host.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { endRelays, openProxy, type ProxyClient, QUICK } from './proxy-client.ts'
import { startSdkServer, stopSdkServers } from './sdk-server.ts'

const AUTO = { protocol: 'auto' }
const PAGE = 'test://page'
const META = 'io.modelcontextprotocol'
const FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const

const toolsets = {
  all: [
    defineTool({
      name: 'ask',
      handler: async (_args, { elicit }) => (await elicit({ message: 'Name?', requestedSchema: FORM })).action,
    }),
    defineTool({ name: 'list', output: { type: 'array', items: { type: 'number' } }, handler: () => [1, 2] }),
    defineTool({
      name: 'link',
      handler: () => [
        { type: 'resource_link' as const, name: 'page', uri: PAGE },
        { type: 'audio' as const, data: 'AA==', mimeType: 'audio/wav' },
      ],
    }),
    defineTool({
      name: 'place',
      input: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } } as const,
      handler: ({ region }) => `in ${region}`,
    }),
    defineTool({
      name: 'hang',
      handler: (_args, { signal, progress }) =>
        new Promise((_resolve, reject) => {
          progress(1)
          signal.addEventListener('abort', () => reject(signal.reason))
        }),
    }),
    defineTool({
      name: 'edit',
      handler(_args, { host }) {
        host.resourceUpdated(PAGE)
        return 'edited'
      },
    }),
    defineResource({ name: 'page', uri: PAGE, handler: () => 'text' }),
  ],
}

interface Asked {
  readonly id: unknown
  readonly method: string
  readonly params: Record<string, unknown>
  readonly headers: Record<string, unknown>
}
type Answer = (asked: Asked, response: ServerResponse) => object | undefined

const servers: Array<ReturnType<typeof createServer>> = []
/** A server of 2026-07-28 of which the test says what it answers. */
async function serve(answer: Answer, capabilities: object = { tools: {} }) {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request) body += String(piece)
    if (request.method !== 'POST') return response.writeHead(405).end()
    const message = { ...JSON.parse(body), headers: request.headers } as Asked
    asked.push(message)
    const { id, method } = message
    const say = (more: object, status = 200) =>
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...more }))
    if (method === 'initialize') return say({ error: { code: -32022, message: 'only 2026-07-28' } }, 400)
    if (method === 'server/discover')
      return say({ result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities } })
    const more = answer(message, response)
    if (more) say(more)
  })
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, asked }
}

const call = (id: number, name: string, more: object = {}) => ({ id, method: 'tools/call', params: { name, ...more } })
const answerTo = (client: ProxyClient, id: number | string) =>
  client.until(message => message.id === id && message.method === undefined)
const say = ({ error, result }: Received) => (error ? `${error.code} ${error.message}` : JSON.stringify(result))

describe('mcp-host proxy --protocol auto', () => {
  let url: string
  before(async () => {
    url = `${(await startModernHost(toolsets)).url}/mcp`
  })
  after(async () => {
    await endRelays()
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
    await stopHosts()
    await stopSdkServers()
    await removeFolders()
  })

  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
    it(`speaks ${revision} to the client: lists, calls, questions, changes, contents that it knows`, async () => {
      const client = await openProxy(url, AUTO)
      const opened = await initialize(client, revision, { elicitation: {} })
      expect(opened.result).to.deep.include({
        protocolVersion: revision,
        serverInfo: { name: 'test-host', version: '1.2.3' },
      })
      const { tools } = (await client.request(1, 'tools/list')).result as { tools: Array<Record<string, unknown>> }
      expect(tools.find(({ name }) => name === 'list')).to.not.have.property('outputSchema')
      expect((await client.request(2, 'tools/call', { name: 'list' })).result).to.deep.equal({
        content: [{ type: 'text', text: '[1,2]' }],
      })
      expect(
        textOf(await client.request(3, 'tools/call', { name: 'place', arguments: { region: 'Zürich' } })),
      ).to.equal('in Zürich')
      const { content } = (await client.request(4, 'tools/call', { name: 'link' })).result as {
        content: Array<{ type: string }>
      }
      expect(content.map(({ type }) => type)).to.deep.equal([
        revision >= '2025-06-18' ? 'resource_link' : 'text',
        revision >= '2025-03-26' && revision !== '2024-11-05' ? 'audio' : 'text',
      ])
      client.say(call(5, 'ask'))
      const question = await client.until(({ method }) => method === 'elicitation/create')
      client.say({ id: question.id, result: { action: 'decline' } })
      expect(textOf(await answerTo(client, 5))).to.equal('decline')
      expect((await client.request(6, 'resources/subscribe', { uri: PAGE })).result).to.deep.equal({})
      await client.request(7, 'tools/call', { name: 'edit' })
      const updated = await client.until(({ method }) => method === 'notifications/resources/updated')
      expect(updated.params).to.deep.equal({ uri: PAGE })
      expect((await client.request(8, 'resources/read', { uri: PAGE })).result).to.deep.equal({
        contents: [{ uri: PAGE, text: 'text' }],
      })
      const missing = await client.request(9, 'resources/read', { uri: 'test://none' })
      expect(missing.error?.code).to.equal(-32002)
      expect((await client.request(10, 'resources/subscribe', { uri: 'test://none' })).error?.code).to.equal(-32002)
      for (const line of client.lines) {
        expect(line).to.not.match(/resultType|ttlMs|cacheScope|io\.modelcontextprotocol|requestState/)
      }
    })
  }

  it('answers what the newer revision has no more, and says what it has not', async () => {
    const client = await openProxy(url, AUTO)
    await initialize(client, '2030-01-01')
    expect(say(await client.request(1, 'ping'))).to.equal('{}')
    expect(say(await client.request(2, 'logging/setLevel', { level: 'info' }))).to.equal('{}')
    expect(say(await client.request(3, 'logging/setLevel', { level: 'loud' }))).to.match(/^-32602/)
    expect(say(await client.request(4, 'tasks/list'))).to.equal(
      '-32601 the server speaks 2026-07-28, where tasks/list of 2025-11-25 has no like',
    )
    expect(say(await client.request(5, 'no/such'))).to.match(/^-32601 /)
    expect(say(await client.request(6, 'tools/call', { name: 'none' }))).to.match(/^-32602 /)
    client.write('[{"jsonrpc":"2.0","id":7,"method":"ping"}]\n')
    expect(say(await client.until(({ error }) => error !== undefined))).to.match(/^-32600 2025-11-25/)
    // Another client on the same line may be of the newer revision.
    expect((await client.request(8, 'tools/list', meta())).result).to.include({ resultType: 'complete' })
  })

  it('takes batches of 2025-03-26, and no id twice', async () => {
    const held: ServerResponse[] = []
    const { url: slow } = await serve((_asked, response) => void held.push(response))
    const client = await openProxy(slow, AUTO)
    await initialize(client, '2025-03-26')
    client.write('[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]\n')
    await Promise.all([answerTo(client, 1), answerTo(client, 2)])
    client.say(call(3, 'x'))
    expect(say(await client.request(3, 'ping'))).to.match(/^-32600.*3/)
  })

  it('sends each round under another id, with the state as it came, and again later where nothing is asked', async () => {
    const rounds: Asked[] = []
    const state = ' opaque \u2603 {"'
    const { url: asking } = await serve(asked => {
      rounds.push(asked)
      const { length } = rounds
      if (length === 1)
        return {
          result: {
            resultType: 'input_required',
            inputRequests: { ['__proto__x']: { method: 'roots/list' } },
            requestState: state,
          },
        }
      if (length === 2) return { result: { resultType: 'input_required', requestState: 'later' } }
      return { result: { resultType: 'complete', content: [{ type: 'text', text: 'done' }] } }
    })
    const client = await openProxy(asking, AUTO)
    await initialize(client, '2025-11-25', { roots: {} })
    client.say(call(1, 'x', { arguments: { a: 1 }, _meta: { progressToken: 'p', own: 2 } }))
    const { id, params } = await client.until(({ method }) => method === 'roots/list')
    expect(params).to.equal(undefined)
    client.say({ id, result: { roots: [] } })
    expect(textOf(await answerTo(client, 1))).to.equal('done')
    expect(new Set(rounds.map(one => one.id)).size).to.equal(3)
    expect(
      rounds.map(one => [one.params['requestState'], one.params['inputResponses'], one.params['arguments']]),
    ).to.deep.equal([
      [undefined, undefined, { a: 1 }],
      [state, { ['__proto__x']: { roots: [] } }, { a: 1 }],
      ['later', undefined, { a: 1 }],
    ])
    for (const { params: sent, headers } of rounds) {
      expect(sent['_meta']).to.deep.equal({
        progressToken: 'p',
        own: 2,
        [`${META}/protocolVersion`]: '2026-07-28',
        [`${META}/clientInfo`]: INITIALIZE.clientInfo,
        [`${META}/clientCapabilities`]: { roots: {} },
      })
      expect(headers).to.include({ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'x' })
      expect(headers).to.not.have.property('mcp-session-id')
    }
  })

  it('says why, where what the server wants cannot be had', async () => {
    const wants = new Map<string, object>([
      [
        'undeclared',
        { inputRequests: { a: { method: 'elicitation/create', params: { message: 'x', requestedSchema: FORM } } } },
      ],
      ['unknown', { inputRequests: { a: { method: 'tools/call' } } }],
      [
        'many',
        { inputRequests: Object.fromEntries(Array.from({ length: 101 }, (_, key) => [key, { method: 'roots/list' }])) },
      ],
      ['nothing', {}],
      ['no object', { inputRequests: [] }],
      ['ever', { requestState: 's' }],
      ['task', { resultType: 'task' }],
      ['refuse', { inputRequests: { a: { method: 'roots/list' }, b: { method: 'roots/list' } } }],
    ])
    const { url: strange, asked } = await serve(({ method, params }) =>
      method === 'tools/list'
        ? { result: { resultType: 'input_required', requestState: 's' } }
        : { result: { resultType: 'input_required', ...wants.get(String(params['name'])) } },
    )
    const client = await openProxy(strange, AUTO, { ...QUICK, longestPause: 20 })
    await initialize(client, '2025-11-25', { roots: {} })
    const told = async (name: string) => say(await client.request(1, 'tools/call', { name }))
    expect(await told('undeclared')).to.match(/^-32000.*elicitation\/create.*"elicitation":\{"form":\{\}\}\}$/)
    expect(await told('unknown')).to.match(/^-32000/)
    expect(await told('many')).to.equal('-32000 the server asks more than 100 questions at once')
    expect(await told('nothing')).to.match(/^-32000/)
    expect(await told('no object')).to.match(/^-32000/)
    expect(await told('task')).to.match(/^-32000.*tools\/call.*"task".*2025-11-25/)
    expect(say(await client.request(2, 'tools/list'))).to.match(/"input_required"/)
    const before = asked.length
    client.say(call(3, 'refuse'))
    const first = await client.until(({ method }) => method === 'roots/list')
    const second = await client.until(({ method }) => method === 'roots/list')
    client.say({ id: first.id, error: { code: -32603, message: 'no roots today' } })
    expect(say(await answerTo(client, 3))).to.match(/^-32000.*roots\/list/)
    const withdrawn = await client.until(({ method }) => method === 'notifications/cancelled')
    expect(withdrawn.params?.['requestId']).to.equal(second.id)
    expect(asked.length).to.equal(before + 1)
    client.say(call(4, 'ever'))
    expect(say(await answerTo(client, 4))).to.match(/32 times/)
    expect(asked.filter(({ params }) => params['name'] === 'ever')).to.have.length(33)
  }).timeout(30_000)

  it('closes the response of a call that is cancelled, and withdraws what the client was asked for it', async () => {
    let closed = 0
    const { url: slow, asked } = await serve(({ params }, response) => {
      if (params['name'] === 'ask')
        return { result: { resultType: 'input_required', inputRequests: { a: { method: 'roots/list' } } } }
      response.on('close', () => closed++)
      return undefined
    })
    const client = await openProxy(slow, AUTO)
    await initialize(client, '2025-11-25', { roots: {} })
    client.say(call(1, 'wait'))
    while (!asked.some(({ params }) => params?.['name'] === 'wait')) await new Promise(setImmediate)
    client.say({ method: 'notifications/cancelled', params: { requestId: 1 } })
    while (closed === 0) await new Promise(setImmediate)
    expect(asked.some(({ method }) => method === 'notifications/cancelled')).to.equal(false)
    client.say(call(2, 'ask'))
    const { id } = await client.until(({ method }) => method === 'roots/list')
    client.say({ method: 'notifications/cancelled', params: { requestId: 2 } })
    expect((await client.until(({ method }) => method === 'notifications/cancelled')).params?.['requestId']).to.equal(
      id,
    )
    // Nobody waits for it any more, and the id is free.
    client.say({ id, result: { roots: [] } })
    client.say(call(2, 'ask'))
    const other = await client.until(({ method }) => method === 'roots/list')
    client.input.end()
    expect(say(await answerTo(client, 2))).to.match(/^-32000/)
    expect(other.id).to.not.equal(id)
    await client.relay.ended
  })

  it('listens anew where the server ends the subscription, and says where there is none', async () => {
    const filters: unknown[] = []
    const open: ServerResponse[] = []
    const event = (response: ServerResponse, message: object) =>
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`)
    const { url: telling } = await serve(
      ({ id, params }, response) => {
        const { notifications } = params as { notifications: Record<string, unknown> }
        filters.push(notifications)
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const _meta = { [`${META}/subscriptionId`]: id }
        event(response, { method: 'notifications/subscriptions/acknowledged', params: { _meta, notifications } })
        open.push(response)
        if (filters.length !== 1) return undefined
        event(response, { id, result: { resultType: 'complete', _meta } })
        response.end()
        return undefined
      },
      { tools: { listChanged: true }, resources: { subscribe: true } },
    )
    const client = await openProxy(telling, AUTO)
    await initialize(client)
    while (filters.length < 2) await new Promise(setImmediate)
    await Promise.all([
      client.request(1, 'resources/subscribe', { uri: 'a:' }),
      client.request(2, 'resources/subscribe', { uri: 'b:' }),
    ])
    await client.request(3, 'resources/unsubscribe', { uri: 'a:' })
    expect(filters.at(-1)).to.deep.equal({ toolsListChanged: true, resourceSubscriptions: ['b:'] })
    while (open.filter(({ closed }) => !closed).length > 1) await new Promise(setImmediate)
    client.input.end()
    await client.relay.ended
    const { url: silent, asked } = await serve(() => ({ error: { code: -32601, message: 'none' } }))
    const other = await openProxy(silent, AUTO)
    await initialize(other)
    expect(say(await other.request(1, 'resources/subscribe', { uri: 'a:' }))).to.match(/^-32601/)
    expect(asked.some(({ method }) => method === 'subscriptions/listen')).to.equal(false)
  })

  it('tells of changes again after every connection was cut, and says which call was lost', async () => {
    const cutting = await startCuttingProxy(new URL(url).origin)
    const client = await openProxy(`${cutting.url}/mcp`, AUTO)
    await initialize(client)
    expect(say(await client.request(1, 'resources/subscribe', { uri: PAGE }))).to.equal('{}')
    client.say(call(2, 'hang', { _meta: { progressToken: 'p' } }))
    await client.until(({ method }) => method === 'notifications/progress')
    cutting.cutAll()
    expect(say(await answerTo(client, 2))).to.match(/broke before the answer came/)
    // What was missed meanwhile is not known.
    await client.until(({ method }) => method === 'notifications/resources/updated')
    client.seen.length = 0
    await client.request(3, 'tools/call', { name: 'edit' })
    await client.until(({ method }) => method === 'notifications/resources/updated')
    client.input.end()
    await client.relay.ended
    await cutting.stop()
  })

  it('leaves out tools that are to be ignored, as ever', async () => {
    const client = await openProxy(url, { ...AUTO, 'ignore-tool': ['ask'] })
    await initialize(client)
    const { tools } = (await client.request(1, 'tools/list')).result as { tools: Array<{ name: string }> }
    expect(tools.map(({ name }) => name)).to.not.include('ask')
    expect(say(await client.request(2, 'tools/call', { name: 'ask' }))).to.match(/--ignore-tool/)
  })

  it('ends soon after its input, also where `initialize` is never answered; what follows it waits for it', async () => {
    const held: ServerResponse[] = []
    const stuck = createServer((_request, response) => void held.push(response))
    servers.push(stuck)
    await once(stuck.listen(0, '127.0.0.1'), 'listening')
    for (const values of [{}, AUTO]) {
      const client = await openProxy(`http://127.0.0.1:${(stuck.address() as AddressInfo).port}/mcp`, values)
      client.say({ id: 0, method: 'initialize', params: INITIALIZE })
      client.say({ id: 1, method: 'ping' })
      while (held.length === 0) await new Promise(setImmediate)
      client.relay.end()
      await client.relay.ended
      expect([held.length, client.lines]).to.deep.equal([1, []])
      held.length = 0
    }
    const client = await openProxy(url, AUTO)
    client.say({ id: 0, method: 'initialize', params: INITIALIZE })
    for (let id = 1; id <= 300; id++) client.say({ id, method: 'ping' })
    client.input.end()
    await client.relay.ended
    expect(client.seen.map(({ id }) => id)).to.deep.equal(Array.from({ length: 301 }, (_, id) => id))
  })

  it('changes nothing where the server takes initialize, or is not there; without it the refusal is told', async () => {
    const { url: both } = await startHost({ toolsets, routes: { '/mcp': { toolsets: 'all' } } })
    const sdk = await startSdkServer()
    const journey = async (to: string, values: object) => {
      const client = await openProxy(to, values)
      await initialize(client)
      await client.request(1, 'tools/list')
      await client.request(2, 'ping')
      return client.lines
    }
    for (const to of [`${both}/mcp`, sdk.streamable, sdk.sse]) {
      expect(await journey(to, AUTO)).to.deep.equal(await journey(to, {}))
    }
    const plain = await openProxy(url)
    const refused = await plain.request(0, 'initialize', INITIALIZE)
    expect(refused.error?.code).to.equal(-32022)
    expect(plain.context.text.stderr).to.match(/^warning: \S+.*--protocol auto /)
    const gone = await serve(() => undefined)
    servers.pop()?.close()
    const down = await openProxy(gone.url, AUTO)
    expect((await down.request(0, 'initialize', INITIALIZE)).error?.message).to.match(/cannot be reached/)
    const wrong = await openProxy(url, { protocol: 'new' }).catch((error: Error) => error.message)
    expect(wrong).to.match(/^--protocol.*"new"/)
  })
})
