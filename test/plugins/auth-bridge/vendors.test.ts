// The whole way through the bridge with each vendor's ways: somebody signs in, a tool gets the provider's token for them, a
// client refreshes, and no more once the provider does not know the person.
import { mock } from 'node:test'
import { expect } from 'chai'
import { type BridgeClient, type StartedBridge, seen, startBridge } from '../../support/bridge.ts'
import { claimsOf } from '../../support/form-browser.ts'
import { type IdpSettings, stopIdentityProviders } from '../../support/identity-provider.ts'
import { callAs, userIn } from '../../support/protected-host.ts'
import { modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'

/** Milliseconds after which the provider is asked anew whether somebody may still sign in; more than the bridge has. */
const LATER = 20_000

interface VendorCase {
  readonly vendor: NonNullable<IdpSettings['vendor']>
  /** Who Ann is there. */
  readonly subject: string
  /** The group by which she has the scope `admin`; undefined: the provider tells of none. */
  readonly group: string | undefined
}

const VENDORS: readonly VendorCase[] = [
  { vendor: 'oidc', subject: 'ann', group: 'engineering' },
  { vendor: 'entra', subject: 'oid-of-ann', group: 'engineering' },
  { vendor: 'okta', subject: 'ann', group: 'engineering' },
  { vendor: 'google', subject: 'ann', group: undefined },
  { vendor: 'auth0', subject: 'ann', group: undefined },
  { vendor: 'keycloak', subject: 'ann', group: '/engineering' },
]

/** Whose a token of the provider is, by its own word. */
async function ownerOf({ idp }: StartedBridge, token: string): Promise<unknown> {
  const metadata = await fetch(`${idp.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const { userinfo_endpoint } = (await metadata.json()) as { userinfo_endpoint: string }
  const answer = await fetch(userinfo_endpoint, { headers: { Authorization: `Bearer ${token}` } })
  return answer.ok ? ((await answer.json()) as { sub: string }).sub : answer.status
}

const askUpstream = ({ resource }: StartedBridge, token: string) =>
  modern(resource, 'tools/call', { name: 'upstream' }, { headers: { Authorization: `Bearer ${token}` } })

describe('auth-bridge with each vendor’s ways', () => {
  after(async () => {
    await stopHosts()
    await stopIdentityProviders()
  })

  for (const { vendor, subject, group } of VENDORS)
    describe(vendor, () => {
      let bridge: StartedBridge
      let client: BridgeClient

      before(async () => {
        const admin = { group: group ?? 'engineering' }
        bridge = await startBridge({ idp: { vendor }, options: { scopes: { admin } } })
      })
      beforeEach(async () => {
        client = await bridge.client()
        bridge.idp.users.set('ann', {
          sub: 'ann',
          name: 'Ann Example',
          email: 'ann@acme.example',
          groups: ['engineering'],
        })
        mock.timers.enable({ apis: ['Date'], now: Date.now() })
      })
      afterEach(() => mock.timers.reset())

      it('signs in, and a tool knows who calls', async () => {
        const { access_token, error_description } = await client.logIn({ scope: 'read admin' })
        expect(error_description).to.equal(undefined)
        const answer = await callAs(bridge.resource, access_token)
        expect(answer.status).to.equal(200)
        expect(userIn(answer)).to.include({ issuer: bridge.issuer, subject, clientId: client.clientId })
        expect(claimsOf(access_token)).to.include({ scope: group === undefined ? 'read' : 'read admin' })
      })

      it('gives a tool the provider’s token of the caller', async () => {
        const { access_token } = await client.logIn({ scope: 'read' })
        const { status, message } = await askUpstream(bridge, access_token)
        expect(status).to.equal(200)
        expect(message.result.isError ?? false).to.equal(false)
        const { seen: count } = message.result.structuredContent
        expect(await ownerOf(bridge, seen[count - 1] ?? '')).to.equal('ann')
      })

      it('refreshes, and asks the provider whether it still knows the person', async () => {
        const first = await client.logIn({ scope: 'read' })
        const before = bridge.idp.asked('token')
        mock.timers.tick(LATER)
        const second = await client.refresh(first.refresh_token ?? '')
        expect(second.error_description).to.equal(undefined)
        expect(bridge.idp.asked('token')).to.equal(before + 1)
        expect((await callAs(bridge.resource, second.access_token)).status).to.equal(200)
        // What the provider replaced is what the next one goes on with.
        mock.timers.tick(LATER)
        const third = await client.refresh(second.refresh_token ?? '')
        expect(third.error_description).to.equal(undefined)
        expect(bridge.idp.asked('token')).to.equal(before + 2)
      })

      it('refuses a refresh, and a tool the token, once the provider does not know the person any more', async () => {
        const tokens = await client.logIn({ scope: 'read' })
        bridge.idp.users.delete('ann')
        mock.timers.tick(LATER)
        expect(await client.refresh(tokens.refresh_token ?? '')).to.include({ error: 'invalid_grant' })
        const { status, headers } = await askUpstream(bridge, tokens.access_token)
        expect([status, headers.get('www-authenticate')?.includes('invalid_token')]).to.deep.equal([401, true])
      })
    })
})
