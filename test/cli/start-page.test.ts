// What `start` prints: routes, commands and the address. start-page.system.ts runs the commands.
import { expect } from 'chai'
import { selfCommand } from '../../cli/context.ts'
import { startPage } from '../../cli/start-page.ts'
import { defineTool } from '../../core/index.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { startIssuer, stopIssuers } from '../support/test-issuer.ts'
import { type ConfigParts, configText, startCli, stopAll } from './in-process.ts'

const STARTER = { script: '/usr/local/bin/mcp-host', env: {}, cwd: '/srv' }

after(removeFolders)
after(stopHosts)
after(stopIssuers)

async function serve(parts: ConfigParts): Promise<string> {
  const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': configText(parts) }))
  const [page] = await running.printed(/[\s\S]*^listening on .*\n/m)
  return page
}

describe('the page that mcp-host start prints', () => {
  after(stopAll)

  let page: string
  before(async () => {
    const routes = `{
      '/': { toolsets: ['first'] },
      '/old': { toolsets: ['first', 'second'], stateless: true },
      '/off': { toolsets: ['second'], plugins: { 'transport-streamable': false } },
      '/t/:category?': { toolsets: ':category', default: ['second'] },
    }`
    page = await serve({ routes })
  })

  it('has each route with its tools, toolsets, protocol versions and access', () => {
    const rows = page.split('\n').filter(line => line.startsWith('/'))
    expect(rows.map(row => row.split(/ {3,}/))).to.deep.equal([
      ['/', '1 tool', 'first', '2024-11-05 to 2026-07-28', 'open'],
      ['/old', '2 tools', 'first, second', '2024-11-05 to 2026-07-28 (stateless)', 'open'],
      ['/off', '1 tool', 'second', 'none (no transport plugin)', 'open'],
      ['/t/:category?', '1 tool', 'first, second', '2024-11-05 to 2026-07-28', 'open'],
    ])
  })

  it('ends with the address, which answers', async () => {
    const [, address = ''] = /\nlistening on (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(page) ?? []
    expect((await fetch(`${address}/nowhere`)).status).to.equal(404)
  })

  it('names the config, and has a client command for the same address', () => {
    expect(page).to.match(/^mcp-host .*, config mcp\.config\.mjs\n/)
    const [, address] = /^curl -s (\S+)/m.exec(page) ?? []
    expect(page).to.match(/^npx -y @modelcontextprotocol\/inspector --cli .* --method tools\/list$/m)
    expect(page).to.include(`--cli ${address} `)
  })
})

describe('the page of mcp-host start', () => {
  it('has for a guarded route the login and the call, and no curl that is refused', async () => {
    const { url: authority } = await startIssuer()
    const purge = defineTool({ name: 'purge', annotations: { destructiveHint: true }, handler: () => 'gone' })
    const now = defineTool({ name: 'now', handler: () => 'now' })
    const options = {
      toolsets: { all: [purge, now] },
      routes: { '/in': { toolsets: 'all', authorize: true as const } },
    }
    const auth = { 'auth-jwt': { authority, audience: 'a' } }
    const metadata = { 'resource-metadata': { authorizationServers: [authority] } }
    const { host } = await startHost({ ...options, plugins: { 'transport-streamable': {}, ...auth, ...metadata } })
    const page = startPage(host, '/srv/mcp.config.ts', STARTER)
    expect(page).to.contain(`Log in and call /in:\n`)
    expect(page).to.match(new RegExp(`^.* login ${host.url}/in\n.* call ${host.url}/in now$`, 'm'))
    expect(page).not.to.match(/curl|purge|\nTry it:/)
    const untold = await startHost({ ...options, plugins: { 'transport-streamable': {}, ...auth } })
    expect(startPage(untold.host, '/srv/mcp.config.ts', STARTER))
      .to.match(/ doctor http:.*\/in$/m)
      .and.not.match(/ login http/)
  })

  it('prints a call only with arguments that the schema contains', async () => {
    const tool = (name: string, properties: object) =>
      defineTool({ name, input: { type: 'object', properties, required: Object.keys(properties) }, handler: () => 'x' })
    const convert = tool('convert_time', { time: { type: 'string' }, from: { type: 'string' } })
    const shown = tool('shown', { zone: { type: 'string', examples: ['Asia/Tokyo'] }, unit: { enum: ['h', 'm'] } })
    const wrong = tool('wrong', { count: { type: 'integer', default: 'many' } })
    const bare = defineTool({ name: 'zzz', handler: () => 'x' })
    const lineOf = async (...all: ReturnType<typeof tool>[]) => {
      const routes = { '/': { toolsets: 'all' } }
      const { host } = await startHost({ toolsets: { all }, routes, plugins: { 'transport-streamable': {} } })
      return /^mcp-host (?:call|list) .*$/m
        .exec(startPage(host, '/srv/mcp.config.ts', STARTER))?.[0]
        .replace(host.url, 'URL')
    }
    expect(await lineOf(convert)).to.equal('mcp-host list URL')
    expect(await lineOf(wrong, convert)).to.equal('mcp-host list URL')
    expect(await lineOf(convert, shown)).to.equal('mcp-host call URL shown zone=Asia/Tokyo unit=h')
    expect(await lineOf(convert, shown, bare as never)).to.equal('mcp-host call URL zzz')
  })

  it('says how this very program is started', () => {
    const of = (script: string, env: NodeJS.ProcessEnv = {}, program = '/usr/bin/node') =>
      selfCommand({ script, env, cwd: '/p' }, program)
    expect(of('/usr/local/bin/mcp-host')).to.equal('mcp-host')
    expect(of('/p/node_modules/.bin/mcp-host')).to.equal('npx mcp-host')
    expect(of('/usr/local/bin/mcp-host', { npm_command: 'exec' })).to.equal('npx mcp-host')
    expect(of('/a b/dist/cli/bin.js')).to.equal("node '/a b/dist/cli/bin.js'")
    expect(of('/p/cli/bin.ts')).to.equal('npx tsx cli/bin.ts')
  })
})
