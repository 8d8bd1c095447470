// Tests `output: check`: results of upstream servers that do not match the output schemas of their tools.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect } from 'chai'
import type { UpstreamOptions } from '../../../plugins/upstream/index.ts'
import { serveModern, stopServers } from '../../remote/support/servers.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { startMetered } from '../metrics/scrape.ts'

afterEach(async () => {
  await stopHosts()
  await stopServers()
})

type Server = Partial<UpstreamOptions['servers'][string]>

const number = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
const slow = { type: 'object', properties: { s: { type: 'string', pattern: '^(a+)+$' } } }
const invalid = { type: 'object', properties: { n: { type: 'integr' } } }

/** A server whose tools return their arguments. */
const startServer = () =>
  serveModern(
    ({ id, method, params, json }) => {
      const tools = Object.entries({ number, slow, invalid, free: undefined }).map(([name, outputSchema]) => ({
        name,
        inputSchema: { type: 'object' },
        ...(outputSchema && { outputSchema }),
      }))
      const { failed, ...structuredContent } = (params['arguments'] ?? {}) as Record<string, unknown>
      const content = [{ type: 'text', text: 'text of the server' }]
      const isEmpty = Object.keys(structuredContent).length === 0
      const called = { content, ...(!isEmpty && { structuredContent }), ...(failed === true && { isError: true }) }
      const result = method === 'tools/list' ? { tools } : called
      json({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } })
    },
    { tools: {} },
  )

const configOf = async (server: Server) => ({
  toolsets: {},
  routes: { '/': { toolsets: 'far' } },
  plugins: {
    'transport-streamable': {},
    upstream: { servers: { far: { url: await startServer(), prefix: '', ...server } } },
  },
})

async function connected(url: string): Promise<Client> {
  const client = new Client({ name: 'official', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  await client.listTools()
  return client
}

describe('Results that do not match the output schema', () => {
  it('are errors with the location of the fault, and are logged once per definition', async () => {
    const { url, log } = await startHost(await configOf({ output: 'check' }))
    const client = await connected(url)
    const call = (name: string, args: Record<string, unknown>) => client.callTool({ name, arguments: args })
    expect((await call('number', { n: 1 })).structuredContent).to.deep.equal({ n: 1 })
    for (const n of ['one', 'two']) {
      const wrong = await call('number', { n })
      expect(wrong).to.include({ isError: true }).and.not.to.have.property('structuredContent')
      const [first, second] = wrong.content as Array<{ text: string }>
      expect(first?.text).to.match(/MH2957[\s\S]*n: .*integer/)
      expect(second?.text).to.equal('text of the server')
    }
    expect((await call('number', {})).isError, 'no structured content').to.equal(true)
    const lines = log.filter(({ code }) => code === 'MH2957')
    expect(lines).to.have.lengthOf(1)
    expect(lines[0]).to.include({ upstream: 'far', upstreamTool: 'number', level: 'warn' })
    await client.close()
  })

  it('exclude errors of the server and tools without a schema', async () => {
    const { url } = await startHost(await configOf({ output: 'check' }))
    const client = await connected(url)
    const failed = await client.callTool({ name: 'number', arguments: { failed: true } })
    expect(failed).to.deep.include({ isError: true, content: [{ type: 'text', text: 'text of the server' }] })
    const free = await client.callTool({ name: 'free', arguments: { any: 'thing' } })
    expect(free.structuredContent).to.deep.equal({ any: 'thing' })
    await client.close()
  })

  it('are found without patterns, and name an invalid schema', async () => {
    const { url } = await startHost(await configOf({ output: 'check' }))
    // The official client would run the pattern.
    const call = async (name: string, args: object) =>
      (await modern(url, 'tools/call', { name, arguments: args })).message.result
    expect(await call('slow', { s: `${'a'.repeat(40)}!` })).not.to.have.property('isError')
    expect((await call('invalid', { n: 1 })).content[0].text).to.match(/the schema is invalid/)
  })

  it('count as errors of the tool', async () => {
    const { url, one } = await startMetered(await configOf({ output: 'check' }))
    const client = await connected(url)
    await client.callTool({ name: 'number', arguments: { n: 'one' } })
    await client.callTool({ name: 'number', arguments: { n: 1 } })
    for (const outcome of ['ok', 'tool_error'])
      expect(await one('mcp_host_upstream_calls_total', { upstream: 'far', outcome }), outcome).to.equal(1)
    await client.close()
  })

  it('are passed on unless the options of the server or the tool say `check`', async () => {
    const { url } = await startHost(await configOf({ output: 'check', overrides: { number: { output: 'omit' } } }))
    const client = await connected(url)
    const { tools } = await client.listTools()
    expect(tools.find(({ name }) => name === 'number')).not.to.have.property('outputSchema')
    const passed = await client.callTool({ name: 'number', arguments: { n: 'one' } })
    expect(passed.structuredContent).to.deep.equal({ n: 'one' })
    await client.close()
  })
})
