// Tests the complete flow with each vendor: sign-in, upstream token, refresh and removed users.
import { mock } from 'node:test'
import { expect } from 'chai'
import { type BridgeClient, type StartedBridge, seen, startBridge } from '../../support/bridge.ts'
import { readClaims } from '../../support/form-browser.ts'
import {
  type IdentityProvider,
  type IdpSettings,
  startIdentityProvider,
  stopIdentityProviders,
} from '../../support/identity-provider.ts'
import { startPlainOauth, stopPlainOauths } from '../../support/plain-oauth.ts'
import { callAs, readUser } from '../../support/protected-host.ts'
import { modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'

/** Milliseconds after which the provider is asked anew whether somebody may still sign in; more than the bridge has. */
const LATER = 20_000

/** A company's provider, and what is done to it here. */
interface Company {
  readonly idp: IdentityProvider
  /** How often it was asked for what says whether somebody may still sign in. */
  asked(): number
  /** Whether it knows Ann. */
  know(known: boolean): void
  /** Whose a token is, by its own word. */
  ownerOf(token: string): Promise<unknown>
}

interface VendorCase {
  readonly name: string
  start(): Promise<Company>
  /** Who Ann is there. */
  readonly subject: string
  /** The group by which she has the scope `admin`; undefined: the provider tells of none. */
  readonly group?: string
}

const ANN = { sub: 'ann', name: 'Ann Example', email: 'ann@acme.example', groups: ['engineering'] }

async function answerOf(url: string, token: string): Promise<Record<string, unknown>> {
  const answer = await fetch(url, { headers: { Authorization: `Bearer ${token}` } })
  return (await answer.json()) as Record<string, unknown>
}

const openId = (vendor: NonNullable<IdpSettings['vendor']>) => async (): Promise<Company> => {
  const idp = await startIdentityProvider({ vendor, users: [ANN] })
  return {
    idp,
    asked: () => idp.asked('token'),
    know: known => void (known ? idp.users.set('ann', ANN) : idp.users.delete('ann')),
    async ownerOf(token) {
      const { userinfo_endpoint } = await answerOf(
        `${idp.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
        '',
      )
      return (await answerOf(String(userinfo_endpoint), token))['sub']
    },
  }
}

/** GitHub's ways: `expiring` as of a GitHub App, else tokens that live until they are taken back. */
const plain = (type: 'github' | 'oauth', expiring: boolean) => async (): Promise<Company> => {
  const github = await startPlainOauth()
  github.expiring = expiring
  const [ann] = github.users.values()
  // Of a provider the bridge of a test needs what both have.
  const idp = { ...github, options: () => github.options({ type }) } as unknown as IdentityProvider
  return {
    idp,
    asked: () => github.asked(expiring ? '/login/oauth/access_token' : '/user'),
    know: known => void (known && ann ? github.users.set('ann', ann) : github.users.delete('ann')),
    ownerOf: async token => (await answerOf(`${github.origin}/api/v3/user`, token))['login'],
  }
}

const VENDORS: readonly VendorCase[] = [
  { name: 'oidc', start: openId('oidc'), subject: 'ann', group: 'engineering' },
  { name: 'entra', start: openId('entra'), subject: 'oid-of-ann', group: 'engineering' },
  { name: 'okta', start: openId('okta'), subject: 'ann', group: 'engineering' },
  { name: 'google', start: openId('google'), subject: 'ann' },
  { name: 'auth0', start: openId('auth0'), subject: 'ann' },
  { name: 'keycloak', start: openId('keycloak'), subject: 'ann', group: '/engineering' },
  { name: 'github, an OAuth App', start: plain('github', false), subject: '4711', group: 'acme/engineering' },
  { name: 'github, a GitHub App', start: plain('github', true), subject: '4711', group: 'acme/engineering' },
  { name: 'oauth', start: plain('oauth', false), subject: '4711' },
  { name: 'oauth with refresh tokens', start: plain('oauth', true), subject: '4711' },
]

const askUpstream = ({ resource }: StartedBridge, token: string) =>
  modern(resource, 'tools/call', { name: 'upstream' }, { headers: { Authorization: `Bearer ${token}` } })

describe('auth-bridge with each vendor', () => {
  after(async () => {
    await stopHosts()
    await stopIdentityProviders()
    await stopPlainOauths()
  })

  for (const { name, start, subject, group } of VENDORS)
    describe(name, () => {
      let company: Company
      let bridge: StartedBridge
      let client: BridgeClient

      before(async () => {
        const admin = { group: group ?? 'engineering' }
        company = await start()
        bridge = await startBridge({ idp: company.idp, options: { scopes: { admin } } })
      })
      beforeEach(async () => {
        client = await bridge.client()
        company.know(true)
        mock.timers.enable({ apis: ['Date'], now: Date.now() })
      })
      afterEach(() => mock.timers.reset())

      it('signs in, and a tool receives the caller', async () => {
        const { access_token, error_description } = await client.logIn({ scope: 'read admin' })
        expect(error_description).to.equal(undefined)
        const answer = await callAs(bridge.resource, access_token)
        expect(answer.status).to.equal(200)
        expect(readUser(answer)).to.include({ issuer: bridge.issuer, subject, clientId: client.clientId })
        expect(readClaims(access_token)).to.include({ scope: group === undefined ? 'read' : 'read admin' })
      })

      it('gives a tool the upstream token of the caller', async () => {
        const { access_token } = await client.logIn({ scope: 'read' })
        const { status, message } = await askUpstream(bridge, access_token)
        expect(status).to.equal(200)
        expect(message.result.isError ?? false).to.equal(false)
        const { seen: count } = message.result.structuredContent
        expect(await company.ownerOf(seen[count - 1] ?? '')).to.equal('ann')
      })

      it('refreshes, and checks the user at the provider', async () => {
        const first = await client.logIn({ scope: 'read' })
        const before = company.asked()
        mock.timers.tick(LATER)
        const second = await client.refresh(first.refresh_token ?? '')
        expect(second.error_description).to.equal(undefined)
        expect(company.asked()).to.equal(before + 1)
        expect((await callAs(bridge.resource, second.access_token)).status).to.equal(200)
        // What the provider replaced is what the next one goes on with.
        mock.timers.tick(LATER)
        const third = await client.refresh(second.refresh_token ?? '')
        expect(third.error_description).to.equal(undefined)
        expect(company.asked()).to.equal(before + 2)
      })

      it('rejects refreshes and upstream tokens after the provider removed the user', async () => {
        const tokens = await client.logIn({ scope: 'read' })
        company.know(false)
        mock.timers.tick(LATER)
        expect(await client.refresh(tokens.refresh_token ?? '')).to.include({ error: 'invalid_grant' })
        const { status, headers } = await askUpstream(bridge, tokens.access_token)
        expect([status, headers.get('www-authenticate')?.includes('invalid_token')]).to.deep.equal([401, true])
      })
    })
})
