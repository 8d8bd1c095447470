// Tests broken, overloaded and malicious servers: each ends in a typed error with a fix, few requests and no leaked
// secret.
import { expect } from 'chai'
import { withFlags } from '../../cli/client/flag-text.ts'
import { AuthError } from '../../client/index.ts'
import { OPTIONS } from '../../client/resolve-options.ts'
import { stopServers } from './support/fake-servers.ts'
import { documents, registration, responses, slow, tokens } from './support/faulty-server-cases.ts'
import { callServer, judge, localWorld, SECRETS, type World } from './support/faulty-server-setup.ts'
import { expectNoSecret, renderingsOf } from './support/leaks.ts'

/** The client waits 15 s for a whole document; here a second is ten milliseconds. */
async function withShortTimeouts(work: () => Promise<void>): Promise<void> {
  const original = AbortSignal.timeout
  AbortSignal.timeout = milliseconds => original.call(AbortSignal, milliseconds / 100)
  try {
    await work()
  } finally {
    AbortSignal.timeout = original
  }
}

/** Options whose names are no words of English. */
const NAMES = Object.keys(OPTIONS).filter(name => /[A-Z]/.test(name))

describe('Faulty authorization and resource servers', () => {
  let world: World
  beforeEach(async () => {
    world = await localWorld()
    world.as.addClient({ client_id: 'known', client_secret: SECRETS.clientSecret })
  })
  afterEach(stopServers)

  it('control: the same client succeeds with correct servers', async () => {
    const { status, account } = await callServer(world, { what: 'control' })
    expect(status).to.equal(200)
    expect(account.requests).to.equal(7)
  })

  for (const bad of [...documents, ...registration, ...responses, ...tokens]) {
    it(`${bad.what}: ${bad.code}, on the command line with flags in place of options`, async () => {
      const text = withFlags(await judge(world, bad))
      expect(text).to.not.match(new RegExp(`\\b(?:${NAMES.join('|')})\\b(?! of createAuthFetch)`))
    })
  }

  for (const bad of slow) {
    it(`${bad.what}: ${bad.code} after 15 s`, () => withShortTimeouts(async () => void (await judge(world, bad))))
  }
})

describe('Servers that refuse every token', () => {
  let world: World
  beforeEach(async () => {
    world = await localWorld()
  })
  afterEach(stopServers)

  const CALLS = 20

  it('permanent 401: the storm breaker stops after 3 tokens (a login, two refreshes)', async () => {
    world.rs.settings.mood = 'always-401'
    const { thrown, account } = await callServer(world, { what: `401 for ever, ${CALLS} calls` }, CALLS)
    expect(thrown).to.include({ code: 'auth_storm' })
    expect((thrown as Error).message).to.include('mcp-host doctor')
    expect([world.as.tokens.issued.length, world.logins.length, world.as.count('/register')]).to.deep.equal([3, 1, 1])
    expect(account.requests).to.be.at.most(25)
    const before = world.rs.count()
    expect(before, 'nothing is sent while the breaker is open').to.be.below(CALLS)
  })

  it('permanent 403: only the first call tries a step-up, later calls return the 403', async () => {
    world.rs.settings.mood = 'always-403'
    const { status, account } = await callServer(world, { what: `403 for ever, ${CALLS} calls` }, CALLS)
    expect(status).to.equal(403)
    expect(world.logins.length).to.be.at.most(2)
    expect(account.requests).to.be.at.most(CALLS + 10)
  })

  it('403 with new scopes each time: at most 2 step-ups per call, then the storm breaker', async () => {
    let asked = 0
    Object.defineProperty(world.rs.settings, 'challenges', {
      get: () => [`Bearer error="insufficient_scope", scope="scope-${asked++}"`],
    })
    world.rs.settings.mood = 'always-403'
    const { thrown, account } = await callServer(world, { what: `403 with new scopes, ${CALLS} calls` }, CALLS)
    expect(thrown).to.include({ code: 'auth_storm' })
    expect(world.logins.length).to.equal(3)
    expect(account.requests).to.be.at.most(25)
  })

  it('unknown schemes: fails with the list of schemes and without login', async () => {
    world.rs.settings.challenges = ['Basic realm="x"', 'Negotiate']
    const bad = { what: 'Basic and Negotiate alone', code: 'unsupported_challenge', within: 1, make: () => {} }
    await judge(world, bad)
    expect(world.logins).to.deep.equal([])
  })

  it('a challenge that echoes the token does not leak it', async () => {
    Object.defineProperty(world.rs.settings, 'challenges', {
      get: () => {
        const shown = world.rs.to('/mcp').at(-1)?.headers.authorization ?? 'none'
        return [`Bearer error="${shown}", error_description="${shown}", scope="${shown.split(' ')[1] ?? 'read'}"`]
      },
    })
    world.rs.settings.mood = 'always-401'
    const { thrown, account } = await callServer(world, { what: `401 with the token in it, ${CALLS} calls` }, CALLS)
    expect(thrown).to.include({ code: 'auth_storm' })
    expect(account.looked).to.be.above(100)
  })

  it('refuses a redirect to another origin, and sends nothing there', async () => {
    const elsewhere = world.servers[1]
    world.rs.failNext('/mcp', { status: 307, headers: { Location: `${elsewhere?.url}/mcp` } })
    const { thrown } = await callServer(world, { what: 'a redirect elsewhere' }, 1)
    expect([AuthError.is(thrown) && thrown.code, elsewhere?.count()]).to.deep.equal(['redirected', 0])
  })
})

describe('Secret search of these tests', () => {
  it('finds a secret in a message, a cause, a hidden property and base64', () => {
    const secret = 'a secret of the test'
    const hidden = Object.defineProperty({}, 'kept', { value: { deep: [secret] } })
    const leaks = [
      new Error(secret),
      new Error('no', { cause: new Error(`x ${secret}`) }),
      Object.assign(new Error('no'), { about: hidden }),
      { header: `Basic ${Buffer.from(secret).toString('base64')}` },
      [`https://as.example/?code=${encodeURIComponent(secret)}`],
    ]
    for (const leak of leaks) {
      expect(() => expectNoSecret(renderingsOf(leak), [secret]), String(leak)).to.throw('is shown')
    }
    expect(expectNoSecret(renderingsOf(new Error('fine')), [secret])).to.be.above(0)
  })
})
