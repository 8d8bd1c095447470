// Tests `mcp-host login --grant client_credentials`: secrets from the environment, files and prompts, never argv.
import { generateKeyPairSync } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { expectNoSecret } from '../client/support/leaks.ts'
import { makeFolder } from '../config/folder.ts'
import { type Desk, expectNothingShown, expectServes, filesOf, SECRET, startDesk, stopDesks } from './login-setup.ts'

describe('mcp-host login as a program, with client_credentials', () => {
  after(stopDesks)

  const PROGRAM = ['--grant', 'client_credentials', '--client-id', 'robot']
  /** With the issuer that the client is registered at. */
  const programOf = ({ fake }: Desk) => [...PROGRAM, '--client-issuer', fake.as.issuer]

  async function robotDesk(): Promise<Desk> {
    const desk = await startDesk()
    desk.fake.as.addClient({ client_id: 'robot', client_secret: SECRET })
    return desk
  }

  it('reads the secret from the environment, and gets new tokens with it', async () => {
    const desk = await robotDesk()
    const secret = { MCP_HOST_CLIENT_SECRET: SECRET }
    desk.fake.as.settings.tokenLifetime = 0
    const { code, stdout } = await desk.run(['login', desk.url, ...programOf(desk)], secret)
    expect(code).to.equal(0)
    expect(stdout).to.match(/as client robot, no scopes named, until [-0-9: ]+, then refreshed automatically\n$/)
    // It has ended, and the next one needs nobody.
    const status = await desk.run(['status', desk.url, '--json'])
    expect(status.code).to.equal(0)
    expect(JSON.parse(status.stdout)[0]).to.include({
      grant: 'client_credentials',
      loggedIn: true,
      expired: true,
      refreshable: true,
    })
    const without = await desk.run(['token', desk.url])
    expect([without.code, without.stdout]).to.deep.equal([1, ''])
    expect(without.stderr)
      .to.include('MCP_HOST_CLIENT_SECRET')
      .and.include('--client-secret-file: mcp-host')
      .and.include(desk.url)
    desk.fake.as.settings.tokenLifetime = 3600
    await expectServes(desk, await desk.run(['token', desk.url], secret))
    // One that serves needs no secret.
    await expectServes(desk, await desk.run(['token', desk.url]))
  })

  it('reads the secret from a file, whose name is stored, or from stdin', async () => {
    const desk = await robotDesk()
    desk.fake.as.settings.tokenLifetime = 0
    const folder = await makeFolder({ secret: `${SECRET}\n` })
    const file = join(folder, 'secret')
    const { code } = await desk.run(['login', desk.url, ...programOf(desk), '--client-secret-file', file])
    expect(code).to.equal(0)
    desk.fake.as.settings.tokenLifetime = 3600
    await expectServes(desk, await desk.run(['token', desk.url]))
    for (const name of await filesOf(desk)) {
      expectNoSecret([await readFile(join(desk.home, 'tokens', name), 'utf8')], [SECRET])
    }
    const piped = desk.start(['login', desk.url, ...programOf(desk), '--client-secret-file', '-', '--profile', 'piped'])
    piped.child.stdin.end(SECRET)
    expect((await piped.ended).code).to.equal(0)
  })

  it('authenticates with a private key', async () => {
    const desk = await startDesk()
    const { privateKey, publicKey } = generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    })
    desk.fake.as.addClient({ client_id: 'robot', token_endpoint_auth_method: 'private_key_jwt', publicKey })
    const folder = await makeFolder({ 'key.pem': privateKey })
    const { code, stderr } = await desk.run([
      'login',
      desk.url,
      ...PROGRAM,
      '--private-key-file',
      join(folder, 'key.pem'),
    ])
    expect(code, stderr).to.equal(0)
    await expectServes(desk, await desk.run(['token', desk.url]))
  })

  it('rejects a secret in argv without echoing it, and prints the alternatives', async () => {
    const desk = await robotDesk()
    for (const args of [['--client-secret', SECRET], [`--client-secret=${SECRET}`]]) {
      const { code, stdout, stderr } = await desk.run(['login', desk.url, ...PROGRAM, ...args])
      expect([code, stdout]).to.deep.equal([2, ''])
      expect(stderr).to.match(
        /^mcp-host: error \w+: unknown option '--client-secret' of login: .* set MCP_HOST_CLIENT_SECRET, or use --client-secret-file <file>/,
      )
      expectNoSecret([stderr], [SECRET])
    }
  })

  it('reports missing values, and exits 2', async () => {
    const desk = await robotDesk()
    const cases = [
      [['--grant', 'client_credentials'], /^mcp-host.*client_credentials needs --client-id/],
      [PROGRAM, /^mcp-host: error \w+: the client robot needs its secret; set MCP_HOST_CLIENT_SECRET, or give/],
      [[...PROGRAM, '--client-secret-file', 'none'], /^mcp-host: error \w+: --client-secret-file.*ENOENT/],
      [['--client-issuer', 'https://as.example'], /^mcp-host: error \w+: --client-issuer needs --client-id/],
      [
        [...PROGRAM, '--client-issuer', 'as'],
        /^mcp-host: error \w+: --client-issuer is "as"; give the issuer's whole URL/,
      ],
      [['--client-secret-file', 'none'], /^mcp-host: error \w+: --client-secret-file needs --client-id/],
      [
        ['--grant', 'password'],
        /^mcp-host: error \w+: --grant is "password"; give one of authorization_code, device, client_credentials/,
      ],
      [
        ['--device', '--grant', 'client_credentials'],
        /^mcp-host: error \w+: --device and --grant client_credentials cannot be combined/,
      ],
      [['--redirect-port', '0'], /^mcp-host: error \w+: --redirect-port.*1 to 65535/],
      [['--callback-path', 'cb'], /^mcp-host: error \w+: --callback-path is "cb"/],
      [['--callback-path', '/a/../b'], /^mcp-host: error \w+: --callback-path is "\/a\/..\/b"; give a plain path/],
      [['--callback-path', '/a?b'], /^mcp-host: error \w+: --callback-path is "\/a\?b"; give a plain path/],
      [
        ['--callback-path', '//a.example'],
        /^mcp-host: error \w+: --callback-path is "\/\/a.example"; give a plain path/,
      ],
      [['--token-endpoint', 'http://as.example/token'], /^mcp-host: error \w+: --token-endpoint/],
      [['--token-endpoint', '/token'], /^mcp-host: error \w+: --token-endpoint/],
      [['--redirect-host', 'example.com'], /^mcp-host: error \w+: --redirect-host is "example.com"; give one of/],
      [['--client-metadata', 'http://a.example/c'], /^mcp-host: error \w+: --client-metadata is not https; /],
    ] as const
    const ends = await Promise.all(cases.map(([args]) => desk.run(['login', desk.url, ...args])))
    ends.forEach(({ code, stdout, stderr }, index) => {
      const message = stderr.split('\n').find(line => line.startsWith('mcp-host: error '))
      expect(message).to.match(cases[index]?.[1] ?? /never/)
      expect([code, stdout]).to.deep.equal([2, ''])
    })
  })

  it('sends the secret only to the named issuer, and reports a missing flag', async () => {
    const [desk, other] = await Promise.all([robotDesk(), startDesk()])
    const secret = { MCP_HOST_CLIENT_SECRET: SECRET }
    const unnamed = await desk.run(['login', desk.url, ...PROGRAM], secret)
    expect([unnamed.code, unnamed.stdout]).to.deep.equal([2, ''])
    expect(unnamed.stderr).to.match(/^mcp-host: error \w+: --client-secret-file [^;]*--client-issuer;/m)
    const moved = await desk.run(['login', desk.url, ...PROGRAM, '--client-issuer', other.fake.as.issuer], secret)
    expect(moved.code).to.equal(1)
    expect(moved.stderr).to.match(/authorization server is \S+, but the configured client is of \S+; .*--client-issuer/)
    for (const { fake } of [desk, other]) expect(fake.as.count('/token')).to.equal(0)
    // The issuer is remembered.
    expect((await desk.run(['login', desk.url, ...programOf(desk)], secret)).code).to.equal(0)
    expect((await desk.run(['login', desk.url], secret)).code).to.equal(0)
  })

  it('prompts for the secret at a terminal without echo', async () => {
    const desk = await robotDesk()
    const { child, logged: waitFor, ended } = desk.start(['login', desk.url, ...programOf(desk)], {}, true)
    await waitFor(/Secret of the client robot \(not shown\): /)
    child.stdin.write(`${SECRET}\r`)
    const { code, stdout, stderr } = await ended
    expect(code, stderr).to.equal(0)
    expect(stdout).to.match(/logged in at \S+ as client robot/)
    expectNoSecret([stdout, stderr], [SECRET])
  })

  it('prints no secret in any of these commands', () => {
    expect(expectNothingShown()).to.be.greaterThan(15)
  })
})
