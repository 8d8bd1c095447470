// Real clients, the whole way through the bridge: they find it from a 401, register, send their person there, call, step up,
// refresh, and begin anew once the person took back what they were allowed.
import { expect } from 'chai'
import { rejectionOf } from '../../fixtures/rejection-of.ts'
import type { StartedBridge } from '../../support/bridge.ts'
import { eventually } from '../../support/eventually.ts'
import { claimsOf } from '../../support/form-browser.ts'
import { stopIdentityProviders } from '../../support/identity-provider.ts'
import { callAs } from '../../support/protected-host.ts'
import { stopHosts } from '../../support/start-host.ts'
import { Person, stopLandings } from './person.ts'
import { APPLICATIONS, type Application, type Kept } from './real-clients.ts'
import { startWithScopes } from './scoped-bridge.ts'

/** What the bridge says to a refresh; undefined: nothing against it. */
async function refreshByHand({ issuer }: StartedBridge, { clientId, refreshToken = '' }: Kept) {
  const form = { grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken }
  const answer = await fetch(`${issuer}/token`, { method: 'POST', body: new URLSearchParams(form) })
  return ((await answer.json()) as { error?: string }).error
}

describe('real clients, through the bridge', () => {
  let lasting: StartedBridge
  let brief: StartedBridge

  before(async () => {
    ;[lasting, brief] = await Promise.all([startWithScopes('10m'), startWithScopes('1s')])
  })
  after(async () => {
    await stopLandings()
    await stopHosts()
    await stopIdentityProviders()
  })

  for (const { name, start: startApplication, stepsUp, refusal } of APPLICATIONS)
    describe(name, () => {
      const applications: Application[] = []
      afterEach(() => Promise.all(applications.splice(0).map(application => application.close())))

      async function signIn(bridge: StartedBridge, sub = 'ann', address = bridge.resource) {
        const person = new Person(bridge, sub)
        const application = await startApplication(address, person)
        applications.push(application)
        await application.connect()
        return { person, application }
      }

      /** The token that it has is none any more. */
      const expiry = (bridge: StartedBridge, { kept }: Application) =>
        eventually(
          'its token has expired',
          async () => (await callAs(bridge.resource, kept.accessToken)).status === 401,
        )

      it('finds the bridge, registers, sends its person there, and calls as them', async () => {
        const { person, application } = await signIn(lasting)
        expect(await application.tools()).to.include('whoami')
        expect(await application.call('whoami')).to.deep.equal({
          subject: 'ann',
          issuer: lasting.issuer,
          client: application.kept.clientId,
        })
        expect(person.scopes).to.deep.equal([['read']])
        expect(person.consents).to.have.length(1)
        expect(application.kept.refreshToken).to.be.a('string')
        expect(claimsOf(application.kept.accessToken)).to.include({ aud: lasting.resource, scope: 'read' })
      })

      it('connects again with what it kept, and asks nobody', async () => {
        const { person, application } = await signIn(lasting)
        const { accessToken } = application.kept
        await application.connect()
        expect(await application.call('whoami')).to.include({ subject: 'ann' })
        expect(application.kept.accessToken).to.equal(accessToken)
        expect(person.asked).to.have.length(1)
      })

      const asking = stepsUp ? it : undefined
      asking?.('asks for the scope that a tool takes, and the person for it', async () => {
        const { person, application } = await signIn(lasting)
        expect(await application.call('clear_all')).to.include({ subject: 'ann' })
        expect(person.scopes).to.deep.equal([['read'], ['admin', 'read']])
        expect(person.consents).to.have.length(2)
        expect(person.consents[1]).to.include('admin')
        expect(claimsOf(application.kept.accessToken)).to.include({ scope: 'read admin' })
      })

      it('asks for all scopes at once where no challenge names any, and gets those that its person may have', async () => {
        const address = `${lasting.url}/at-once`
        const ann = await signIn(lasting, 'ann', address)
        expect(await ann.application.call('clear_all')).to.include({ subject: 'ann' })
        const bob = await signIn(lasting, 'bob', address)
        expect(await bob.application.call('whoami')).to.include({ subject: 'bob' })
        expect([...ann.person.scopes, ...bob.person.scopes]).to.deep.equal(Array(2).fill(['admin', 'read']))
        const scopes = [ann, bob].map(({ application }) => claimsOf(application.kept.accessToken)['scope'])
        expect(scopes).to.deep.equal(['read admin', 'read'])
      })

      it('is not sent in circles for a scope that its person may not have', async () => {
        const { person, application } = await signIn(lasting, 'bob')
        const refused = await rejectionOf(application.call('clear_all'))
        expect(String(refused)).to.match(refusal)
        expect(person.asked).to.have.length(stepsUp ? 2 : 1)
        expect(await application.call('whoami')).to.include({ subject: 'bob' })
      })

      it('refreshes a token that has expired, and asks nobody', async () => {
        const { person, application } = await signIn(brief)
        const { accessToken, refreshToken } = application.kept
        await expiry(brief, application)
        expect(await application.call('whoami')).to.include({ subject: 'ann' })
        expect(application.kept.accessToken).to.not.equal(accessToken)
        expect(application.kept.refreshToken).to.be.a('string').and.not.equal(refreshToken)
        expect(person.asked).to.have.length(1)
      })

      it('asks for a login again, and the person once more, after they took back what it was allowed', async () => {
        const { person, application } = await signIn(lasting)
        expect(await person.revokeAll()).to.be.above(0)
        expect(await refreshByHand(lasting, application.kept)).to.equal('invalid_grant')
        application.spoil()
        expect(await application.call('whoami')).to.include({ subject: 'ann' })
        expect(person.asked).to.have.length(2)
        expect(person.consents).to.have.length(2)
      })
    })
})
