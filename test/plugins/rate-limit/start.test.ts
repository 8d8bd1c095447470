// Rate limit configuration: startup errors, multi-process warnings, reload and `explain`.
import { expect } from 'chai'
import { createHost } from '../../../core/create-host.ts'
import { StartError } from '../../../core/plugin.ts'
import type { RateLimitOptions } from '../../../plugins/rate-limit/index.ts'
import { removeFolders } from '../../config/folder.ts'
import { startReloading, stopReloading } from '../../support/reloading-host.ts'
import { modern } from '../../support/rpc.ts'
import { createTestLog, stopHosts } from '../../support/start-host.ts'
import { startLimited, TOOLS } from './limited-host.ts'

after(removeFolders)
afterEach(stopHosts)
afterEach(stopReloading)

const startWith = (options: RateLimitOptions, processes = 1) =>
  createHost(
    {
      server: { name: 'test-host', version: '1.0.0' },
      http: { port: 0 },
      secrets: ['a secret for tests, long enough to be one'],
      toolsets: { all: TOOLS },
      routes: { '/': { toolsets: 'all', stateless: true } },
      plugins: { 'transport-streamable': {}, 'rate-limit': options },
    },
    { processes, log: createTestLog() },
  )

async function faultOf(start: Promise<unknown>): Promise<string> {
  const thrown = await start.catch((error: unknown) => error)
  expect(thrown).to.be.instanceOf(StartError)
  return (thrown as StartError).message
}

describe('rate-limit: configuration', () => {
  it('reports invalid limits with valid examples', async () => {
    for (const user of ['120', '120/m', '0/1m', '120/1.5m', '120 per minute']) {
      const message = await faultOf(startWith({ user }))
      expect(message)
        .to.include(user)
        .and.to.match(/'120\/1m/)
    }
    expect(await faultOf(startWith({ tools: { say: { limt: '1/1m' } as object } }))).to.match(
      /limt.*did you mean.*limit/s,
    )
  })

  it('rejects options without any limit', async () => {
    expect(await faultOf(startWith({}))).to.match(/address, user/)
    expect(await faultOf(startWith({ ipv6Prefix: 56, tools: {} }))).to.match(/address, user/)
  })

  it('warns about a rule that matches no tool', async () => {
    const { log } = await startLimited({ tools: { serch_web: '1/1m', 's*': '9/1m' } })
    const lines = log.filter(({ message }) => message?.includes('matches no tool'))
    expect(lines.map(({ message }) => message).join()).to.match(/tools\.serch_web.*"search_web"\?$/s)
    expect(lines).to.have.length(1)
  })

  it('fails startup with several processes and per-process counts, and suggests a fix', async () => {
    const message = await faultOf(startWith({ user: '9/1m' }, 3))
    expect(message).to.match(/3 processes .*3/s)
    const alone = await startWith({ concurrent: 4 }, 3).catch((error: unknown) => String(error))
    expect(String(alone)).not.to.include('rate-limit')
  })

  it('shows the limits of each route and tool in explain', async () => {
    const { host } = await startLimited({
      address: '600/1m',
      user: '1/10s',
      concurrent: 8,
      tools: { 'search*': { limit: '10/1m', concurrent: 2 }, '*': { limit: '900/1d', per: 'all' } },
    })
    const address = host.inspect('/')
    expect(address?.explainPlugins().join('\n')).to.match(
      /^rate-limit: address: .* 600 .*1m.*\nrate-limit: user: .* 1 .*10s.*\nrate-limit: concurrent: .* 8 .*\nrate-limit: .*process$/,
    )
    const search = address?.items.find(({ key }) => key === 'search_web')
    expect(address?.explainPlugins(search).join('\n')).to.match(
      /^rate-limit: tools "search\*": .* 10 .*1m.*user\nrate-limit: tools "search\*": .* 2 .*\nrate-limit: tools "\*": .* 900 .*1d.*all callers$/,
    )
  })

  const config = (limits: string) => `import { defineTool } from HERE
export default {
  server: { name: 'reloading', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { all: [defineTool({ name: 'say', handler: () => 'said' })] },
  routes: { '/': { toolsets: 'all', stateless: true } },
  plugins: { 'transport-streamable': {}, 'rate-limit': ${limits} },
}
`

  it('applies new limits on reload, and unchanged limits keep their counts', async () => {
    const reloading = await startReloading({ 'mcp.config.ts': config("{ address: '3/1h' }") })
    const call = () => modern(`${reloading.url}/`, 'tools/call', { name: 'say', arguments: {} })
    const found: number[] = []
    const ask = async () => void found.push((await call()).status)
    await ask()
    await ask()
    await reloading.write('mcp.config.ts', config("{ address: '3/1h', tools: { say: '1/1h' } }"))
    await reloading.reload()
    await ask()
    await ask()
    expect(found).to.deep.equal([200, 200, 200, 429])
    await reloading.write('mcp.config.ts', config("{ address: '9/1h' }"))
    await reloading.reload()
    await ask()
    await reloading.write('mcp.config.ts', config("{ address: '9/1h', onFailure: 'closed' }"))
    const report = await reloading.reload()
    expect(found.at(-1)).to.equal(200)
    expect(JSON.stringify(report)).to.match(/rate-limit/)
  })
})
