// Tests the start screen: routes, commands and the URL. start-page.system.ts runs the commands.
import { expect } from 'chai'
import { selfCommand } from '../../cli/context.ts'
import { startPage } from '../../cli/start-page.ts'
import { type Definition, defineTool } from '../../core/index.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { startIssuer, stopIssuers } from '../support/test-issuer.ts'
import { type ConfigParts, configText, runCli, startCli, stopAll } from './in-process.ts'

const STARTER = { script: '/usr/local/bin/mcp-host', env: {}, cwd: '/srv' }

after(removeFolders)
after(stopHosts)
after(stopIssuers)

async function serve(parts: ConfigParts): Promise<string> {
  const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': configText(parts) }))
  const [page] = await running.printed(/[\s\S]*^listening on .*\n/m)
  return page
}

describe('start screen of mcp-host start', () => {
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

  it('has the URL of each route with its tools and access', () => {
    const rows = page
      .split('\n')
      .flatMap(line => /^ {2}http:\/\/127\.0\.0\.1:\d+(\S*) +(\d tools?) +(.*)$/.exec(line) ?? [])
    expect(rows.filter((_, index) => index % 4 > 0)).to.deep.equal([
      ...['', '1 tool', 'open'],
      ...['/old', '2 tools', 'open, stateless'],
      ...['/off', '1 tool', 'not served: no transport plugin'],
      ...['/t/:category?', '1 tool', 'open'],
    ])
  })

  it('ends with the URL, which responds', async () => {
    const [, address = ''] = /\nlistening on (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(page) ?? []
    expect((await fetch(`${address}/nowhere`)).status).to.equal(404)
  })

  it('names the config, and has a client command for the same URL', () => {
    expect(page).to.match(/^ {2}mcp-host \S+ {3}ready in \d+\.\d s {3}config mcp\.config\.mjs\n\n/)
    const [, address] = /^ {2}Try {6}.* call (\S+) echo$/m.exec(page) ?? []
    expect(page).to.match(new RegExp(`^ {2}Connect  .* connect claude-code ${address}$`, 'm'))
  })
})

describe('start screen of mcp-host start', () => {
  it('wraps between words at a terminal, and lists warnings with their codes below', async () => {
    const auth = `'auth-jwt': {}, 'resource-metadata': {}, 'dev-auth-server': {}`
    const parts = {
      secrets: 'undefined',
      plugins: auth,
      routes: "{ '/in': { toolsets: 'first', authorize: { scope: 'a' } } }",
    }
    const folder = await makeFolder({ 'mcp.config.mjs': configText(parts) })
    const running = startCli(
      ['start'],
      folder,
      { MCP_HOST_SECRETS: '', NODE_ENV: '', NO_COLOR: '1' },
      { terminal: true },
    )
    await running.logged(/ ! MH1031 .*\n(?: {11}\S.*\n)*/)
    running.child.kill()
    const { stdout, stderr } = await running.ended
    expect(stdout).to.match(
      /^ {2}http:\S+\/in +1 tool {3}login required \(scope a\)\n {2}authorization server +development only/m,
    )
    expect(stdout).not.to.match(/listening on|MH\d{4}/)
    expect(stderr).to.match(/^ {2}! MH2127 /m)
    for (const line of stderr.trimEnd().split('\n'))
      expect(line).to.match(/^(?: {2}! MH\d{4} \S.{0,90}| {11}\S.{0,88}|)$/)
    const explained = await runCli(['explain'], folder, { MCP_HOST_SECRETS: '', NO_COLOR: '1' }, { terminal: true })
    expect(explained.stderr).to.match(/^ {2}! MH2127 /m)
  })

  it('has the login and the call for a guarded route, and no curl command that would fail', async () => {
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
    expect(page).to.match(new RegExp(`^  Try      .* login ${host.url}/in\n {11}.* call ${host.url}/in now$`, 'm'))
    expect(page)
      .to.match(new RegExp(`^  authorization server +${authority}$`, 'm'))
      .and.not.match(/purge/)
    const untold = await startHost({ ...options, plugins: { 'transport-streamable': {}, ...auth } })
    expect(startPage(untold.host, '/srv/mcp.config.ts', STARTER))
      .to.match(/ doctor http:.*\/in$/m)
      .and.not.match(/ login http/)
  })

  it('suggests a tool that the suggested login may call, otherwise the list', async () => {
    const { url: authority } = await startIssuer()
    const status = defineTool({ name: 'status', annotations: { readOnlyHint: true }, handler: () => 'up' })
    const now = defineTool({ name: 'now', handler: () => 'now' })
    const lineOf = async (...all: Definition[]) => {
      const { host } = await startHost({
        toolsets: { all },
        routes: { '/in': { toolsets: 'all', authorize: { scope: 'mcp.tools' } } },
        plugins: {
          'transport-streamable': {},
          'auth-jwt': { authority, audience: 'a' },
          'resource-metadata': { authorizationServers: [authority], scopesSupported: ['mcp.tools', 'mcp.admin'] },
          'tool-policy': { policies: { admin: { scope: 'mcp.admin' } }, rules: { status: 'admin' } },
        },
      })
      return startPage(host, '/srv/mcp.config.ts', STARTER).replaceAll(host.url, 'URL')
    }
    expect(await lineOf(status, now)).to.match(/mcp-host login URL\/in\n {11}.*mcp-host call URL\/in now$/m)
    expect(await lineOf(status)).to.match(/mcp-host login URL\/in\n {11}.*mcp-host list URL\/in$/m)
  })

  it('counts all tools of an open route, and those that require access', async () => {
    const [all, access] = [[defineTool({ name: 'now', handler: () => 'now' })], { access: 'a' }]
    for (const name of ['one', 'two']) all.push(defineTool({ name, ...access, handler: () => name }))
    const { host } = await startHost({
      toolsets: { all },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, 'tool-policy': {} },
    })
    expect(startPage(host, '/srv/mcp.config.ts', STARTER)).to.match(/ 3 tools {3}open, except 2 tools$/m)
  })

  it('prints a call of a tool without required arguments, preferably a read-only one', async () => {
    const text = { type: 'string' } as const
    const convert = defineTool({
      name: 'convert_time',
      input: { type: 'object', properties: { time: text }, required: ['time'] },
      handler: () => 'x',
    })
    const bare = defineTool({ name: 'aaa', input: { type: 'object', properties: { zone: text } }, handler: () => 'x' })
    const purge = defineTool({ name: 'zzz', annotations: { destructiveHint: true }, handler: () => 'x' })
    const reading = defineTool({ name: 'read', annotations: { readOnlyHint: true }, handler: () => 'x' })
    const lineOf = async (...all: Definition[]) => {
      const routes = { '/': { toolsets: 'all' } }
      const { host } = await startHost({ toolsets: { all }, routes, plugins: { 'transport-streamable': {} } })
      return /mcp-host (?:call|list) .*$/m
        .exec(startPage(host, '/srv/mcp.config.ts', STARTER))?.[0]
        .replace(host.url, 'URL')
    }
    expect(await lineOf(convert, purge)).to.equal('mcp-host list URL')
    expect(await lineOf(convert, bare, purge)).to.equal('mcp-host call URL aaa')
    expect(await lineOf(convert, bare, reading)).to.equal('mcp-host call URL read')
  })

  it('prints how this program is started', () => {
    const of = (script: string, env: NodeJS.ProcessEnv = {}, program = '/usr/bin/node') =>
      selfCommand({ script, env, cwd: '/p' }, program)
    expect(of('/usr/local/bin/mcp-host')).to.equal('mcp-host')
    expect(of('/p/node_modules/.bin/mcp-host')).to.equal('npx mcp-host')
    expect(of('/usr/local/bin/mcp-host', { npm_command: 'exec' })).to.equal('npx mcp-host')
    expect(of('/a b/dist/cli/bin.js')).to.equal("node '/a b/dist/cli/bin.js'")
    expect(of('/p/cli/bin.ts')).to.equal('npx tsx cli/bin.ts')
  })
})
