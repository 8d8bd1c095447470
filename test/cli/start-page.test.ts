// What `start` prints, and that the commands in it work as printed, by the shell that people paste them into.
import { execFile } from 'node:child_process'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { selfCommand } from '../../cli/self-command.ts'
import { startPage } from '../../cli/start-page.ts'
import { defineTool } from '../../core/index.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { startIssuer, stopIssuers } from '../support/test-issuer.ts'
import { type ConfigParts, configText, type Running, startCli, stopAll } from './run-cli.ts'

const run = promisify(execFile)

after(removeFolders)
after(stopHosts)
after(stopIssuers)

async function serve(parts: ConfigParts): Promise<{ page: string; running: Running }> {
  // As without npm: its own folder has no mcp-host.
  const env = { npm_command: undefined, npm_execpath: undefined }
  const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': configText(parts) }), env)
  const [page] = await running.printed(/[\s\S]*^listening on .*\n/m)
  return { page, running }
}

/** The curl command of a page: its line and the ones that continue it. */
const curlOf = (page: string): string => /^curl (?:.*\\\n)*.*/m.exec(page)?.[0] ?? ''

async function toolsFromCurl(page: string): Promise<string[]> {
  const { stdout } = await run('sh', ['-c', curlOf(page)])
  return JSON.parse(stdout).result.tools.map(({ name }: { name: string }) => name)
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
    ;({ page } = await serve({ routes }))
  })

  it('has each route with its toolsets, protocol revisions and callers', () => {
    const rows = page.split('\n').filter(line => line.startsWith('/'))
    expect(rows.map(row => row.split(/ {3,}/))).to.deep.equal([
      ['/', 'first', '2026-07-28 and older, to 2024-11-05', 'anyone'],
      ['/old', 'first, second', '2026-07-28 and older, to 2024-11-05 (stateless)', 'anyone'],
      ['/off', 'second', 'none: no transport plugin is on', 'anyone'],
      ['/t/:category?', 'first, second', '2026-07-28 and older, to 2024-11-05', 'anyone'],
    ])
  })

  it('ends with the address, which answers', async () => {
    const [, address = ''] = /\nlistening on (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(page) ?? []
    expect((await fetch(`${address}/nowhere`)).status).to.equal(404)
  })

  it('has a curl command that lists the tools of the first open route when sh runs it as printed', async () => {
    expect(await toolsFromCurl(page)).to.deep.equal(['echo'])
  })

  it('has a client command for the same address', () => {
    const [, address] = /^curl -s (\S+)/m.exec(page) ?? []
    expect(page).to.match(/^npx -y @modelcontextprotocol\/inspector --cli .* --method tools\/list$/m)
    expect(page).to.include(`--cli ${address} `)
  })
})

describe('the page of mcp-host start', () => {
  afterEach(stopAll)

  it('names the config, and has a call with arguments that fit, which works as printed', async () => {
    const tool = `defineTool({
      name: 'add', annotations: { readOnlyHint: true }, input: { type: 'object', required: ['a', 'b', 'how'], properties: {
        a: { type: 'integer', minimum: 7 }, b: { type: 'number', default: 2.5 }, how: { enum: ["it's", 'x'] }, c: { type: 'string' },
      } },
      handler: ({ a, b, how }) => how + ' ' + (a + b),
    })`
    const { page } = await serve({ tool })
    expect(page).to.match(/^mcp-host .*, config mcp\.config\.mjs\n/)
    const [line = ''] = /^.* call .*$/m.exec(page) ?? []
    expect((await run('sh', ['-c', line])).stdout).to.equal("it's 9.5\n")
    expect(page).to.match(/^.* connect claude-code http:\S+$/m)
  })

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
    const page = startPage(host, '/srv/mcp.config.ts')
    expect(page).to.contain(`Try it with a token, at /in:\n`)
    expect(page).to.match(new RegExp(`^.* login ${host.url}/in\n.* call ${host.url}/in now$`, 'm'))
    expect(page).not.to.match(/curl|purge|\nTry it:/)
    const untold = await startHost({ ...options, plugins: { 'transport-streamable': {}, ...auth } })
    expect(startPage(untold.host, '/srv/mcp.config.ts'))
      .to.match(/ doctor http:.*\/in$/m)
      .and.not.match(/ login /)
  })

  it('says how this very program is started', () => {
    const of = (script: string, env: NodeJS.ProcessEnv = {}, program = '/usr/bin/node') =>
      selfCommand({ argv: [program, script], env })
    expect(of('/usr/local/bin/mcp-host')).to.equal('mcp-host')
    expect(of('/p/node_modules/.bin/mcp-host', { npm_command: 'exec' })).to.equal('npx mcp-host')
    expect(of('/a b/dist/cli/main.js')).to.equal("node '/a b/dist/cli/main.js'")
    expect(of(join(process.cwd(), 'cli/main.ts'))).to.equal('npx tsx cli/main.ts')
  })
})

describe('the printed curl command works as printed', () => {
  afterEach(stopAll)

  for (const [what, routes, tools] of [
    [
      'a route whose parameter has a default',
      "{ '/t/:category?': { toolsets: ':category', default: ['second'] } }",
      ['other'],
    ],
    ['a route whose parameter has no default', "{ '/t/:category?': { toolsets: ':category' } }", ['echo']],
    ['a route with a parameter that names no toolset', "{ '/:tenant/mcp': { toolsets: 'second' } }", ['other']],
    ['a path with characters that a shell reads', `{ "/it's&co;$HOME": { toolsets: 'first' } }`, ['echo']],
  ] as const) {
    it(`where the only route is ${what}`, async () => {
      const { page } = await serve({ routes })
      expect(await toolsFromCurl(page)).to.deep.equal(tools)
    })
  }

  it('on a host that is bound to every address', async () => {
    const { page } = await serve({ http: "{ host: '0.0.0.0', port: 0 }" })
    expect(await toolsFromCurl(page)).to.deep.equal(['echo', 'other'])
  })

  it('on a host that is bound to IPv6 loopback', async function () {
    const addresses = Object.values(networkInterfaces()).flatMap(known => known ?? [])
    if (!addresses.some(({ address }) => address === '::1')) this.skip()
    const { page } = await serve({ http: "{ host: '::1', port: 0 }" })
    expect(page).to.match(/^listening on http:\/\/\[::1\]:\d+$/m)
    expect(await toolsFromCurl(page)).to.deep.equal(['echo', 'other'])
  })
})
