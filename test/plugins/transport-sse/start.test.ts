import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { StartError } from '../../../core/plugin.ts'
import { openSession, postMessage } from '../../support/session-client.ts'
import { connectSse, openSseSession } from '../../support/sse-client.ts'
import { startHost, stopHosts, type TestConfig } from '../../support/start-host.ts'

afterEach(stopHosts)

const echo = defineTool({ name: 'echo', handler: () => 'hi' })
const plugins = { 'transport-streamable': {}, 'transport-sse': {} }
const all = { all: [echo] }

async function startError(config: TestConfig): Promise<StartError> {
  try {
    await startHost({ plugins, ...config })
  } catch (error) {
    if (error instanceof StartError) return error
    throw error
  }
  throw new Error('the host started')
}

describe('transport-sse configuration', () => {
  it('fails startup on a stateless route, with a fix', async () => {
    const one = await startError({ toolsets: all, routes: { '/a': { toolsets: 'all', stateless: true } } })
    expect(one.message).to.include("routes['/a']").and.include('stateless').and.include("'transport-sse': false")
    expect(one.exitCode).to.equal(2)
    const every = await startError({ toolsets: all, stateless: true, routes: { '/': { toolsets: 'all' } } })
    expect(every.message).to.include('stateless')
  })

  it('allows startup if disabled on a stateless route', async () => {
    const { url } = await startHost({
      toolsets: all,
      plugins,
      routes: {
        '/': { toolsets: 'all' },
        '/a': { toolsets: 'all', stateless: true, plugins: { 'transport-sse': false } },
      },
    })
    expect((await connectSse(url)).stream.status).to.equal(200)
  })

  it('fails startup with a toolset named sse or message that shares its URL', async () => {
    for (const name of ['sse', 'message']) {
      const { message, exitCode } = await startError({
        toolsets: { ...all, [name]: [echo] },
        routes: { '/t/:category?': { toolsets: ':category', default: ['all'] } },
      })
      expect(message, name).to.include(`"${name}"`)
      expect(exitCode).to.equal(2)
    }
  })

  it('accepts a toolset with such a name if no URL contains it', async () => {
    const { url } = await startHost({ plugins, toolsets: { sse: [echo] }, routes: { '/': { toolsets: 'sse' } } })
    const { result } = await (await openSseSession(url)).request('tools/list')
    expect(result.tools).to.have.length(1)
  })

  it('fails startup if another route has its URL', async () => {
    const { message } = await startError({
      toolsets: all,
      routes: { '/': { toolsets: 'all' }, '/sse': { toolsets: 'all' } },
    })
    expect(message).to.include('/sse')
  })

  it('announces the message URL under the path of `publicUrl`', async () => {
    const { url } = await startHost({
      plugins,
      toolsets: all,
      http: { port: 0, publicUrl: 'https://mcp.example/prefix/' },
      routes: { '/': { toolsets: 'all' }, '/t/:category': { toolsets: ':category' } },
    })
    expect((await connectSse(url)).endpoint).to.match(/^\/prefix\/message\?sessionId=/)
    const { endpoint } = await connectSse(`${url}/t/all`)
    expect(endpoint).to.match(/^\/prefix\/t\/all\/message\?sessionId=/)
    const behindProxy = `${url}${endpoint.replace('/prefix', '')}`
    expect((await postMessage(behindProxy, { id: 1, method: 'ping' })).status).to.equal(202)
  })

  it('serves with and without streamable HTTP', async () => {
    const alone = await startHost({
      toolsets: all,
      plugins: { 'transport-sse': {} },
      routes: { '/': { toolsets: 'all' } },
    })
    expect((await (await openSseSession(alone.url)).request('tools/list')).result.tools).to.have.length(1)
    expect((await postMessage(alone.url, { id: 1, method: 'ping' })).status).to.equal(404)
    const both = await startHost({ toolsets: all, plugins, routes: { '/': { toolsets: 'all' } } })
    const [older, newer] = [await openSseSession(both.url), await openSession(both.url)]
    expect((await older.request('ping')).result).to.deep.equal({})
    expect((await newer.request('ping')).message.result).to.deep.equal({})
  })
})
