// `mcp-host login`, `status`, `token` and `logout` as processes, against servers of which the test decides everything.
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { authorize } from '../client/support/fake-servers.ts'
import { expectNoSecret } from '../client/support/leaks.ts'
import { expectNothingShown, expectServes, filesOf, startDesk, stopDesks } from './login-desk.ts'

describe('mcp-host login', function () {
  this.timeout(60_000)

  after(stopDesks)

  it('opens the browser, tells each step, and keeps what token, status and logout need', async () => {
    const desk = await startDesk()
    desk.fake.rs.settings.challengeScope = 'read write'
    const { code, stdout, stderr } = await desk.run(['login', desk.url])
    const clientId = desk.fake.as.tokens.issued[0]?.clientId
    expect([code, desk.browser.opened.length]).to.deep.equal([0, 1])
    expect(stdout).to.match(
      new RegExp(
        `^logged in at ${desk.fake.as.issuer} as client ${clientId}, scopes read write, until 20[-0-9]+ [0-9:]+, then renewed by itself\n$`,
      ),
    )
    for (const step of [
      `server                ${desk.url} asks for a login`,
      `authorization server  ${desk.fake.as.issuer}`,
      `registered as         ${clientId}`,
      `asking you            to log in at ${desk.fake.as.issuer}, scopes read write`,
    ]) {
      expect(stderr.split('\n')).to.include(step)
    }

    await expectServes(desk, await desk.run(['token', desk.url]))
    const [all, one, json] = await Promise.all([
      desk.run(['status']),
      desk.run(['status', `${desk.url}?other`]),
      desk.run(['status', desk.url, '--json']),
    ])
    expect(all.stdout).to.match(/^server +profile +issuer +scopes +until +renews itself\n/)
    expect(all.stdout).to.match(new RegExp(`^${desk.url} +- +${desk.fake.as.issuer} +read write +20.* yes$`, 'm'))
    expect([one.code, one.stdout]).to.deep.equal([1, `nobody is logged in at ${desk.url}?other\n`])
    const [status, ...others] = JSON.parse(json.stdout)
    expect(others).to.deep.equal([])
    expect(status).to.deep.include({
      server: desk.url,
      profile: null,
      loggedIn: true,
      issuer: desk.fake.as.issuer,
      clientId,
      scopes: ['read', 'write'],
      expired: false,
      refreshable: true,
      tokenType: 'Bearer',
    })
    expect(Date.parse(status.expiresAt)).to.be.greaterThan(0)

    const out = await desk.run(['logout', desk.url])
    expect(out).to.deep.equal({ code: 0, stdout: `logged out of ${desk.url}: the tokens are revoked\n`, stderr: '' })
    expect(desk.fake.as.tokens.issued.filter(({ active }) => active)).to.deep.equal([])
    const [gone, again] = await Promise.all([desk.run(['token', desk.url]), desk.run(['status', desk.url])])
    expect([gone.code, gone.stdout]).to.deep.equal([1, ''])
    expect(gone.stderr).to.equal(
      `mcp-host: nobody is logged in at ${desk.url}; log in with: mcp-host login ${desk.url}\n`,
    )
    expect(again.code).to.equal(1)
  })

  it('keeps files that are private, and nothing readable of a token in them', async () => {
    const desk = await startDesk()
    await desk.run(['login', desk.url, '--scope', 'read', '--scope', 'write'])
    const names = await filesOf(desk)
    expect(names.map(name => name.replace(/^[\w-]{43}/, 'HASH')).sort()).to.deep.equal([
      'HASH.login.json',
      'HASH.tokens',
      'token.key',
    ])
    const secrets = [...desk.fake.as.secrets]
    expect(secrets.length).to.be.greaterThan(2)
    for (const name of names) {
      const path = join(desk.home, 'tokens', name)
      expect((await stat(path)).mode & 0o777).to.equal(0o600)
      expectNoSecret([await readFile(path, 'utf8')], secrets)
    }
    const kept = names.find(name => name.endsWith('.login.json')) ?? ''
    expect(JSON.parse(await readFile(join(desk.home, 'tokens', kept), 'utf8'))).to.deep.equal({
      v: 1,
      url: desk.url,
      grant: 'authorization_code',
      scopes: ['read', 'write'],
    })
  })

  it('logs in again with the same registration, and the same redirect port', async () => {
    const desk = await startDesk()
    await desk.run(['login', desk.url])
    const again = await desk.run(['login', desk.url])
    expect(again.code, again.stderr).to.equal(0)
    expect(desk.fake.as.count('/register')).to.equal(1)
    const [first, second] = desk.browser.opened.map(url => url.searchParams.get('redirect_uri'))
    expect(second).to.equal(first)
  })

  it('renews an expired token before it prints it, and says so when it cannot', async () => {
    const desk = await startDesk()
    desk.fake.as.settings.tokenLifetime = 0
    await desk.run(['login', desk.url])
    desk.fake.as.tokens.expireAll()
    desk.fake.as.settings.tokenLifetime = 3600
    await expectServes(desk, await desk.run(['token', desk.url]))
    expect(desk.fake.as.to('/token').map(({ form }) => form.get('grant_type'))).to.deep.equal([
      'authorization_code',
      'refresh_token',
    ])
    // The same token serves again.
    await expectServes(desk, await desk.run(['token', desk.url]))
    expect(desk.fake.as.count('/token')).to.equal(2)

    const other = await startDesk()
    other.fake.as.settings.tokenLifetime = 0
    other.fake.as.settings.refreshTokens = 'none'
    await other.run(['login', other.url])
    const { code, stdout, stderr } = await other.run(['token', other.url])
    expect([code, stdout]).to.deep.equal([1, ''])
    expect(stderr).to.equal(`mcp-host: the login has ended at ${other.url}; log in with: mcp-host login ${other.url}\n`)
  })

  it('keeps profiles apart, and finds a login under another spelling of its URL', async () => {
    const desk = await startDesk()
    await Promise.all([desk.run(['login', desk.url, '--profile', 'work']), desk.run(['login', desk.url])])
    const [work, none, json] = await Promise.all([
      desk.run(['token', desk.url.replace('http:', 'HTTP:'), '--profile', 'work']),
      desk.run(['token', desk.url, '--profile', 'home']),
      desk.run(['status', '--json']),
    ])
    await expectServes(desk, work)
    expect(none.stderr).to.contain(`log in with: mcp-host login ${desk.url} --profile home`)
    const profiles = (JSON.parse(json.stdout) as { profile: string | null }[]).map(({ profile }) => profile)
    expect(profiles).to.have.members([null, 'work'])

    const out = await desk.run(['logout', '--all', '--forget-client'])
    expect(out.stdout.match(/the tokens are revoked; the client is forgotten/g)).to.have.length(2)
    expect(await filesOf(desk)).to.deep.equal(['token.key'])
  })

  for (const [how, args, env] of [
    ['with --no-browser', ['--no-browser'], {}],
    ['where no browser can be opened', [], { BROWSER: '/no/such/program' }],
  ] as const) {
    it(`reads the callback address that is pasted ${how}`, async () => {
      const desk = await startDesk()
      const { child, printed: waitFor, ended } = desk.start(['login', desk.url, ...args], env)
      const [, address = ''] = await waitFor(/^ {2}(http:\S+\/authorize\?\S+)$/m, 'stderr')
      await waitFor(/Paste that address here: /, 'stderr')
      child.stdin.write('https://example.com/somewhere\n')
      await waitFor(/This is no callback address[\s\S]*Paste that address here: /, 'stderr')
      child.stdin.end(`${await authorize(address)}\n`)
      const { code, stdout, stderr } = await ended
      expect(code, stderr).to.equal(0)
      expect(stdout).to.match(/^logged in at /)
      expect(desk.browser.opened).to.deep.equal([])
    })
  }

  it('also takes the answer of a browser that the person opened on this machine', async () => {
    const desk = await startDesk()
    const { printed: waitFor, ended } = desk.start(['login', desk.url, '--no-browser'])
    const [, address = ''] = await waitFor(/^ {2}(http:\S+\/authorize\?\S+)$/m, 'stderr')
    await (await fetch(await authorize(address))).body?.cancel()
    expect((await ended).code).to.equal(0)
  })

  it('refuses a pasted answer of another login', async () => {
    const desk = await startDesk()
    const { child, printed: waitFor, ended } = desk.start(['login', desk.url, '--no-browser'])
    const [, address = ''] = await waitFor(/^ {2}(http:\S+\/authorize\?\S+)$/m, 'stderr')
    const answer = await authorize(address)
    answer.searchParams.set('state', 'somebody-elses')
    child.stdin.end(`${answer}\n`)
    const { code, stdout, stderr } = await ended
    expect([code, stdout]).to.deep.equal([1, ''])
    expect(stderr).to.match(/^mcp-host: the authorization response has another login's state; /m)
  })

  it('shows the code of a device login, and waits', async () => {
    const desk = await startDesk()
    desk.fake.as.settings.device = true
    const { printed: waitFor, ended } = desk.start(['login', desk.url, '--device'])
    const [, userCode = ''] = await waitFor(/^Open http:\S+ on any device and enter the code (\S+)$/m, 'stderr')
    desk.fake.as.decideDevice(userCode, 'approved')
    const { code, stdout } = await ended
    expect(code).to.equal(0)
    expect(stdout).to.match(/^logged in at /)
    expect(desk.browser.opened).to.deep.equal([])
    await expectServes(desk, await desk.run(['token', desk.url]))
  })

  it('asks again with a configured client, and logs the one before out', async () => {
    const desk = await startDesk()
    desk.fake.as.addClient({ client_id: 'known' })
    await desk.run(['login', desk.url])
    const configured = await desk.run(['login', desk.url, '--client-id', 'known', '--redirect-host', 'localhost'])
    expect(configured.stdout).to.contain(' as client known, ')
    expect(desk.browser.opened[1]?.searchParams.get('redirect_uri')).to.match(/^http:\/\/localhost:\d+\/callback$/)
    const [first, second] = desk.fake.as.tokens.issued
    expect([first?.active, second?.active]).to.deep.equal([false, true])
    // Remembered: nobody has to say it again.
    const remembered = await desk.run(['login', desk.url])
    expect(remembered.stdout).to.contain(' as client known, ')
    expect((await filesOf(desk)).filter(name => name.endsWith('.tokens'))).to.have.length(1)
  })

  it('says that there is nothing to log in to at an open server', async () => {
    const open = createServer((_, response) => void response.writeHead(404).end())
    await once(open.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(open.address() as AddressInfo).port}/mcp`
    const desk = await startDesk()
    const { code, stdout } = await desk.run(['login', url])
    open.close()
    expect([code, stdout]).to.deep.equal([0, `${url} lets anyone in: there is nothing to log in to\n`])
  })

  it('tells what is wrong and what to do, without a stack', async () => {
    const [denied, off, gone] = await Promise.all([startDesk(), startDesk(), startDesk()])
    denied.fake.as.settings.authorizationError = 'access_denied'
    off.fake.as.settings.registration = 'off'
    await gone.fake.rs.close()
    const ends = await Promise.all([denied, off, gone].map(desk => desk.run(['login', desk.url])))
    const last = ends.map(({ stderr }) => stderr.trimEnd().split('\n').at(-1))
    expect(last[0]).to.match(
      /^mcp-host: the authorization server answered access_denied: the login was refused; log in again/,
    )
    expect(last[1]).to.match(/^mcp-host: no client for \S+: it offers no dynamic registration; /)
    expect(last[2]).to.match(/^mcp-host: http:\S+ cannot be reached \(ECONNREFUSED\); check the address/)
    for (const { code, stdout, stderr } of ends) {
      expect([code, stdout]).to.deep.equal([1, ''])
      expect(stderr).not.to.match(/^\s+at /m)
    }
    const verbose = await off.run(['login', off.url, '--verbose'])
    expect(verbose.stderr).to.match(/^\s+at /m)
  })

  it('ends on Ctrl-C, and leaves nothing that hinders the next login', async () => {
    const desk = await startDesk()
    const { child, printed: waitFor, ended } = desk.start(['login', desk.url, '--no-browser'])
    await waitFor(/Paste that address here: /, 'stderr')
    child.kill('SIGINT')
    const { code, stderr } = await ended
    expect(code).to.equal(130)
    expect(stderr).to.match(/mcp-host: cancelled\n$/)
    expect((await desk.run(['login', desk.url])).code).to.equal(0)
  })

  it('showed nobody a secret, in any of these processes', () => {
    expect(expectNothingShown()).to.be.greaterThan(30)
  })
})
