// Tests provider outages, slow or invalid responses and errors, and that error messages contain no secret.
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { expect } from 'chai'
import {
  type IdentityProvider,
  type IdpEndpoint,
  startIdentityProvider,
  stopIdentityProviders,
} from '../../support/identity-provider.ts'
import { CALLBACK, catchError, makeUpstream, signIn } from '../../support/upstream.ts'

let idp: IdentityProvider
before(async () => {
  idp = await startIdentityProvider({ redirects: [CALLBACK] })
})
const servers: Array<ReturnType<typeof createServer>> = []
after(async () => {
  await stopIdentityProviders()
  for (const server of servers) server.close().closeAllConnections()
})
beforeEach(() => {
  idp.mood = 'well'
  idp.troubled = undefined
  idp.tamper = undefined
  for (const endpoint of Object.keys(idp.failing)) delete idp.failing[endpoint as IdpEndpoint]
})

/** A server that answers everything in one way, as an issuer. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const REQUEST = { redirectUri: CALLBACK, state: 'a state' }

describe('Upstream faults: provider outage', () => {
  for (const mood of ['down', 'gone', 'hangs'] as const) {
    it(`(${mood}) fails as unavailable, and recovers`, async () => {
      const { upstream } = makeUpstream(idp.options(), { timeout: mood === 'hangs' ? 1_000 : 10_000 })
      idp.mood = mood
      const faults = await Promise.all([upstream.startLogin(REQUEST), upstream.startLogin(REQUEST)].map(catchError))
      for (const fault of faults) expect(fault.fault).to.equal('unavailable')
      idp.mood = 'well'
      const { upstream: other } = makeUpstream(idp.options())
      const ann = await signIn(other, idp)
      await upstream.startLogin(REQUEST)
      idp.mood = mood
      expect((await catchError(upstream.renew(ann))).fault).to.equal('unavailable')
      expect((await catchError(upstream.revoke(ann.tokens))).fault).to.equal('unavailable')
      idp.mood = 'well'
      expect((await upstream.renew(ann)).person.subject).to.equal('ann')
    })
  }

  it('fetches metadata once for concurrent logins', async () => {
    const { upstream } = makeUpstream(idp.options())
    const before = idp.asked('discovery')
    await Promise.all(Array.from({ length: 20 }, () => upstream.startLogin(REQUEST)))
    expect(idp.asked('discovery') - before).to.equal(1)
  })

  for (const endpoint of ['token', 'jwks', 'userinfo'] as const) {
    it(`only at ${endpoint} fails the login as unavailable`, async () => {
      const { upstream } = makeUpstream(idp.options({ claims: { groups: 'nowhere' } }))
      await upstream.startLogin(REQUEST)
      idp.troubled = [endpoint]
      idp.mood = 'down'
      expect((await catchError(signIn(upstream, idp))).fault).to.equal('unavailable')
    })
  }

  for (const status of [429, 500, 502, 503]) {
    it(`with status ${status} at refresh is unavailable, whatever the body`, async () => {
      const { upstream } = makeUpstream(idp.options())
      const ann = await signIn(upstream, idp)
      idp.failing.token = { status, error: 'invalid_grant' }
      expect((await catchError(upstream.renew(ann))).fault).to.equal('unavailable')
    })
  }
})

describe('Upstream faults: invalid responses', () => {
  for (const [name, listener, fault] of [
    ['of more than 1 MiB', (_, response) => void response.writeHead(200).end(Buffer.alloc(1_100_000, 32)), 'untrusted'],
    [
      'that leads elsewhere',
      (_, response) => void response.writeHead(302, { Location: 'https://evil.example/' }).end(),
      'misconfigured',
    ],
    ['that is a page', (_, response) => void response.writeHead(200).end('<html>'), 'misconfigured'],
    ['that is null', (_, response) => void response.writeHead(200).end('null'), 'misconfigured'],
    ['of nothing here', (_, response) => void response.writeHead(404).end(), 'misconfigured'],
    [
      'that breaks off',
      (_, response) => void response.writeHead(200).write('{', () => response.destroy()),
      'unavailable',
    ],
  ] as ReadonlyArray<readonly [string, RequestListener, string]>) {
    it(`${name}: ${fault}`, async () => {
      const issuer = await serve(listener)
      const { upstream } = makeUpstream(idp.options({ issuer }))
      expect((await catchError(upstream.startLogin(REQUEST))).fault).to.equal(fault)
    })
  }

  it('a redirect is not followed and receives no code or token', async () => {
    const seen: unknown[] = []
    const elsewhere = await serve(({ url, headers }, response) => {
      seen.push(url, headers)
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"sub":"ann"}')
    })
    const redirecting = await serve((_, response) => void response.writeHead(307, { Location: elsewhere }).end())
    for (const name of ['token_endpoint', 'userinfo_endpoint', 'jwks_uri', 'revocation_endpoint']) {
      idp.metadata = { [name]: `${redirecting}/${name}` }
      const { upstream } = makeUpstream(idp.options({ scopes: ['email'], claims: { groups: 'nowhere' } }))
      const login = signIn(upstream, idp).then(async signedIn => {
        if (name === 'userinfo_endpoint') await upstream.renew(signedIn)
        await upstream.revoke(signedIn.tokens)
      })
      const fault = await catchError(login)
      expect(fault.fault, name).to.equal('misconfigured')
      expect(fault.message, name).to.include('redirects are not followed')
    }
    idp.metadata = {}
    expect(seen).to.deep.equal([])
  })

  it('accepts nulls, scopes as a list, seconds as text and a missing token_type from the token endpoint', async () => {
    const { upstream } = makeUpstream(idp.options())
    idp.tamper = ({ token_type: _, ...answer }) => ({
      ...answer,
      scope: ['openid', 'email'],
      expires_in: '120',
      refresh_token: null,
    })
    const { tokens } = await signIn(upstream, idp)
    expect(tokens.scopes).to.deep.equal(['openid', 'email'])
    expect(tokens).to.not.have.property('refreshToken')
    expect(tokens.expiresAt).to.be.a('number')
  })

  it('a token response without scope grants the requested scopes', async () => {
    const { upstream } = makeUpstream(idp.options())
    idp.tamper = ({ scope: _, ...answer }) => answer
    expect((await signIn(upstream, idp)).tokens.scopes).to.deep.equal(['openid', 'profile', 'email', 'offline_access'])
  })
})

const AT_AUTHORIZATION = {
  access_denied: 'refused',
  consent_required: 'refused',
  interaction_required: 'refused',
  login_required: 'refused',
  something_of_its_own: 'refused',
  invalid_scope: 'misconfigured',
  invalid_request: 'misconfigured',
  unauthorized_client: 'misconfigured',
  invalid_client: 'misconfigured',
  unsupported_response_type: 'misconfigured',
  redirect_uri_mismatch: 'misconfigured',
  server_error: 'unavailable',
  temporarily_unavailable: 'unavailable',
} as const

const AT_TOKEN = {
  invalid_grant: 'refused',
  interaction_required: 'refused',
  access_denied: 'refused',
  invalid_client: 'misconfigured',
  unauthorized_client: 'misconfigured',
  unsupported_grant_type: 'misconfigured',
  invalid_scope: 'misconfigured',
  something_of_its_own: 'misconfigured',
  temporarily_unavailable: 'unavailable',
} as const

describe('Upstream faults: OAuth errors', () => {
  for (const [error, fault] of Object.entries(AT_AUTHORIZATION)) {
    it(`${error} in the callback is ${fault}`, async () => {
      const { upstream } = makeUpstream(idp.options())
      idp.failing.authorization = { error, error_description: 'in words' }
      const told = await catchError(signIn(upstream, idp))
      expect(told).to.include({ fault, code: error })
      expect(told.message).to.include('in words')
    })
  }

  for (const [error, fault] of Object.entries(AT_TOKEN)) {
    it(`${error} at the token endpoint is ${fault}`, async () => {
      const { upstream } = makeUpstream(idp.options())
      const ann = await signIn(upstream, idp)
      for (const status of [400, 401, 200]) {
        idp.failing.token = { status, error }
        expect(await catchError(signIn(upstream, idp)), `${status}`).to.include({ fault, code: error })
        expect(await catchError(upstream.renew(ann)), `${status}`).to.include({ fault, code: error })
      }
    })
  }

  it('a wrong client secret reports what to check', async () => {
    const { upstream } = makeUpstream(idp.options({ clientSecret: 'wrong' }))
    const fault = await catchError(signIn(upstream, idp))
    expect(fault).to.include({ fault: 'misconfigured', code: 'invalid_client' })
    expect(fault.fix).to.include('clientSecret')
  })
})

describe('Upstream faults: error messages', () => {
  it('contain no code, token or secret, even if the provider echoes them', async () => {
    const told: string[] = []
    const note = async (promise: Promise<unknown>) => {
      const fault = await catchError(promise)
      told.push(inspect(fault, { depth: 10, showHidden: true }), JSON.stringify(fault), fault.stack ?? '')
    }
    const { upstream, lines } = makeUpstream(idp.options())
    const ann = await signIn(upstream, idp)
    const { accessToken, refreshToken = '', idToken = '' } = ann.tokens
    const secrets = [accessToken, refreshToken, idToken, idp.clientSecret]
    idp.failing.token = { error: 'invalid_grant', error_description: secrets.join(' and ') }
    await note(upstream.renew(ann))
    await note(upstream.exchange(ann.tokens, 'email'))
    await note(
      signIn(upstream, idp, {
        change: callback => {
          const code = callback.searchParams.get('code') ?? ''
          secrets.push(code)
          idp.failing.token = { error: 'invalid_grant', error_description: `${code} is no code\r\nGET /` }
        },
      }),
    )
    delete idp.failing.token
    idp.failing.revocation = { error: 'invalid_client', error_description: `${refreshToken} ${idp.clientSecret}` }
    await note(upstream.revoke(ann.tokens))
    idp.failing.userinfo = { status: 401, error: 'invalid_token', error_description: accessToken }
    const { refreshToken: _, ...bare } = ann.tokens
    await note(upstream.renew({ person: ann.person, tokens: bare }))
    idp.tamper = answer => {
      secrets.push(String(answer['access_token']), String(answer['refresh_token']))
      return { ...answer, id_token: 'no JWT' }
    }
    await note(signIn(upstream, idp))
    idp.mood = 'gone'
    await note(upstream.renew(ann))
    told.push(inspect(lines, { depth: 10, showHidden: true }))
    const found = secrets.filter(secret => secret !== '' && told.some(text => text.includes(secret)))
    expect(found).to.deep.equal([])
    expect(told.join()).to.not.match(/[\r]/)
  })
})
