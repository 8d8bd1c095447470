// Tests real clients with auth-bridge: discovery, registration, login, step-up, refresh and revocation.
import { expect } from 'chai'
import { rejectionOf } from '../../fixtures/rejection-of.ts'
import type { StartedBridge } from '../../support/bridge.ts'
import { readClaims } from '../../support/form-browser.ts'
import { stopIdentityProviders } from '../../support/identity-provider.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { callAs } from '../../support/protected-host.ts'
import { stopHosts } from '../../support/start-host.ts'
import { Person, stopLandings } from './browser-user.ts'
import { APPLICATIONS, type Application, type Kept } from './real-clients.ts'
import { startWithScopes } from './scoped-bridge.ts'

/** What the bridge says to a refresh; undefined: nothing against it. */
async function refreshByHand({ issuer }: StartedBridge, { clientId, refreshToken = '' }: Kept) {
  const form = { grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken }
  const answer = await fetch(`${issuer}/token`, { method: 'POST', body: new URLSearchParams(form) })
  return ((await answer.json()) as { error?: string }).error
}

describe('Real clients with auth-bridge', () => {
  let lasting: StartedBridge
  let brief: StartedBridge
  const clock = createManualClock()

  before(async () => {
    ;[lasting, brief] = await Promise.all([startWithScopes('10m'), startWithScopes('1m', { clock })])
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

      it('discovers the authorization server, registers, logs in and calls a tool', async () => {
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
        expect(readClaims(application.kept.accessToken)).to.include({ aud: lasting.resource, scope: 'read' })
      })

      it('reconnects with stored tokens without user interaction', async () => {
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
        expect(readClaims(application.kept.accessToken)).to.include({ scope: 'read admin' })
      })

      it('requests all scopes if no challenge names any, and receives those the user may have', async () => {
        const address = `${lasting.url}/at-once`
        const ann = await signIn(lasting, 'ann', address)
        expect(await ann.application.call('clear_all')).to.include({ subject: 'ann' })
        const bob = await signIn(lasting, 'bob', address)
        expect(await bob.application.call('whoami')).to.include({ subject: 'bob' })
        expect([...ann.person.scopes, ...bob.person.scopes]).to.deep.equal(Array(2).fill(['admin', 'read']))
        const scopes = [ann, bob].map(({ application }) => readClaims(application.kept.accessToken)['scope'])
        expect(scopes).to.deep.equal(['read admin', 'read'])
      })

      it('stops step-up for a scope that the user cannot have', async () => {
        const { person, application } = await signIn(lasting, 'bob')
        const refused = await rejectionOf(application.call('clear_all'))
        expect(String(refused)).to.match(refusal)
        expect(person.asked).to.have.length(stepsUp ? 2 : 1)
        expect(await application.call('whoami')).to.include({ subject: 'bob' })
      })

      it('refreshes an expired access token without user interaction', async () => {
        const { person, application } = await signIn(brief)
        const { accessToken, refreshToken } = application.kept
        await clock.advance(61_000)
        expect((await callAs(brief.resource, accessToken)).status).to.equal(401)
        expect(await application.call('whoami')).to.include({ subject: 'ann' })
        expect(application.kept.accessToken).to.not.equal(accessToken)
        expect(application.kept.refreshToken).to.be.a('string').and.not.equal(refreshToken)
        expect(person.asked).to.have.length(1)
      })

      it('logs in and asks for consent again after access was revoked', async () => {
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
