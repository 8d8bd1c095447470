// Tests `mcp-host login`, `status`, `token` and `logout` with fake servers.
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { startProxy } from '../client/node/support/proxy.ts'
import { authorize } from '../client/support/fake-servers.ts'
import { expectNoSecret } from '../client/support/leaks.ts'
import { makeFolder } from '../config/folder.ts'
import { concurrentIt } from '../support/concurrent-it.ts'
import { expectNothingShown, expectServes, filesOf, startDesk, stopDesks } from './login-setup.ts'

after(stopDesks)

describe('mcp-host login', () => {
  /** Each at a desk of its own: while one waits for a process, another works. */
  const it = concurrentIt({ atOnce: 4 })

  it('opens the browser, prints each step, and stores what token, status and logout need', async () => {
    const desk = await startDesk()
    desk.fake.rs.settings.challengeScope = 'read write'
    const { code, stdout, stderr } = await desk.run(['login', desk.url])
    const clientId = desk.fake.as.tokens.issued[0]?.clientId
    expect([code, desk.browser.opened.length]).to.deep.equal([0, 1])
    expect(stdout).to.match(new RegExp(`${desk.fake.as.issuer} .*${clientId}.*read write.*20[-0-9]+ [0-9:]+`))
    for (const step of [
      `server                ${desk.url} requires a login`,
      `authorization server  ${desk.fake.as.issuer}`,
      `registered as         ${clientId}`,
      `login                 at ${desk.fake.as.issuer}, scopes read write`,
    ]) {
      expect(stderr.split('\n')).to.include(step)
    }

    await expectServes(desk, await desk.run(['token', desk.url]))
    const [all, one, json] = await Promise.all([
      desk.run(['status']),
      desk.run(['status', `${desk.url}?other`]),
      desk.run(['status', desk.url, '--json']),
    ])
    expect(all.stdout).to.match(/^server +profile +issuer +scopes /)
    expect(all.stdout).to.match(new RegExp(`^${desk.url} +- +${desk.fake.as.issuer} +read write +20.* yes$`, 'm'))
    expect(one.code).to.equal(1)
    expect(one.stdout).to.include(`${desk.url}?other`)
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
    expect(out).to.include({ code: 0, stderr: '' })
    expect(out.stdout).to.include(desk.url)
    expect(desk.fake.as.tokens.issued.filter(({ active }) => active)).to.deep.equal([])
    const [gone, again] = await Promise.all([desk.run(['token', desk.url]), desk.run(['status', desk.url])])
    expect([gone.code, gone.stdout]).to.deep.equal([1, ''])
    expect(gone.stderr).to.include(desk.url)
    expect(again.code).to.equal(1)
  })

  it('prints the URL even if a browser opens', async () => {
    const desk = await startDesk()
    const { stderr } = await desk.run(['login', desk.url])
    expect(stderr.split('\n')).to.include(`  ${desk.browser.opened[0]?.href}`)
  })

  it('reports that a token bound to a key is no bearer token, and prints only the token', async () => {
    const desk = await startDesk()
    desk.fake.as.settings.dpop = 'allowed'
    desk.fake.rs.settings.dpop = true
    expect((await desk.run(['login', desk.url])).code).to.equal(0)
    const { code, stdout, stderr } = await desk.run(['token', desk.url])
    expect(code).to.equal(0)
    expect(stderr).to.match(/DPoP.*`mcp-host call`/)
    expect(stdout).to.match(/^\S+\n$/)
    const response = await fetch(desk.url, { method: 'POST', headers: { authorization: `Bearer ${stdout.trim()}` } })
    expect(response.status).to.equal(401)
  })

  it('writes private files without readable tokens', async () => {
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

  it('logs in again with the same registration and the same redirect port', async () => {
    const desk = await startDesk()
    await desk.run(['login', desk.url])
    const again = await desk.run(['login', desk.url])
    expect(again.code, again.stderr).to.equal(0)
    expect(desk.fake.as.count('/register')).to.equal(1)
    const [first, second] = desk.browser.opened.map(url => url.searchParams.get('redirect_uri'))
    expect(second).to.equal(first)
  })

  it('refreshes an expired token before it prints it, and reports a failed refresh', async () => {
    const desk = await startDesk()
    desk.fake.as.settings.tokenLifetime = 0
    await desk.run(['login', desk.url])
    desk.fake.as.tokens.expireAll()
    desk.fake.as.settings.tokenLifetime = 3600
    await expectServes(desk, await desk.run(['token', desk.url]))
    const grants = desk.fake.as.to('/token').map(({ form }) => form.get('grant_type'))
    // The look at the server after the login needed a token that lives, too.
    expect([grants[0], grants.at(-1)]).to.deep.equal(['authorization_code', 'refresh_token'])
    // The same token serves again.
    await expectServes(desk, await desk.run(['token', desk.url]))
    expect(desk.fake.as.count('/token')).to.equal(grants.length)

    const other = await startDesk()
    other.fake.as.settings.tokenLifetime = 0
    other.fake.as.settings.refreshTokens = 'none'
    await other.run(['login', other.url])
    const { code, stdout, stderr } = await other.run(['token', other.url])
    expect([code, stdout]).to.deep.equal([1, ''])
    expect(stderr).to.equal(
      `mcp-host: error MH3201: the login has ended at ${other.url}; log in with: mcp-host login ${other.url}\n`,
    )
  })

  it('separates profiles, and finds a login by another spelling of its URL', async () => {
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
    it(`reads the callback URL that is pasted ${how}`, async () => {
      const desk = await startDesk()
      const { child, logged: waitFor, ended } = desk.start(['login', desk.url, ...args], env)
      const [, address = ''] = await waitFor(/^ {2}(http:\S+\/authorize\?\S+)$/m)
      await waitFor(/Paste the URL here: /)
      child.stdin.write('https://example.com/somewhere\n')
      await waitFor(/This is not a callback URL[\s\S]*Paste the URL here: /)
      child.stdin.end(`${await authorize(address)}\n`)
      const { code, stdout, stderr } = await ended
      expect(code, stderr).to.equal(0)
      expect(stdout).to.match(/^logged in at /)
      expect(desk.browser.opened).to.deep.equal([])
    })
  }

  it('uses --callback-path, which is registered and stored; another path needs another registration', async () => {
    const desk = await startDesk()
    const paths = () => desk.browser.opened.map(url => new URL(url.searchParams.get('redirect_uri') ?? '').pathname)
    expect((await desk.run(['login', desk.url, '--callback-path', '/oauth/back'])).code).to.equal(0)
    expect((await desk.run(['login', desk.url])).code).to.equal(0)
    expect([paths(), desk.fake.as.count('/register')]).to.deep.equal([['/oauth/back', '/oauth/back'], 1])
    expect((await desk.run(['login', desk.url, '--callback-path', '/callback'])).code).to.equal(0)
    expect([paths()[2], desk.fake.as.count('/register')]).to.deep.equal(['/callback', 2])
  })

  it('uses --token-endpoint, which is stored until it is reset', async () => {
    const desk = await startDesk()
    desk.fake.as.settings.tokenLifetime = 0
    const endpoint = `${desk.fake.as.issuer}/token?by=me`
    const kept = async () => {
      const name = (await filesOf(desk)).find(one => one.endsWith('.login.json')) ?? ''
      return JSON.parse(await readFile(join(desk.home, 'tokens', name), 'utf8')).ways
    }
    expect((await desk.run(['login', desk.url, '--token-endpoint', endpoint])).code).to.equal(0)
    await expectServes(desk, await desk.run(['token', desk.url]))
    const asked = desk.fake.as.to('/token').map(({ query, form }) => [query.get('by'), form.get('grant_type')])
    expect(asked.slice(0, 2)).to.deep.equal([
      ['me', 'authorization_code'],
      ['me', 'refresh_token'],
    ])
    expect(asked.filter(([by]) => by !== 'me')).to.deep.equal([])
    expect(await kept()).to.deep.equal({ tokenEndpoint: endpoint })
    expect((await desk.run(['login', desk.url, '--token-endpoint', 'auto'])).code).to.equal(0)
    expect(await kept()).to.equal(undefined)
  })

  it('also accepts the callback of a browser on this machine', async () => {
    const desk = await startDesk()
    const { logged: waitFor, ended } = desk.start(['login', desk.url, '--no-browser'])
    const [, address = ''] = await waitFor(/^ {2}(http:\S+\/authorize\?\S+)$/m)
    await (await fetch(await authorize(address))).body?.cancel()
    expect((await ended).code).to.equal(0)
  })

  it('rejects a pasted callback of another login', async () => {
    const desk = await startDesk()
    const { child, logged: waitFor, ended } = desk.start(['login', desk.url, '--no-browser'])
    const [, address = ''] = await waitFor(/^ {2}(http:\S+\/authorize\?\S+)$/m)
    const answer = await authorize(address)
    answer.searchParams.set('state', 'somebody-elses')
    child.stdin.end(`${answer}\n`)
    const { code, stdout, stderr } = await ended
    expect([code, stdout]).to.deep.equal([1, ''])
    expect(stderr).to.match(/^mcp-host: error \w+: .*state/m)
  })

  it('prints the code of a device login, and waits', async () => {
    const desk = await startDesk()
    desk.fake.as.settings.device = true
    const { logged: waitFor, ended } = desk.start(['login', desk.url, '--device'])
    const [, userCode = ''] = await waitFor(/^Open http:\S+ on any device and enter the code (\S+)$/m)
    desk.fake.as.decideDevice(userCode, 'approved')
    const { code, stdout } = await ended
    expect(code).to.equal(0)
    expect(stdout).to.match(/^logged in at /)
    expect(desk.browser.opened).to.deep.equal([])
    await expectServes(desk, await desk.run(['token', desk.url]))
  })

  it('prints times and registrations of a server without escapes, also next to an invalid time', async () => {
    const [odd, desk] = await Promise.all([startDesk(), startDesk()])
    odd.fake.as.settings.tokenAnswer = { expires_in: 1e20, scope: 'read "all" \\' }
    const login = await odd.run(['login', odd.url])
    expect([login.code, login.stdout.split('\n').length], login.stderr).to.deep.equal([0, 2])
    expect((await desk.run(['login', desk.url], { MCP_HOST_HOME: odd.home })).code).to.equal(0)
    const status = await odd.run(['status', '--json'])
    expect(status.code, status.stderr).to.equal(0)
    expect(JSON.parse(status.stdout)).to.have.length(2)
    for (const hostile of [{ scope: 'a\u001b[2J' }, { access_token: 'a\r\nb' }]) {
      const bad = await startDesk()
      bad.fake.as.settings.tokenAnswer = hostile
      const refused = await bad.run(['login', bad.url])
      expect([refused.code, refused.stdout]).to.deep.equal([1, ''])
      expect(refused.stderr).to.match(/has characters in \w+ that are not visible ASCII/)
      expect((await bad.run(['token', bad.url])).stdout).to.equal('')
    }
    const named = await startDesk()
    named.fake.as.settings.registration = { status: 201, body: { client_id: 'c\u001b[2J\nforged' } }
    expect((await named.run(['login', named.url])).stderr).to.match(/client id or secret with characters/)
  })

  it('logs in again with a configured client, and logs out the previous one', async () => {
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

  it('reports that an open server needs no login', async () => {
    const open = createServer(({ url: path }, response) => {
      const status = path === '/mcp' ? 400 : 404
      const error = { jsonrpc: '2.0', id: null, error: { code: -32_000, message: 'no' } }
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(error))
    })
    await once(open.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(open.address() as AddressInfo).port}/mcp`
    const desk = await startDesk()
    const { code, stdout } = await desk.run(['login', url])
    open.close()
    expect([code, stdout]).to.deep.equal([0, `${url} does not require a login\n`])
  })

  it('reports a URL without an MCP server before the browser opens, or undoes the login', async () => {
    const [open, guarded] = await Promise.all([startDesk(), startDesk()])
    // One looks at the path first, one at the token.
    const wrong = `${open.fake.rs.url}/wrong`
    open.fake.rs.failNext('/wrong', { status: 404, body: 'not found' }, 50)
    const unasked = await open.run(['login', wrong])
    expect([unasked.code, unasked.stdout, open.browser.opened.length]).to.deep.equal([1, '', 0])
    expect(unasked.stderr).to.match(
      new RegExp(`mcp-host: error MH3207: nothing is served at ${wrong} \\(404\\); check the path\\n$`),
    )

    const { rs, as } = guarded.fake
    rs.settings.metadata = { resource: rs.url }
    const page = { status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>Hello</h1>' }
    // The two questions of somebody without a token are refused as everywhere.
    let asked = 0
    Object.defineProperty(rs.settings, 'challenges', {
      get: () => {
        if (++asked === 2) rs.failNext('/mcp', page, 50)
        return [`Bearer resource_metadata="${rs.url}/.well-known/oauth-protected-resource/mcp"`]
      },
    })
    const undone = await guarded.run(['login', guarded.url])
    expect([undone.code, undone.stdout]).to.deep.equal([1, ''])
    expect(undone.stderr).to.match(/HTTP 200.*MCP/)
    expect(as.tokens.issued.filter(({ active }) => active)).to.deep.equal([])
    expect((await guarded.run(['status'])).stdout).to.not.include('yes')
  })

  it('sends the values of its flags to the authorization server, and stores them', async () => {
    const desk = await startDesk()
    const flags = ['--no-resource', '--authorize-param', 'audience=them', '--authorize-param', 'prompt=login']
    const slash = `${desk.fake.as.issuer}/`
    desk.fake.as.settings.metadata = { issuer: slash }
    desk.fake.as.settings.iss = slash
    desk.fake.rs.settings.checkAudience = false
    const refused = await desk.run(['login', desk.url, ...flags])
    expect(refused.code).to.equal(1)
    const [, command = ''] = /log in with (--issuer-match \S+)/.exec(refused.stderr) ?? []
    expect(command).to.equal('--issuer-match ignore-trailing-slash')
    const login = await desk.run(['login', desk.url, ...flags, ...command.split(' ')])
    expect(login.code, login.stderr).to.equal(0)
    expect(login.stderr).to.include('(--issuer-match)')
    const again = await desk.run(['login', desk.url, '--resource', 'https://other.example/mcp'])
    expect(again.code, again.stderr).to.equal(0)
    const sent = desk.browser.opened.map(({ searchParams: query }) => [
      query.get('audience'),
      query.get('prompt'),
      query.get('resource'),
    ])
    expect(sent).to.deep.equal([
      ['them', 'login', null],
      ['them', 'login', 'https://other.example/mcp'],
    ])
  })

  it('adds a scope with --add-scope, and keeps the scope that refreshes the login', async () => {
    const desk = await startDesk()
    desk.fake.rs.settings.scopesSupported = ['read', 'write']
    desk.fake.as.settings.scopesSupported = ['read', 'write', 'admin', 'offline_access']
    await desk.run(['login', desk.url])
    await desk.run(['login', desk.url, '--add-scope', 'admin'])
    await desk.run(['logout', desk.url])
    await desk.run(['login', desk.url])
    const asked = desk.browser.opened.map(({ searchParams }) => searchParams.get('scope')?.split(' ').sort().join(' '))
    expect(asked).to.deep.equal([
      'offline_access read write',
      'admin offline_access read write',
      'admin offline_access read write',
    ])
  })

  it('names a scope that was not granted, and exits 1 if it was requested now', async () => {
    const desk = await startDesk()
    desk.fake.as.settings.grantScope = () => 'read'
    const all = [
      await desk.run(['login', desk.url, '--scope', 'read offline_access']),
      await desk.run(['login', desk.url, '--add-scope', 'trips.write']),
      await desk.run(['login', desk.url]),
    ]
    expect(all.map(({ code }) => code)).to.deep.equal([0, 1, 0])
    const said = all.map(({ stderr }) => /did not grant (.*?):/.exec(stderr)?.[1])
    expect(said).to.deep.equal([undefined, 'trips.write', 'trips.write'])
    for (const { stdout } of all) expect(stdout).to.contain(', scopes read, ')
  })

  it('sends headers to the server only, and uses a proxy', async () => {
    const [desk, proxy] = await Promise.all([startDesk(), startProxy()])
    const folder = await makeFolder({ headers: 'X-Gate: from-a-file-1\n' })
    const reach = ['--header', 'X-Tenant: acme', '--header', `@${join(folder, 'headers')}`, '--proxy', proxy.url]
    const { code, stderr } = await desk.run(['login', desk.url, ...reach])
    expect(code, stderr).to.equal(0)
    const { rs, as } = desk.fake
    expect(rs.to('/mcp').every(({ headers }) => headers['x-tenant'] === 'acme')).to.equal(true)
    expect(as.requests.some(({ headers }) => 'x-tenant' in headers || 'x-gate' in headers)).to.equal(false)
    const hosts = [rs.url, as.url].map(url => new URL(url).host).sort()
    expect([...new Set(proxy.asked)].sort()).to.deep.equal(hosts)
    // The file and the proxy are remembered, the header of argv is not.
    const [before, tunnels] = [rs.requests.length, proxy.asked.length]
    await desk.run(['list', desk.url])
    const later = rs.requests.slice(before).map(({ headers }) => [headers['x-gate'], headers['x-tenant']])
    expect(later.length).to.be.greaterThan(0)
    for (const pair of later) expect(pair).to.deep.equal(['from-a-file-1', undefined])
    expect(proxy.asked.length).to.be.greaterThan(tunnels)
    // With an Authorization of one's own nobody needs a login.
    const own = await desk.run(['list', desk.url, '--header', 'Authorization: Bearer my-own-key-1'])
    expect(own.code).to.equal(1)
    expect(rs.requests.at(-1)?.headers.authorization).to.equal('Bearer my-own-key-1')
    expect(own.stderr).to.not.include('my-own-key-1')
    await proxy.close()
    const wrong = await Promise.all(
      [
        ['--proxy', 'http://me:secret@127.0.0.1:1'],
        ['--proxy', 'proxy.example:3128'],
        ['--header', 'nonsense'],
        ['--header', 'Authorization: Bearer x'],
        ['--issuer-match', 'loosely'],
        ['--resource', 'mcp'],
        ['--resource', 'https://a.example', '--no-resource'],
        ['--authorize-param', 'audience'],
        ['--authorize-param', 'state=1'],
        ['--add-scope', 'a"b'],
        ['--login-timeout', 'long'],
      ].map(async args => [args, await desk.run(['login', desk.url, ...args])] as const),
    )
    for (const [args, { code: exit, stdout, stderr: said }] of wrong) {
      expect([exit, stdout], args.join(' ')).to.deep.equal([2, ''])
      expect(said, args.join(' ')).to.include(args[0]).and.not.include('me:secret')
    }
  })

  it('prints what is wrong and what to do, without a stack', async () => {
    const [denied, off, gone] = await Promise.all([startDesk(), startDesk(), startDesk()])
    denied.fake.as.settings.authorizationError = 'access_denied'
    off.fake.as.settings.registration = 'off'
    await gone.fake.rs.close()
    const ends = await Promise.all([denied, off, gone].map(desk => desk.run(['login', desk.url])))
    const last = ends.map(({ stderr }) => stderr.trimEnd().split('\n').at(-1))
    expect(last[0]).to.match(/^mcp-host.*access_denied/)
    expect(last[1]).to.match(/^mcp-host: error \w+: .*registration/)
    expect(last[2]).to.match(/^mcp-host: error \w+: http:\S+ .*ECONNREFUSED/)
    for (const { code, stdout, stderr } of ends) {
      expect([code, stdout]).to.deep.equal([1, ''])
      expect(stderr).not.to.match(/^\s+at /m)
    }
    const verbose = await off.run(['login', off.url, '--verbose'])
    expect(verbose.stderr).to.match(/^\s+at /m)
  })
})

describe('all of these commands', () => {
  it('print no secret', () => {
    expect(expectNothingShown()).to.be.greaterThan(30)
  })
})
