// Tests the grants other than the authorization code flow: requests, errors and no fallback.
import { inspect } from 'node:util'
import { expect } from 'chai'
import { discoverServer } from '../../client/discovery.ts'
import { createDPoPSigner } from '../../client/dpop.ts'
import { requestByDevice, requestByGrant } from '../../client/grants.ts'
import { sleep } from '../../client/http.ts'
import type { AssertionContext, ClientOAuthOptions, IdentityProvider, UserCodeInfo } from '../../client/options.ts'
import type { ClientIdentity } from '../../client/stores.ts'
import { testContext } from './support/context.ts'
import { failure } from './support/failure.ts'
import { type FakeAuthorizationServer, type Fault, startFakeServers, stopServers } from './support/fake-servers.ts'

const { signal } = new AbortController()
const RESOURCE = 'https://mcp.example/mcp'
const CLIENT = { clientId: 'workload', clientSecret: 'workload-secret' }

let as: FakeAuthorizationServer
let idp: FakeAuthorizationServer
beforeEach(async () => {
  const fake = await startFakeServers({ authorizationServers: 2 })
  as = fake.as
  idp = fake.servers[1] ?? as
  as.settings.trusts = [idp]
})
afterEach(stopServers)

async function prepare(options: Partial<ClientOAuthOptions>, now: () => number = Date.now) {
  const ctx = testContext({ clientId: CLIENT.clientId, ...options }, { now })
  const server = await discoverServer(ctx, as.issuer, false, signal)
  const { clientSecret } = options
  const client: ClientIdentity = {
    source: 'configured',
    issuer: server.issuer,
    clientId: CLIENT.clientId,
    ...(clientSecret !== undefined && { clientSecret }),
  }
  return { ctx, about: { server, client, resource: RESOURCE, scope: 'read' } }
}

const formOf = (server: FakeAuthorizationServer, index = 0) =>
  Object.fromEntries(server.to('/token')[index]?.form ?? [])

describe('Grant client_credentials', () => {
  it('R-100, R-106: sends resource and scope, gets no refresh token, and can be repeated', async () => {
    as.addClient({ client_id: CLIENT.clientId, client_secret: CLIENT.clientSecret })
    const { ctx, about } = await prepare({ ...CLIENT, grant: { type: 'client_credentials' } })
    const first = await requestByGrant(ctx, about, signal)
    const second = await requestByGrant(ctx, about, signal)
    expect(first).to.include({ tokenType: 'Bearer', scope: 'read', refreshToken: undefined, expiresIn: 3600 })
    expect(second.accessToken).to.not.equal(first.accessToken)
    expect(formOf(as)).to.deep.equal({ grant_type: 'client_credentials', scope: 'read', resource: RESOURCE })
    expect([as.count('/register'), as.count('/token')]).to.deep.equal([0, 2])
  })
})

describe('Grant jwt-bearer', () => {
  beforeEach(() => as.addClient({ client_id: CLIENT.clientId }))
  const assertionFor = ({ issuer }: AssertionContext) => idp.issueAssertion({ sub: 'job-7', aud: issuer })

  it('R-101: sends a new assertion for each token, with the issuer as audience and the client id', async () => {
    const asked: AssertionContext[] = []
    const assertion = async (context: AssertionContext) => {
      asked.push(context)
      return assertionFor(context)
    }
    const { ctx, about } = await prepare({ grant: { type: 'jwt_bearer', assertion } })
    for (let n = 0; n < 2; n++) {
      expect(await requestByGrant(ctx, about, signal)).to.include({ tokenType: 'Bearer', scope: 'read' })
    }
    expect(asked).to.have.length(2)
    expect(asked[0]).to.include({ issuer: as.issuer, tokenEndpoint: `${as.url}/token`, resource: RESOURCE })
    const { assertion: sent, ...rest } = formOf(as)
    expect(rest).to.deep.equal({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      client_id: CLIENT.clientId,
      scope: 'read',
      resource: RESOURCE,
    })
    expect(ctx.secrets.scrub(`said ${sent}`)).to.equal('said [redacted]')
  })

  it('R-101: reports a rejection or failure without another request', async () => {
    const { ctx, about } = await prepare({
      grant: {
        type: 'jwt_bearer',
        assertion: async () => idp.issueAssertion({ sub: 'job', aud: 'https://wrong.example' }),
      },
    })
    expect((await failure(requestByGrant(ctx, about, signal))).code).to.equal('invalid_grant')
    const faults = [
      ...['invalid_scope', 'unauthorized_client'].map(error => ({ status: 400, body: { error } })),
      { status: 503 },
      { reset: 'after-body' } as const,
    ]
    const codes = []
    for (const fault of faults) {
      as.failNext('/token', fault)
      codes.push((await failure(requestByGrant(ctx, about, signal))).code)
    }
    const passing = 'temporarily_unavailable'
    expect(codes).to.deep.equal(['invalid_scope', 'unauthorized_client', passing, passing])
    expect(as.count('/token')).to.equal(1 + faults.length)
    expect(new Set(as.to('/token').map(({ form }) => form.get('grant_type')))).to.have.property('size', 1)
  })

  it('R-101: reports a failed or empty assertion callback without a request', async () => {
    const cause = new TypeError('no metadata service')
    for (const assertion of [() => Promise.reject(cause), async () => '']) {
      const { ctx, about } = await prepare({ grant: { type: 'jwt_bearer', assertion } })
      const failed = await failure(requestByGrant(ctx, about, signal))
      expect(failed.code).to.equal('assertion_failed')
      expect(failed.message).to.include('grant.assertion')
    }
    expect(as.count('/token')).to.equal(0)
  })

  it('R-101, R-104: creates another assertion if the server requires a DPoP nonce', async () => {
    as.settings.dpop = 'required'
    as.settings.dpopNonce = true
    let made = 0
    const assertion = async ({ issuer }: AssertionContext) => {
      made++
      return idp.issueAssertion({ sub: 'job', aud: issuer, jti: `${made}` })
    }
    const { ctx, about } = await prepare({ grant: { type: 'jwt_bearer', assertion } })
    const dpop = await createDPoPSigner()
    expect((await requestByGrant(ctx, { ...about, dpop }, signal)).tokenType).to.equal('DPoP')
    const sent = as.to('/token').map(({ form }) => form.get('assertion'))
    expect([made, sent.length, new Set(sent).size]).to.deep.equal([2, 2, 2])
  })
})

describe('Enterprise-managed authorization (ID-JAG)', () => {
  const ID_TOKEN = 'the-id-token-of-ann'
  beforeEach(() => {
    as.addClient({ client_id: CLIENT.clientId, client_secret: CLIENT.clientSecret })
    idp.addClient({ client_id: CLIENT.clientId })
    idp.idTokens.add(ID_TOKEN)
  })
  const run = async (more: Partial<IdentityProvider> = {}, options: Partial<ClientOAuthOptions> = {}) => {
    const provider = { tokenEndpoint: `${idp.url}/token`, clientId: CLIENT.clientId, ...more }
    const grant = { type: 'enterprise', idToken: async () => ID_TOKEN, idp: provider } as const
    const { ctx, about } = await prepare({ ...CLIENT, grant, ...options })
    return requestByGrant(ctx, about, signal)
  }

  it('R-102: exchanges the ID token for an ID-JAG, and the ID-JAG for an access token', async () => {
    expect(await run()).to.include({ tokenType: 'Bearer', scope: 'read' })
    expect(formOf(idp)).to.deep.equal({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
      audience: as.issuer,
      resource: RESOURCE,
      scope: 'read',
      subject_token: ID_TOKEN,
      subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
      client_id: CLIENT.clientId,
    })
    const { assertion = '', ...rest } = formOf(as)
    expect(rest).to.include({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', resource: RESOURCE })
    expect(as.to('/token')[0]?.headers.authorization).to.match(/^Basic /)
    expect(idp.readAssertion(assertion)).to.include({ aud: as.issuer, resource: RESOURCE, client_id: CLIENT.clientId })
  })

  it('R-102: discovers the identity provider by issuer, and sends it only its own client secret', async () => {
    const clientSecret = 'secret-at-the-idp'
    idp.addClient({ client_id: CLIENT.clientId, client_secret: clientSecret })
    const provider = { issuer: idp.issuer, clientId: CLIENT.clientId, clientSecret }
    const grant = { type: 'enterprise', idToken: async () => ID_TOKEN, idp: provider } as const
    const { ctx, about } = await prepare({ ...CLIENT, grant })
    expect((await requestByGrant(ctx, about, signal)).tokenType).to.equal('Bearer')
    const seen = JSON.stringify(idp.requests.map(({ headers, body }) => [headers, body]))
    expect(seen)
      .to.not.include(CLIENT.clientSecret)
      .and.not.include(btoa(`${CLIENT.clientId}:${CLIENT.clientSecret}`))
    const nowhere = { type: 'enterprise', idToken: async () => ID_TOKEN, idp: { clientId: 'x' } } as const
    const lost = await prepare({ ...CLIENT, grant: nowhere })
    expect((await failure(requestByGrant(lost.ctx, lost.about, signal))).code).to.equal('invalid_options')
  })

  it('R-102: rejects any other token type without sending it to the authorization server', async () => {
    const answers = [
      { issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' },
      { issued_token_type: undefined },
      { access_token: undefined },
    ]
    for (const tokenAnswer of answers) {
      idp.settings.tokenAnswer = tokenAnswer
      const refused = await failure(run())
      expect(refused.code).to.equal('malformed_response')
      expect(inspect(refused, { depth: 9 })).to.not.include(ID_TOKEN)
    }
    idp.settings.tokenAnswer = {}
    idp.idTokens.clear()
    const expired = await failure(run())
    expect(expired.code).to.equal('invalid_grant')
    expect(expired.message).to.include(`${idp.url}/token`)
    expect(as.count('/token')).to.equal(0)
  })
})

describe('Device flow', () => {
  /** A clock that only waiting moves. */
  function clock(onWait: (waited: readonly number[]) => void = () => {}) {
    const waited: number[] = []
    let time = 1_000
    return {
      waited,
      now: () => time,
      wait: async (ms: number, stop: AbortSignal) => {
        stop.throwIfAborted()
        waited.push(ms / 1000)
        time += ms
        onWait(waited)
      },
    }
  }
  beforeEach(() => {
    as.addClient({ client_id: CLIENT.clientId })
    as.settings.device = true
  })

  it('R-103: shows the user code, polls at the interval and obeys slow_down', async () => {
    as.settings.deviceSlowDowns = 1
    as.settings.deviceInterval = 2
    let shown: UserCodeInfo | undefined
    const { now, wait, waited } = clock(all => {
      if (all.length === 4) as.decideDevice(shown?.userCode ?? '', 'approved')
    })
    const onUserCode = async (info: UserCodeInfo) => {
      shown = info
    }
    const { ctx, about } = await prepare({ grant: { type: 'device', onUserCode } }, now)
    const token = await requestByDevice(ctx, about, signal, wait)
    expect(token).to.include({ tokenType: 'Bearer', scope: 'read' })
    expect(token.refreshToken).to.be.a('string')
    expect(waited).to.deep.equal([2, 7, 7, 7])
    expect(shown).to.include({ verificationUri: `${as.url}/device`, expiresIn: 600 })
    expect(shown?.verificationUriComplete).to.include(shown?.userCode)
    expect(ctx.events.find(({ type }) => type === 'user-code')).to.include({ userCode: shown?.userCode })
    const form = Object.fromEntries(as.to('/device_authorization')[0]?.form ?? [])
    expect(form).to.deep.equal({ client_id: CLIENT.clientId, scope: 'read', resource: RESOURCE })
    expect(formOf(as)).to.include({ grant_type: 'urn:ietf:params:oauth:grant-type:device_code', resource: RESOURCE })
    expect(inspect(ctx.events)).to.not.include(formOf(as)['device_code'])
  })

  it('R-103: polls every five seconds without an interval', async () => {
    as.settings.deviceInterval = undefined
    const { now, wait, waited } = clock()
    const onUserCode = ({ userCode }: UserCodeInfo) => as.decideDevice(userCode, 'approved')
    const { ctx, about } = await prepare({ grant: { type: 'device', onUserCode } }, now)
    await requestByDevice(ctx, about, signal, wait)
    expect(waited).to.deep.equal([5])
  })

  it('R-103: reports separate codes for a denied, an expired and an abandoned login', async () => {
    const codes = []
    for (const decision of ['denied', 'expired', undefined] as const) {
      const { now, wait } = clock()
      const onUserCode = ({ userCode }: UserCodeInfo) => decision && as.decideDevice(userCode, decision)
      as.settings.deviceInterval = 100
      const { ctx, about } = await prepare({ grant: { type: 'device', onUserCode } }, now)
      codes.push((await failure(requestByDevice(ctx, about, signal, wait))).code)
    }
    expect(codes).to.deep.equal(['access_denied', 'expired_token', 'expired_token'])
    // 600 s at 100 s: five questions, then the code is over.
    expect(as.count('/token')).to.equal(1 + 1 + 5)
  })

  it('R-103: polls less often while the server is unavailable', async () => {
    as.settings.deviceInterval = 1
    as.failNext('/token', { status: 503, headers: { 'Retry-After': '0' } }, 3)
    const { now, wait, waited } = clock()
    const onUserCode = ({ userCode }: UserCodeInfo) => as.decideDevice(userCode, 'approved')
    const { ctx, about } = await prepare({ grant: { type: 'device', onUserCode } }, now)
    expect((await requestByDevice(ctx, about, signal, wait)).tokenType).to.equal('Bearer')
    expect(waited).to.deep.equal([1, 2, 4, 8])
  })

  it('R-103: stops polling after a success without tokens, or eight unreadable responses in a row', async () => {
    const faults: [string, Fault, number][] = [
      ['204', { status: 204 }, 1],
      ['200, empty', { status: 200 }, 1],
      ['200, JSON cut off', { status: 200, body: '{"access_token":"half' }, 1],
      ['200, a page', { status: 200, body: '<html>' }, 1],
      ['502', { status: 502, body: 'bad gateway' }, 8],
      ['403, a page', { status: 403, body: '<html>' }, 8],
      ['lost', { reset: 'after-body' }, 8],
    ]
    // So short that the code itself lives for thousands of questions.
    as.settings.deviceInterval = 0.1
    for (const [name, fault, expected] of faults) {
      const before = as.count('/token')
      as.failNext('/token', fault, expected)
      const { now, wait, waited } = clock()
      const onUserCode = ({ userCode }: UserCodeInfo) => as.decideDevice(userCode, 'approved')
      const { ctx, about } = await prepare({ grant: { type: 'device', onUserCode } }, now)
      const ended = await failure(requestByDevice(ctx, about, signal, wait))
      expect([ended.code, as.count('/token') - before, waited.length], name).to.deep.equal([
        'temporarily_unavailable',
        expected,
        expected,
      ])
    }
  })

  it('R-103: never waits longer than the code lives, or than a timer can', async () => {
    for (const interval of [1e7, 1e20, 601]) {
      as.settings.deviceInterval = interval
      const { now, wait, waited } = clock()
      const { ctx, about } = await prepare({ grant: { type: 'device', onUserCode: () => {} } }, now)
      expect((await failure(requestByDevice(ctx, about, signal, wait))).code).to.equal('expired_token')
      expect(waited).to.deep.equal([600])
    }
    expect(as.count('/token')).to.equal(0)
    const leaving = new AbortController()
    const waiting = sleep(1e15, leaving.signal)
    await new Promise(resolve => setTimeout(resolve, 5))
    leaving.abort()
    expect((await failure(waiting)).code).to.equal('aborted')
  })

  it('R-103: can be aborted while waiting', async () => {
    const leaving = new AbortController()
    as.settings.deviceInterval = 60
    const { ctx, about } = await prepare({ grant: { type: 'device', onUserCode: () => leaving.abort() } })
    expect((await failure(requestByDevice(ctx, about, leaving.signal))).code).to.equal('aborted')
    expect(as.count('/token')).to.equal(0)
  })

  it('R-103: reports a missing endpoint, an invalid response or a failed display before polling', async () => {
    const cause = new Error('no screen')
    const grant = { type: 'device', onUserCode: () => Promise.reject(cause) } as const
    const shown = await prepare({ grant })
    expect(await failure(requestByDevice(shown.ctx, shown.about, signal))).to.include({ code: 'login_failed', cause })
    as.failNext('/device_authorization', { status: 200, body: { device_code: 'dc', interval: 1 } })
    const odd = await prepare({ grant })
    expect((await failure(requestByDevice(odd.ctx, odd.about, signal))).code).to.equal('malformed_response')
    as.settings.device = false
    const none = await prepare({ grant })
    expect((await failure(requestByDevice(none.ctx, none.about, signal))).code).to.equal('invalid_server_metadata')
    expect(as.count('/token')).to.equal(0)
  })
})
