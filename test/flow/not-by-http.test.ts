// A transport whose callers come by no HTTP request: nothing of `admit` acts there, and a route's `authorize` holds all
// the same.
import { expect } from 'chai'
import { HostError, type Services, type User } from '../../core/index.ts'
import { MODERN_REVISION, type RequestFacts } from '../../core/transport.ts'
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

describe('callers who come by no HTTP request', () => {
  let services: Services
  let facts: (user: User | undefined) => RequestFacts
  let log: Awaited<ReturnType<typeof startHost>>['log']

  before(async () => {
    const wire = plugin(host => {
      host.revisions(() => [MODERN_REVISION])
      host.serving(built => {
        services = built
      })
      facts = user => ({
        route: host.routes[0] as RequestFacts['route'],
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
    const who = user?.subject ?? 'nobody'
    it(`${who} is told ${kind ?? 'nothing'} by every way in`, async () => {
      expect(await kindOf(() => services.admit(facts(user)))).to.equal(kind)
      expect(await kindOf(() => services.makeOffer(facts(user)))).to.equal(kind)
      expect(await kindOf(() => services.sessions.open(facts(user), 'wire'))).to.equal(kind)
    })
  }

  it('a session is found again by its owner as long as his token is enough', async () => {
    const session = await services.sessions.open(facts(ADA), 'wire')
    expect(await services.sessions.find(session.id, facts(ADA), 'wire')).to.equal(session)
    const weaker = { ...ADA, scopes: [] }
    expect(await kindOf(() => services.sessions.find(session.id, facts(weaker), 'wire'))).to.equal('forbidden')
  })

  it('nothing is left of a session that was refused', async () => {
    const before = services.sessions.count
    await rejectionOf(services.sessions.open(facts(BOB), 'wire'))
    expect(services.sessions.count).to.equal(before)
  })

  it('a refusal says in the log who lacked what', () => {
    const lines = log.filter(({ message }) => message === 'denied a route')
    expect(lines[0]).to.include({ level: 'info', denied: 'route', route: '/', reason: 'lacks scope "use"' })
  })

  it('whoever came through `admit` is not asked again', async () => {
    expect(await kindOf(() => services.makeOffer({ ...facts(BOB), admitted: true }))).to.equal(undefined)
  })
})
