// Tests calls that are in progress at an upstream server while a reload changes its options.
import { writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { createHost, reloadHost } from '../../../core/create-host.ts'
import { createLockEntry } from '../../../plugins/upstream/lock-entry.ts'
import type { UpstreamServer } from '../../../plugins/upstream/options.ts'
import { resolveServer } from '../../../plugins/upstream/settings.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { callTool, questionsIn } from '../../fixtures/asking-client.ts'
import { serve, serveLegacy, serveModern, stopServers } from '../../remote/support/servers.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import { modern } from '../../support/rpc.ts'
import { nextMessage, openSession, readRest } from '../../support/session-client.ts'
import { createTestLog, startHost, stopHosts } from '../../support/start-host.ts'
import type { StreamExchange } from '../../support/stream-exchange.ts'

const opened: Array<{ close(options: { grace: number }): Promise<unknown> }> = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map(host => host.close({ grace: 0 })))
  await stopHosts()
  await stopServers()
})
after(removeFolders)

async function gateway(server: UpstreamServer) {
  const clock = createManualClock()
  const configOf = (changed: Partial<UpstreamServer> = {}) => ({
    server: { name: 'gateway', version: '1.0.0' },
    http: { port: 0 },
    secrets: ['a secret for tests, long enough to be one'],
    routes: { '/': { toolsets: ['far'] } },
    plugins: {
      'transport-streamable': {},
      health: {},
      upstream: { held: { for: '1h' }, servers: { far: { prefix: '', ...server, ...changed } } },
    },
  })
  const folder = await makeFolder({ 'mcp.config.json': JSON.stringify(configOf()) })
  const host = await createHost(configOf() as never, { directory: folder, log: createTestLog(), clock })
  opened.push(host)
  await host.listen()
  const reload = async (changed: Partial<UpstreamServer>) => {
    await writeFile(join(folder, 'mcp.config.json'), JSON.stringify(configOf(changed)))
    const report = await reloadHost(host, { cwd: folder })
    expect(report.restart).to.deep.equal([])
    return report.taken
  }
  return { clock, url: host.url, reload, folder }
}

const accept = { action: 'accept', content: { name: 'Ada' } }

describe('A reload that changes the lock file', () => {
  it('serves the accepted tools of a server that is down', async () => {
    const { url, reload, folder } = await gateway({ url: 'http://127.0.0.1:1/' })
    const namesAt = async () =>
      (await modern(url, 'tools/list')).message.result.tools.map(({ name }: { readonly name: string }) => name)
    expect(await namesAt()).to.deep.equal([])
    const settings = resolveServer('far', { servers: { far: { url } } }, { directory: '.', at: [] })
    const tools = [{ name: 'add', inputSchema: { type: 'object' } }]
    const entry = createLockEntry({ tools, resources: [], resourceTemplates: [], prompts: [] }, false, settings)
    await writeFile(join(folder, 'mcp.lock.json'), JSON.stringify({ upstreams: { far: entry } }))
    await reload({})
    expect(await namesAt()).to.deep.equal(['add'])
  })

  it('reads the lists of a server without notifications again if they differ from the accepted ones', async () => {
    let description = 'Adds.'
    const toolsOf = () => [{ name: 'add', description, inputSchema: { type: 'object' } }]
    const server = await serveModern(
      ({ id, json }) => json({ jsonrpc: '2.0', id, result: { resultType: 'complete', tools: toolsOf() } }),
      { tools: {} },
    )
    const { clock, url, reload, folder } = await gateway({ url: server })
    const settings = resolveServer('far', { servers: { far: { url: server } } }, { directory: '.', at: [] })
    const accept = async () => {
      const lists = { tools: toolsOf(), resources: [], resourceTemplates: [], prompts: [] }
      const upstreams = { far: createLockEntry(lists, false, settings) }
      await writeFile(join(folder, 'mcp.lock.json'), JSON.stringify({ upstreams }))
      await reload({})
    }
    await accept()
    description = 'Adds up.'
    await accept()
    await clock.advance(1_000)
    await eventually('the accepted tool is served', async () => {
      const [tool] = (await modern(url, 'tools/list')).message.result.tools
      return tool?.description === description
    })
  })
})

describe('A reload that changes an upstream server', () => {
  it('keeps calls that wait for a response, until they have ended', async () => {
    const server = await serveLegacy()
    const { clock, url, reload } = await gateway({ url: server.url, callTimeout: '10s', maxCallTime: '5m' })
    const { message } = await callTool(url, 'ask')
    expect(Object.values(questionsIn(message))).to.deep.equal(['Your name?'])
    const before = new Set(server.sessions.keys())
    await reload({ callTimeout: '20s' })
    await clock.advance(15_000)
    const retry = { state: message.result.requestState, answers: { 'elicit-1': accept } }
    const { result } = (await callTool(url, 'ask', retry)).message
    expect(result.content[0].text).to.equal('accept Ada')
    await eventually('the connections of the previous version end', () => {
      const ended = new Set(server.ended)
      return [...before].every(session => ended.has(session))
    })
  })

  it('keeps calls with progress for `maxCallTime`, not longer', async () => {
    const puppet = createPuppet()
    const origin = await startHost({ toolsets: { all: [puppet.tool] }, routes: { '/': { toolsets: 'all' } } })
    const { clock, url, reload } = await gateway({ url: `${origin.url}/`, callTimeout: '10s', maxCallTime: '25s' })
    const client = await openSession(url)
    const calls = ['a', 'b'].map(name => client.call('puppet', { name }))
    const [a, b] = await Promise.all([puppet.call('a'), puppet.call('b')])
    for (const { ctx } of [a, b]) ctx.progress(1)
    const [stream, other] = (await Promise.all(calls)) as [StreamExchange, StreamExchange]
    for (const from of [stream, other]) expect((await nextMessage(from)).params.progress).to.equal(1)
    await reload({ maxCallTime: '24s' })
    for (const progress of [2, 3]) {
      await clock.advance(8_000)
      for (const [call, from] of [
        [a, stream],
        [b, other],
      ] as const) {
        call.ctx.progress(progress)
        expect((await nextMessage(from)).params.progress).to.equal(progress)
      }
    }
    a.finish('done')
    expect((await readRest(stream)).at(-1)?.result.content[0].text).to.equal('done')
    await clock.advance(9_000)
    expect((await readRest(other)).at(-1)?.result.isError).to.equal(true)
  })

  it('retries servers that are down, also without changes', async () => {
    const { server, origin } = await serve((_, response) => void response.writeHead(500).end())
    const { url, reload } = await gateway({ url: `${origin}/` })
    type Health = { readonly states: { readonly far: string } }
    const stateNow = async () => ((await (await fetch(new URL('/health', url))).json()) as Health).states.far
    expect(await stateNow()).to.match(/^down since/)
    const { port } = server.address() as AddressInfo
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
    await startHost({
      http: { port },
      toolsets: { all: [createPuppet().tool] },
      routes: { '/': { toolsets: 'all' } },
    })
    expect(await reload({})).to.satisfy((taken: string[]) => taken.some(text => text.includes('far')))
    await eventually('the server is up', async () => (await stateNow()).startsWith('up'))
    expect(await reload({})).to.deep.equal([])
  })

  it('changes whether the host is ready while the server is down', async () => {
    const { url, reload } = await gateway({ url: 'http://127.0.0.1:1/' })
    const status = async () => (await fetch(new URL('/readyz', url))).status
    expect(await status()).to.equal(200)
    await reload({ whenDown: 'fail' })
    expect(await status()).to.equal(503)
    await reload({ whenDown: 'keep' })
    expect(await status()).to.equal(200)
  })
})
