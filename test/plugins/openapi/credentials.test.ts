// Credentials of the security schemes of a document: selection, secrets of the config, and access tokens.
import { createHash, generateKeyPairSync } from 'node:crypto'
import { expect } from 'chai'
import { decodeJwt, decodeProtectedHeader, type JWK, jwtVerify } from 'jose'
import { HostError } from '../../../core/index.ts'
import { findCredentialErrors } from '../../../plugins/openapi/credentials.ts'
import type { SecurityRequirement, SecurityScheme } from '../../../plugins/openapi/operation.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import {
  type Api,
  contextOf,
  type Given,
  operationAt,
  type ReceivedRequest,
  requesterOf,
  resultOf,
  startApi,
  textOf,
} from './api.ts'

const SCHEMES = {
  headerKey: { type: 'apiKey', in: 'header', name: 'X-Key' },
  queryKey: { type: 'apiKey', in: 'query', name: 'api key' },
  cookieKey: { type: 'apiKey', in: 'cookie', name: 'sid' },
  basic: { type: 'http', scheme: 'basic' },
  bearer: { type: 'http', scheme: 'bearer' },
  digest: { type: 'http', scheme: 'digest' },
  oauth: { type: 'oauth2', scopes: [], tokenUrl: 'https://idp.example/token' },
  oidc: { type: 'openIdConnect', openIdConnectUrl: 'https://idp.example/.well-known/openid-configuration' },
  mtls: { type: 'mutualTLS' },
} as const satisfies Record<string, SecurityScheme>
const schemes = new Map<string, SecurityScheme>(Object.entries(SCHEMES))

const requires = (...alternatives: readonly string[][]): SecurityRequirement[] =>
  alternatives.map(names => new Map(names.map(name => [name, []])))

describe('Credentials of an OpenAPI document', () => {
  let api: Api
  let tokens: Api
  const opened: (() => Promise<void>)[] = []

  beforeEach(async () => {
    api = await startApi()
    let issued = 0
    tokens = await startApi((_, res) => {
      issued++
      const token = { access_token: `token-${issued}-of-the-server`, token_type: 'Bearer', expires_in: 600 }
      res.setHeader('Content-Type', 'application/json').end(JSON.stringify(token))
    })
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(close => close()))
    await Promise.all([api[Symbol.asyncDispose](), tokens[Symbol.asyncDispose]()])
  })

  function open(options: Given) {
    const { request, credentials, lines } = requesterOf(api, { schemes, ...options })
    opened.push(() => request.close())
    return {
      lines,
      reasonFor: (security: SecurityRequirement[]) => credentials.reasonFor({ security }),
      async send(security: SecurityRequirement[], ctx = contextOf()) {
        const before = api.requests.length
        const result = await resultOf(request(operation(security), {}, ctx))
        return { result, sent: api.requests[before] }
      },
    }
  }

  const known = new Map<string, ReturnType<typeof operationAt>>()
  const operation = (security: SecurityRequirement[]) => {
    const key = api.url + JSON.stringify(security.map(one => [...one.keys()]))
    const made = known.get(key) ?? operationAt(api.url, { security, method: 'post' })
    known.set(key, made)
    return made
  }

  const formOf = (index = 0) => Object.fromEntries(new URLSearchParams(tokens.requests[index]?.body.toString()))

  describe('from secrets', () => {
    for (const [name, given, expected] of [
      ['headerKey', 'k y', { 'x-key': 'k y' }],
      ['headerKey', () => 'from-function\n', { 'x-key': 'from-function' }],
      ['queryKey', 'a+b/c=', { url: '/things?api%20key=a%2Bb%2Fc%3D' }],
      ['cookieKey', 'abc123==', { cookie: 'sid=abc123==' }],
      ['cookieKey', 'a;b c', { cookie: 'sid=a%3Bb%20c' }],
      [
        'basic',
        { username: 'mé', password: 'p:w' },
        { authorization: `Basic ${Buffer.from('mé:p:w').toString('base64')}` },
      ],
      ['bearer', 'abc', { authorization: 'Bearer abc' }],
      ['oauth', async () => 'abc', { authorization: 'Bearer abc' }],
      ['oidc', 'abc', { authorization: 'Bearer abc' }],
    ] as const) {
      it(`send ${name}: ${Object.values(expected)[0]}`, async () => {
        const { sent } = await open({ given: { [name]: given } }).send(requires([name]))
        const { url, headers = {} }: Partial<ReceivedRequest> = sent ?? {}
        for (const [where, value] of Object.entries(expected)) {
          expect(where === 'url' ? url : headers[where], where).to.equal(value)
        }
      })
    }

    it('refuse secrets that change the request', async () => {
      const { send, lines } = open({ given: { headerKey: () => 'a\r\nX-Injected: 1' } })
      const { result, sent } = await send(requires(['headerKey']))
      expect(sent).to.equal(undefined)
      expect(textOf(result)).not.to.include('Injected')
      expect(JSON.stringify(lines)).to.include('plugins.openapi.documents.test.credentials.headerKey')
      expect(JSON.stringify(lines)).not.to.include('Injected')
    })
  })

  describe('by the requirements of an operation', () => {
    const given = { headerKey: 'key-of-header', queryKey: 'q', cookieKey: 'c' }
    const seen = async (security: SecurityRequirement[]) => {
      const { sent } = await open({ given }).send(security)
      return { url: sent?.url, key: sent?.headers['x-key'], cookie: sent?.headers.cookie }
    }

    it('send all schemes of an alternative', async () => {
      expect(await seen(requires(['headerKey', 'queryKey', 'cookieKey']))).to.deep.equal({
        url: '/things?api%20key=q',
        key: 'key-of-header',
        cookie: 'sid=c',
      })
    })

    it('use the first alternative with all credentials', async () => {
      const expected = { url: '/things', key: undefined, cookie: 'sid=c' }
      expect(await seen(requires(['bearer'], ['headerKey', 'basic'], ['cookieKey'], ['queryKey']))).to.deep.equal(
        expected,
      )
    })

    it('prefer credentials to none, and send none where none are declared', async () => {
      expect((await seen(requires([], ['headerKey']))).key).to.equal('key-of-header')
      expect(await seen(requires([], ['bearer']))).to.deep.equal({ url: '/things', key: undefined, cookie: undefined })
      expect(await seen([])).to.deep.equal({ url: '/things', key: undefined, cookie: undefined })
    })

    it('name the schemes of an operation that cannot be called', () => {
      const { reasonFor } = open({ given })
      expect(reasonFor([])).to.equal(undefined)
      expect(reasonFor(requires(['headerKey']))).to.equal(undefined)
      expect(reasonFor(requires(['bearer'], []))).to.equal(undefined)
      expect(reasonFor(requires(['bearer'], ['headerKey', 'basic']))).to.equal(
        'no credential for the security scheme "bearer", or "headerKey" and "basic"',
      )
    })

    it('are config errors for unknown schemes and for other kinds', () => {
      const auth = { kind: 'bridge' } as const
      const basic = { username: 'u', password: 'p' }
      const faults = findCredentialErrors(schemes, {
        headerkey: 'x',
        headerKey: basic,
        basic: 'x',
        queryKey: auth,
        bearer: auth,
        oauth: 'x',
        oidc: basic,
        digest: 'x',
        mtls: 'x',
      })
      expect(faults).to.deep.equal([
        {
          scheme: 'headerkey',
          text: 'the document has no security scheme "headerkey"; did you mean "headerKey"?',
        },
        { scheme: 'headerKey', text: 'the security scheme "headerKey" (apiKey) requires a string or a function' },
        { scheme: 'basic', text: 'the security scheme "basic" (http basic) requires { username, password }' },
        { scheme: 'queryKey', text: 'the security scheme "queryKey" (apiKey) requires a string or a function' },
        {
          scheme: 'oidc',
          text: 'the security scheme "oidc" (openIdConnect) requires a string or a function or an object with `kind`',
        },
        { scheme: 'digest', text: 'the security scheme "digest" (http digest) is not supported' },
        { scheme: 'mtls', text: 'the security scheme "mtls" (mutualTLS) is not supported' },
      ])
      expect(findCredentialErrors(new Map(), { any: 'x' })[0]?.text).to.equal(
        'the document has no security scheme "any"; it declares none',
      )
    })
  })

  describe('as client credentials', () => {
    const auth = { kind: 'client-credentials', clientId: 'host', clientSecret: 'secret-of-the-host' } as const
    const withTokenUrl = () =>
      new Map<string, SecurityScheme>([['oauth', { type: 'oauth2', scopes: [], tokenUrl: `${tokens.url}/token` }]])

    it('request one token for all calls, at the token URL of the scheme', async () => {
      const { send } = open({
        schemes: withTokenUrl(),
        given: { oauth: { ...auth, scopes: ['a', 'b'], resource: 'urn:x' } },
      })
      const sent = await Promise.all([1, 2, 3].map(() => send(requires(['oauth']))))
      await send(requires(['oauth']))
      expect(tokens.requests).to.have.length(1)
      expect(formOf()).to.deep.equal({ grant_type: 'client_credentials', scope: 'a b', resource: 'urn:x' })
      expect(tokens.requests[0]?.headers.authorization).to.equal(`Basic ${btoa('host:secret-of-the-host')}`)
      expect(new Set(api.requests.map(({ headers }) => headers.authorization))).to.deep.equal(
        new Set(['Bearer token-1-of-the-server']),
      )
      expect(sent.every(({ result }) => !result.isError)).to.equal(true)
    })

    it('are never sent to a server that the API or another origin names', async () => {
      const trusts = (url: URL) => url.host === 'idp.example'
      const scheme = (tokenUrl?: string) =>
        new Map<string, SecurityScheme>([['oauth', { type: 'oauth2', scopes: [], ...(tokenUrl && { tokenUrl }) }]])
      const faultOf = (tokenUrl: string | undefined, given: object = auth) =>
        findCredentialErrors(scheme(tokenUrl), { oauth: given as typeof auth }, trusts)[0]?.text
      expect(faultOf('https://evil.example/token')).to.equal(
        'the security scheme "oauth" has the token URL https://evil.example, whose origin is not that of the document: set `issuer`, or list "evil.example" in `allowHosts`',
      )
      const { clientSecret: _, ...rest } = auth
      expect(faultOf('https://evil.example/token', { ...rest, privateKey: 'x' })).to.match(/evil\.example/)
      expect(faultOf('/token')).to.match(/"\/token", which is not absolute: set `issuer`$/)
      expect(faultOf(undefined)).to.match(/has no token URL for `clientSecret`: set `issuer`$/)
      expect(faultOf('https://idp.example/token')).to.equal(undefined)
      expect(faultOf('https://evil.example/token', { ...auth, issuer: 'https://idp.example' })).to.equal(undefined)
      api.answer = (_, res) =>
        res.writeHead(401, { 'WWW-Authenticate': `Bearer resource_metadata="${tokens.url}"` }).end()
      const { sent } = await open({ auth }).send([])
      expect(sent).to.equal(undefined)
      expect(api.requests).to.deep.equal([])
    })

    it('are sent to private addresses and by plain http only if that is allowed', async () => {
      for (const tokenUrl of [`${tokens.url}/token`, 'http://idp.example/token']) {
        const schemes = new Map<string, SecurityScheme>([['oauth', { type: 'oauth2', scopes: [], tokenUrl }]])
        const { credentials } = requesterOf(api, { schemes, given: { oauth: auth } })
        const security = requires(['oauth'])
        const adding = credentials.of({ security, baseUrl: 'https://api.example' })
        const added = { headers: [], query: [], cookies: [], secrets: [], tokens: [] }
        const request = { ctx: contextOf(), method: 'GET', url: 'https://api.example/things' }
        const thrown = await Promise.resolve(adding.add(request, added)).catch((error: unknown) => error)
        expect(thrown).to.be.an('error').with.property('code').that.is.oneOf(['blocked_address', 'invalid_options'])
      }
      expect(tokens.requests).to.deep.equal([])
    })

    it('find the token endpoint of an issuer by its metadata', async () => {
      const issue = tokens.answer
      tokens.answer = (request, res) => {
        if (request.url !== '/.well-known/oauth-authorization-server') return issue(request, res)
        const metadata = { issuer: tokens.url, token_endpoint: `${tokens.url}/t`, response_types_supported: [] }
        res.setHeader('Content-Type', 'application/json').end(JSON.stringify(metadata))
      }
      const { send } = open({ auth: { ...auth, issuer: tokens.url } })
      const { sent } = await send([])
      expect(tokens.requests.map(({ url }) => url)).to.deep.equal(['/.well-known/oauth-authorization-server', '/t'])
      expect(sent?.headers.authorization).to.equal('Bearer token-1-of-the-server')
    })

    it('renew a token before it expires', async () => {
      const clock = createManualClock()
      const { send } = open({ schemes: withTokenUrl(), given: { oauth: auth }, clock })
      await send(requires(['oauth']))
      await clock.advance(539_000)
      await send(requires(['oauth']))
      expect(tokens.requests).to.have.length(1)
      await clock.advance(2_000)
      await send(requires(['oauth']))
      expect(tokens.requests).to.have.length(2)
      expect(api.requests.at(-1)?.headers.authorization).to.equal('Bearer token-2-of-the-server')
    })

    it('request another token once after a 401', async () => {
      api.answer = (request, res) => {
        const isNew = request.headers.authorization === 'Bearer token-2-of-the-server'
        res.writeHead(isNew ? 200 : 401).end()
      }
      const { send } = open({ schemes: withTokenUrl(), given: { oauth: auth } })
      expect(textOf((await send(requires(['oauth']))).result)).to.equal('HTTP 200 OK')
      expect(api.requests).to.have.length(2)
      api.answer = (_, res) => res.writeHead(401).end()
      expect(textOf((await send(requires(['oauth']))).result)).to.match(/^HTTP 401 Unauthorized/)
      expect(api.requests).to.have.length(4)
    })

    it('use a changed secret', async () => {
      let secret = 'secret-one-of-the-host'
      const clock = createManualClock()
      const { send } = open({
        schemes: withTokenUrl(),
        given: { oauth: { ...auth, clientSecret: () => secret } },
        clock,
      })
      await send(requires(['oauth']))
      secret = 'secret-two-of-the-host'
      await clock.advance(600_000)
      await send(requires(['oauth']))
      expect(tokens.requests.at(-1)?.headers.authorization).to.equal(`Basic ${btoa('host:secret-two-of-the-host')}`)
    })

    it('authenticate with a private key', async () => {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
      const jwk = JSON.stringify(privateKey.export({ format: 'jwk' }))
      for (const key of [pem, jwk]) {
        const { clientSecret: _, ...rest } = auth
        const { send } = open({ schemes: withTokenUrl(), given: { oauth: { ...rest, privateKey: key } } })
        await send(requires(['oauth']))
        const form = formOf(tokens.requests.length - 1)
        expect(form['client_assertion_type']).to.equal('urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
        const { payload } = await jwtVerify(form['client_assertion'] ?? '', publicKey)
        expect(payload).to.include({ iss: 'host', sub: 'host' })
      }
    })

    it('bind tokens to a key with DPoP, and repeat once for a nonce of the API', async () => {
      tokens.answer = (_, res) =>
        res
          .setHeader('Content-Type', 'application/json')
          .end('{"access_token":"bound-token-of-the-server","token_type":"DPoP","expires_in":600}')
      api.answer = (request, res) => {
        const { nonce } = decodeJwt(String(request.headers['dpop']))
        if (nonce === 'n-1') res.end('good')
        else res.writeHead(401, { 'DPoP-Nonce': 'n-1', 'WWW-Authenticate': 'DPoP error="use_dpop_nonce"' }).end()
      }
      const { send } = open({ schemes: withTokenUrl(), given: { oauth: { ...auth, dpop: true } } })
      expect(textOf((await send(requires(['oauth']))).result)).to.equal('good')
      expect(tokens.requests).to.have.length(1)
      expect(api.requests).to.have.length(2)
      const { headers = {} }: Partial<ReceivedRequest> = api.requests[1] ?? {}
      const proof = String(headers['dpop'])
      const { jwk } = decodeProtectedHeader(proof)
      const { payload } = await jwtVerify(proof, jwk as JWK)
      const ath = createHash('sha256').update('bound-token-of-the-server').digest('base64url')
      expect(payload).to.include({ htm: 'POST', htu: `${api.url}/things`, ath, nonce: 'n-1' })
      expect(headers.authorization).to.equal('DPoP bound-token-of-the-server')
    })

    it('tell the caller nothing but the failure, and the log the reason without secrets', async () => {
      tokens.answer = (_, res) =>
        res
          .writeHead(400, { 'Content-Type': 'application/json' })
          .end('{"error":"invalid_client","error_description":"secret-of-the-host is wrong"}')
      const { send, lines } = open({ schemes: withTokenUrl(), given: { oauth: auth } })
      const { result, sent } = await send(requires(['oauth']))
      expect(sent).to.equal(undefined)
      expect(textOf(result)).to.equal('The host has no valid credentials for the API. See the log of the host.')
      expect(JSON.stringify(lines)).to.match(/MH3452.*refused a token \(client_credentials\)/)
      expect(JSON.stringify({ lines, result })).not.to.include('secret-of-the-host')
    })
  })

  describe('of the caller', () => {
    const callerOf = (token: string, requests: unknown[] = []) =>
      contextOf({
        upstreamToken: async request => {
          requests.push(request)
          return token
        },
        headers: { authorization: 'Bearer token-of-the-caller-for-this-host' },
      })

    it('are the token of the identity provider, with a scope', async () => {
      const asked: unknown[] = []
      const { send } = open({ auth: { kind: 'bridge', scope: ['a', 'b'] } })
      const { sent } = await send([], callerOf('provider-token-1', asked))
      expect(sent?.headers.authorization).to.equal('Bearer provider-token-1')
      expect(asked).to.deep.equal([{ scope: 'a b' }])
    })

    it('are replaced once after a 401 response', async () => {
      const asked: Array<{ rejected?: string }> = []
      api.answer = (_, res) => res.writeHead(401).end()
      const { send } = open({ auth: { kind: 'bridge' } })
      const upstreamToken = async (request: { rejected?: string } = {}) => `provider-token-${asked.push(request)}`
      const { result } = await send([], contextOf({ upstreamToken }))
      expect(asked).to.deep.equal([{}, { rejected: 'provider-token-1' }])
      expect(api.requests.map(({ headers }) => headers.authorization)).to.deep.equal([
        'Bearer provider-token-1',
        'Bearer provider-token-2',
      ])
      expect(textOf(result)).to.include('401')
    })

    it('pass the end of a login to the client', async () => {
      const { send } = open({ auth: { kind: 'bridge' } })
      const ended = new HostError('unauthorized', { detail: 'the login has ended' })
      const thrown = await send([], contextOf({ upstreamToken: () => Promise.reject(ended) })).catch(error => error)
      expect(thrown).to.equal(ended)
      expect(api.requests).to.deep.equal([])
    })

    it('are exchanged once for each caller', async () => {
      const auth = {
        kind: 'exchange',
        tokenEndpoint: `${tokens.url}/exchange`,
        clientId: 'host',
        clientSecret: 'secret-of-the-host',
        audience: 'jira',
        scopes: ['read'],
      } as const
      const { send } = open({ auth })
      await Promise.all(['provider-1', 'provider-2', 'provider-1'].map(token => send([], callerOf(token))))
      await send([], callerOf('provider-2'))
      expect(tokens.requests).to.have.length(2)
      expect(formOf()).to.deep.equal({
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token: 'provider-1',
        subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        audience: 'jira',
        scope: 'read',
      })
      const bearers = api.requests.map(({ headers }) => headers.authorization)
      expect(new Set(bearers)).to.have.property('size', 2)
      const everything = JSON.stringify([api.requests, tokens.requests])
      expect(everything).not.to.include('token-of-the-caller-for-this-host')
      expect(JSON.stringify(api.requests)).not.to.include('provider-')
    })
  })
})
