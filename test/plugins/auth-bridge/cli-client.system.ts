// Tests the `mcp-host login`, `list`, `call`, `token` and `logout` commands against a host with auth-bridge.
import { expect } from 'chai'
import { startFakeBrowser, stopFakeBrowsers } from '../../cli/fake-browser.ts'
import { runCli, stopAll } from '../../cli/in-process.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { eventually } from '../../support/eventually.ts'
import { readClaims } from '../../support/form-browser.ts'
import { stopIdentityProviders } from '../../support/identity-provider.ts'
import { callAs } from '../../support/protected-host.ts'
import { stopHosts } from '../../support/start-host.ts'
import { Person } from './browser-user.ts'
import { startWithScopes } from './scoped-bridge.ts'

describe('CLI client commands with auth-bridge', () => {
  after(async () => {
    await stopAll()
    await stopFakeBrowsers()
    await stopHosts()
    await stopIdentityProviders()
    await removeFolders()
  })

  /** A person at a machine; each has a home of its own. */
  async function startDesk(accessToken: string) {
    const bridge = await startWithScopes(accessToken)
    const person = new Person(bridge)
    const browser = await startFakeBrowser(person.answer)
    const home = await makeFolder({})
    const env = { ...browser.env, MCP_HOST_HOME: home, MCP_HOST_TOKEN_KEY: '' }
    return {
      bridge,
      person,
      url: bridge.resource,
      run: (...args: string[]) => runCli(args, home, env, { openBrowser: browser.open }),
    }
  }

  it('log in, list tools, call a tool, print a token and log out', async () => {
    const { bridge, person, url, run } = await startDesk('10m')
    const before = await run('list', url)
    expect([before.code, before.stdout]).to.deep.equal([1, ''])
    expect(before.stderr).to.match(new RegExp(`mcp-host login ${url}\n$`))

    const login = await run('login', url)
    expect(login.code, login.stderr).to.equal(0)
    expect(login.stdout).to.match(new RegExp(`^logged in at ${bridge.issuer} as client \\S+, scopes read, until `))
    expect(login.stdout).to.include('then refreshed automatically')

    const [list, call, token] = await Promise.all([
      run('list', url, '--tools', '--json'),
      run('call', url, 'whoami'),
      run('token', url),
    ])
    expect(list.stdout).to.include('"whoami"')
    expect(call.stdout).to.include('"subject": "ann"')
    expect(readClaims(token.stdout.trim())).to.include({ sub: 'ann', aud: url, scope: 'read' })
    expect([person.asked.length, person.consents.length]).to.deep.equal([1, 1])

    const doctor = await run('doctor', url)
    expect(doctor.code, doctor.stdout).to.equal(0)

    const out = await run('logout', url)
    expect(out).to.deep.equal({ code: 0, stdout: `logged out of ${url}: the tokens are revoked\n`, stderr: '' })
    expect((await run('call', url, 'whoami')).code).to.equal(1)
  })

  it('print the scope that a tool requires and the login command for it', async () => {
    const { person, url, run } = await startDesk('10m')
    await run('login', url)
    const refused = await run('call', url, 'clear_all')
    const [, command = ''] = /log in with: mcp-host (.*)\n$/.exec(refused.stderr) ?? []
    expect(command, refused.stderr).to.equal(`login ${url} --add-scope admin`)
    const added = await run(...command.split(' '))
    expect(added.stdout, added.stderr).to.include(', scopes read admin, ')
    expect((await run('call', url, 'clear_all')).stdout).to.include('"subject": "ann"')
    expect(person.consents).to.have.length(2)
  })

  it('refresh an expired token, and require a login after the user revokes access', async () => {
    const { bridge, person, url, run } = await startDesk('1s')
    await run('login', url)
    const first = (await run('token', url)).stdout.trim()
    await eventually('the token has expired', async () => (await callAs(url, first)).status === 401)
    // By its own clock it lives a little longer: that begins when the answer came.
    const isNew = ({ stdout }: { stdout: string }) => stdout.trim() !== first
    const renewed = await eventually('another token', () => run('token', url), isNew)
    expect(renewed.code, renewed.stderr).to.equal(0)
    expect(person.asked).to.have.length(1)

    expect(await person.revokeAll()).to.equal(1)
    await eventually('that has expired, too', async () => (await callAs(url, renewed.stdout.trim())).status === 401)
    const refused = await run('call', url, 'whoami')
    expect([refused.code, refused.stdout]).to.deep.equal([1, ''])
    expect(refused.stderr).to.match(new RegExp(`mcp-host login ${url}\n$`))
    const again = await run('login', url)
    expect(again.code, again.stderr).to.equal(0)
    expect([person.asked.length, person.consents.length]).to.deep.equal([2, 2])
    expect(bridge.idp.asked('interaction'), 'logins at the provider').to.equal(1)
  })
})
