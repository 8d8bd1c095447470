// Tests the client commands with the protected example, whose authorization server is oidc-provider.
import { expect } from 'chai'
import type { Host } from '../../core/host.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { Browser, readClaims } from '../support/form-browser.ts'
import { startProtectedExample } from '../support/protected-example.ts'
import { type FakeBrowser, startFakeBrowser, stopFakeBrowsers } from './fake-browser.ts'
import { type Ended, runCli, stopAll } from './in-process.ts'

describe('client commands with the protected example', () => {
  let host: Host
  let url: string
  let browser: FakeBrowser
  let home: string
  let env: NodeJS.ProcessEnv

  const run = (...args: string[]): Promise<Ended> => runCli(args, home, env, { openBrowser: browser.open })
  const bearer = (token: string) =>
    fetch(url, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: '{}' }).then(
      ({ status }) => status,
    )

  before(async () => {
    host = await startProtectedExample()
    url = `${host.url}/`
    browser = await startFakeBrowser(address => new Browser(address.origin).allow(address, 'ada'))
  })
  beforeEach(async () => {
    home = await makeFolder({})
    env = { ...browser.env, MCP_HOST_HOME: home, MCP_HOST_TOKEN_KEY: '' }
    browser.opened.length = 0
  })
  after(async () => {
    await stopAll()
    await stopFakeBrowsers()
    await host.close({ grace: 0 })
    await removeFolders()
  })

  it('request a login without a terminal, then list, call and print a token until the logout', async () => {
    const before = await Promise.all([run('list', url), run('call', url, 'current_time'), run('token', url)])
    for (const { code, stdout, stderr } of before) {
      expect([code, stdout]).to.deep.equal([1, ''])
      expect(stderr).to.match(new RegExp(`^mcp-host: .*; log in with: mcp-host login ${url}\n$`))
    }

    expect(before[1]?.stderr).to.include("--header 'Authorization: Bearer TOKEN'")

    const login = await run('login', url)
    expect(login.stdout).to.match(
      new RegExp(
        `^logged in at ${url}dev-auth as client \\S+, scopes mcp.tools, until .*, then refreshed automatically\n$`,
      ),
    )

    const [list, call, token] = await Promise.all([
      run('list', url, '--tools', '--json'),
      run('call', url, 'current_time', '{"zones": ["Asia/Tokyo"]}'),
      run('token', url),
    ])
    expect(list.code, list.stderr).to.equal(0)
    expect(JSON.parse(list.stdout).protocolVersion).to.equal('2026-07-28')
    expect(JSON.parse(call.stdout).times[0].zone).to.equal('Asia/Tokyo')
    expect(readClaims(token.stdout.trim())).to.include({ sub: 'ada', aud: url.replace(/\/$/, ''), scope: 'mcp.tools' })
    expect(await bearer(token.stdout.trim())).to.not.equal(401)
    expect(browser.opened).to.have.length(1)

    const out = await run('logout', url, '--forget-client')
    expect(out.stdout).to.include(url)
    const after = await run('call', url, 'current_time')
    expect([after.code, after.stdout]).to.deep.equal([1, ''])
  })

  it('name the scope that a tool requires, and the login command for it', async () => {
    await run('login', url)
    const refused = await run('call', url, 'clear_cache')
    expect([refused.code, refused.stdout]).to.deep.equal([1, ''])
    const [, command = ''] = /log in with: mcp-host (.*)\n$/.exec(refused.stderr) ?? []
    expect(command).to.equal(`login ${url} --add-scope mcp.admin`)
    const added = await run(...command.split(' '))
    expect(added.stdout).to.contain(', scopes mcp.tools mcp.admin, ').and.contain(', then refreshed automatically')
    expect(browser.opened.at(-1)?.searchParams.get('scope')?.split(' ')).to.include('offline_access')
    expect(await run('call', url, 'clear_cache')).to.deep.equal({
      code: 0,
      stdout: 'The cache was cleared for ada.\n',
      stderr: '',
    })
  })

  it('name the next step after a refused header', async () => {
    const invalid = await run('call', url, 'current_time', '--header', 'Authorization: Bearer no-such-token')
    expect(invalid.stderr).to.equal(
      `mcp-host: error MH3201: ${url}: Authentication required: the token is not a JWT; ` +
        `send a valid token in --header, or omit --header and log in with: mcp-host login ${url}\n`,
    )
    await run('login', url)
    const { stdout: token } = await run('token', url)
    const narrow = await run('call', url, 'clear_cache', '--header', `Authorization: Bearer ${token.trim()}`)
    expect(narrow.stderr).to.match(
      /requires the scope mcp\.tools mcp\.admin; send a token with this scope in --header, or omit --header and log in/,
    )
  })

  it('log a user in at a terminal, and again for one more scope during a call', async () => {
    const options = { openBrowser: browser.open, terminal: true }
    const { code, stdout, stderr } = await runCli(['call', url, 'clear_cache'], home, env, options)
    expect(code, stderr).to.equal(0)
    expect(stderr).to.match(/mcp\.tools mcp\.admin/)
    expect(stdout).to.equal('The cache was cleared for ada.\n')
    const scopes = browser.opened.map(address => address.searchParams.get('scope')?.split(' '))
    expect(scopes).to.have.length(2)
    expect(scopes[0]).to.include('mcp.tools').and.not.include('mcp.admin')
    expect(scopes[1]).to.include.members(['mcp.tools', 'mcp.admin'])
    // The next call asks nobody.
    expect((await run('call', url, 'clear_cache')).code).to.equal(0)
  })

  it('doctor follows the steps of a client, and finds no problem', async () => {
    const { code, stdout } = await run('doctor', url)
    expect(code, stdout).to.equal(0)
    for (const check of [
      'challenge',
      'resource',
      'scopes',
      'issuer',
      'pkce',
      'registration',
      'authentication',
      'renewal',
    ]) {
      expect(stdout).to.match(new RegExp(`^ok +client: ${check} `, 'm'))
    }
    const byOption = await run('doctor', '--url', url)
    expect(byOption).to.deep.equal({ code, stdout, stderr: '' })
  })
})
