// Tests authorization of callers that do not arrive by HTTP: route rules apply without the admission step.
import { expect } from 'chai'
import { HostError, type User } from '../../core/index.ts'
import type { Services } from '../../core/internal.ts'
import { MODERN_REVISION, type RequestInfo } from '../../core/transport.ts'
import { plugin, withPlugins } from '../fixtures/plugins.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const ADA: User = { subject: 'ada', scopes: ['use'], roles: [], claims: {} }
const BOB: User = { ...ADA, subject: 'bob', scopes: [] }

/** Who came, and what each of them was told. */
const KINDS = [
  [undefined, 'unauthorized'],
  [BOB, 'forbidden'],
  [ADA, undefined],
] as const

describe('authorization of non-HTTP transports', () => {
  let services: Services
  let facts: (user: User | undefined) => RequestInfo
  let log: Awaited<ReturnType<typeof startHost>>['log']

  before(async () => {
    const wire = plugin(host => {
      host.revisions(() => [MODERN_REVISION])
      host.onReady(() => {
        const built = host.services
        services = built
      })
      facts = user => ({
        route: host.routes[0] as RequestInfo['route'],
        params: {},
        user,
        headers: {},
        ip: 'memory',
        signal: () => new AbortController().signal,
      })
    })
    const decider = plugin(() => undefined, { provides: ['authorize', 'user'] })
    const routes = { '/': { toolsets: 'all', authorize: { scope: 'use' } } }
    const started = await startHost(withPlugins({ wire, decider }, { routes }))
    log = started.log
  })
  after(stopHosts)

  const kindOf = async (ask: () => unknown): Promise<string | undefined> => {
    try {
      await ask()
      return undefined
    } catch (thrown) {
      if (HostError.is(thrown)) return thrown.kind
      throw thrown
    }
  }

  for (const [user, kind] of KINDS) {
    const who = user?.subject ?? 'an anonymous caller'
    it(`${who} gets ${kind ?? 'no error'} from admission, offers and sessions`, async () => {
      expect(await kindOf(() => services.authorize(facts(user)))).to.equal(kind)
      expect(await kindOf(() => services.makeOffer(facts(user)))).to.equal(kind)
      expect(await kindOf(() => services.sessions.open(facts(user), 'wire'))).to.equal(kind)
    })
  }

  it('finds a session for its owner only while the scopes of the owner are sufficient', async () => {
    const session = await services.sessions.open(facts(ADA), 'wire')
    expect(await services.sessions.find(session.id, facts(ADA), 'wire')).to.equal(session)
    const weaker = { ...ADA, scopes: [] }
    expect(await kindOf(() => services.sessions.find(session.id, facts(weaker), 'wire'))).to.equal('forbidden')
  })

  it('leaves no session behind after a rejected open', async () => {
    const before = services.sessions.count
    await rejectionOf(services.sessions.open(facts(BOB), 'wire'))
    expect(services.sessions.count).to.equal(before)
  })

  it('logs the denial with the missing scope', () => {
    const lines = log.filter(({ message }) => message === 'denied a route')
    expect(lines[0]).to.include({ level: 'info', denied: 'route', route: '/', reason: 'lacks scope "use"' })
  })

  it('does not check an authorized caller again', async () => {
    expect(await kindOf(() => services.makeOffer({ ...facts(BOB), authorized: true }))).to.equal(undefined)
  })
})
