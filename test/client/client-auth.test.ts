// Tests client authentication at the token endpoint: method selection and the requests it produces.

import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { inspect } from 'node:util'
import { expect } from 'chai'
import fc from 'fast-check'
import jwt from 'jsonwebtoken'
import { chooseClientAuth, chooseMethod, importPrivateKey, type MethodCriteria } from '../../client/client-auth.ts'
import { discoverServer } from '../../client/discovery.ts'
import type { ClientOAuthOptions } from '../../client/options.ts'
import type { ClientIdentity, ServerInfo } from '../../client/stores.ts'
import { requestToken } from '../../client/token-endpoint.ts'
import { testContext } from './support/context.ts'
import { failure } from './support/failure.ts'
import { startFakeServers, stopServers } from './support/fake-servers.ts'

const { signal } = new AbortController()
afterEach(stopServers)

const SERVER: ServerInfo = {
  listed: 'https://as.example',
  issuer: 'https://as.example',
  tokenEndpoint: 'https://as.example/token',
  issParameterSupported: false,
  clientIdMetadataDocumentSupported: false,
  pkceS256: true,
  oidc: false,
  legacy: false,
  metadataUrl: undefined,
}

const identity = (more: Partial<ClientIdentity> = {}): ClientIdentity => ({
  source: 'configured',
  issuer: SERVER.issuer,
  clientId: 'client',
  ...more,
})

/** What a request carries once the client added who asks. */
async function shown({ authenticate }: ReturnType<typeof chooseClientAuth>, client: ClientIdentity) {
  const body = new URLSearchParams()
  const headers = new Headers()
  await authenticate({ server: SERVER, client, body, headers })
  return { body, authorization: headers.get('authorization') }
}

const choose = (options: Partial<ClientOAuthOptions>, client: ClientIdentity, listed?: readonly string[]) =>
  chooseClientAuth(testContext(options), { ...SERVER, tokenEndpointAuthMethodsSupported: listed }, client)

const pem = (key: KeyObject) => key.export({ format: 'pem', type: 'pkcs8' }).toString()
const publicPem = (key: KeyObject) => key.export({ format: 'pem', type: 'spki' }).toString()

const KEYS = {
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  ES512: generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  EdDSA: generateKeyPairSync('ed25519'),
}

describe('Client authentication', () => {
  it('R-64: selects the method by registration, option, key, secret and server metadata', () => {
    const [basic, post, none] = ['client_secret_basic', 'client_secret_post', 'none']
    const facts: MethodCriteria = {
      registered: undefined,
      explicit: undefined,
      hasKey: false,
      hasSecret: true,
      listed: undefined,
    }
    const cases: [Partial<MethodCriteria>, string | undefined][] = [
      [{ registered: post, explicit: basic, hasKey: true, listed: [basic] }, post],
      [{ registered: 'private_key_jwt', hasSecret: false }, 'private_key_jwt'],
      [{ registered: basic, hasSecret: false, listed: [basic] }, none],
      [{ explicit: post, hasKey: true, listed: [basic] }, post],
      [{ hasKey: true, listed: [basic] }, 'private_key_jwt'],
      [{ hasSecret: false, listed: [basic, post] }, none],
      [{ listed: undefined }, basic],
      [{ listed: [post, basic] }, basic],
      [{ listed: [none, post] }, post],
      [{ listed: [none] }, none],
      [{ listed: ['tls_client_auth'] }, undefined],
    ]
    for (const [more, method] of cases) {
      expect(chooseMethod({ ...facts, ...more }), JSON.stringify(more)).to.equal(method)
    }
  })

  it('R-64: reports missing credentials for a method before sending a request', () => {
    const secret = identity({ clientSecret: 'the-secret' })
    const impossible: [Partial<ClientOAuthOptions>, ClientIdentity, string[] | undefined, RegExp][] = [
      [{}, secret, ['tls_client_auth'], /accepts only tls_client_auth/],
      [{}, secret, ['private_key_jwt'], /set privateKey/],
      [{ tokenEndpointAuthMethod: 'private_key_jwt' }, secret, undefined, /set privateKey/],
      [{ tokenEndpointAuthMethod: 'client_secret_post' }, identity(), undefined, /set clientSecret/],
      [{}, identity({ tokenEndpointAuthMethod: 'private_key_jwt' }), undefined, /set privateKey/],
      [
        {},
        identity({ tokenEndpointAuthMethod: 'client_secret_jwt', clientSecret: 's' }),
        undefined,
        /clientAuthentication/,
      ],
    ]
    for (const [options, client, listed, message] of impossible) {
      expect(() => choose(options, client, listed), String(message))
        .to.throw(message)
        .with.property('code', 'invalid_options')
    }
  })

  it('R-64: sends only the parameters of the method, and no empty secret for a public client', async () => {
    const client = identity({ clientSecret: 's' })
    const post = await shown(choose({}, client, ['client_secret_post']), client)
    expect(Object.fromEntries(post.body)).to.deep.equal({ client_id: 'client', client_secret: 's' })
    const none = await shown(choose({}, identity(), ['client_secret_basic']), identity())
    expect([Object.fromEntries(none.body), none.authorization]).to.deep.equal([{ client_id: 'client' }, null])
    const custom = choose({ clientAuthentication: ({ headers }) => headers.set('authorization', 'Mine') }, client)
    expect([custom.method, (await shown(custom, client)).authorization]).to.deep.equal(['custom', 'Mine'])
    const broken = choose({ clientAuthentication: () => Promise.reject(new TypeError('no key')) }, client)
    expect((await failure(shown(broken, client))).code).to.equal('client_authentication_failed')
  })

  it('R-65: Basic keeps letters, digits and -._*, and form-encodes the rest', async () => {
    const basicOf = async (clientId: string, clientSecret: string) => {
      const client = identity({ clientId, clientSecret })
      const { authorization, body } = await shown(choose({}, client), client)
      expect([...body]).to.deep.equal([])
      return atob(authorization?.replace('Basic ', '') ?? '')
    }
    expect(await basicOf('pre-registered-client_1.*', 'a-secret_2.*')).to.equal(
      'pre-registered-client_1.*:a-secret_2.*',
    )
    expect(await basicOf('a b:c', 'é+%')).to.equal('a+b%3Ac:%C3%A9%2B%25')
    const decode = (text: string) => decodeURIComponent(text.replaceAll('+', ' '))
    const text = fc.string({ minLength: 1, unit: 'grapheme' })
    await fc.assert(
      fc.asyncProperty(text, text, async (clientId, clientSecret) => {
        const [id = '', secret = '', ...more] = (await basicOf(clientId, clientSecret)).split(':')
        expect([decode(id), decode(secret), more]).to.deep.equal([clientId, clientSecret, []])
      }),
      { numRuns: 200 },
    )
  })

  it('R-66: private_key_jwt has the issuer as audience, a new jti and one minute of validity', async () => {
    const client = identity()
    const assertions = await Promise.all(
      [1, 2].map(async () => {
        const chosen = choose({ privateKey: pem(KEYS.ES256.privateKey), kid: 'key-1' }, client)
        const { body, authorization } = await shown(chosen, client)
        expect([chosen.method, authorization, body.get('client_id')]).to.deep.equal(['private_key_jwt', null, 'client'])
        expect(body.get('client_assertion_type')).to.equal('urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
        const options = { complete: true, issuer: 'client', subject: 'client', audience: SERVER.issuer } as const
        return jwt.verify(body.get('client_assertion') ?? '', publicPem(KEYS.ES256.publicKey), options)
      }),
    )
    const [first, second] = assertions.map(({ payload }) => payload as jwt.JwtPayload)
    expect(assertions[0]?.header).to.include({ alg: 'ES256', kid: 'key-1' })
    const { exp = 0, iat = 0, aud, jti } = first ?? {}
    expect(exp - iat).to.be.within(1, 60)
    expect(aud).to.equal(SERVER.issuer)
    expect(jti).to.be.a('string').and.not.equal(second?.jti)
  })

  it('R-66: accepts keys as PEM, JWK or CryptoKey, of every common type', async () => {
    const accepted: string[] = []
    for (const [kind, { privateKey, publicKey }] of Object.entries(KEYS)) {
      const jwk = { ...privateKey.export({ format: 'jwk' }), kid: 'from-jwk' }
      const { key } = await importPrivateKey({ privateKey: pem(privateKey) })
      for (const given of [pem(privateKey), jwk, key]) {
        const client = identity()
        const { body } = await shown(choose({ privateKey: given as string }, client), client)
        const assertion = body.get('client_assertion') ?? ''
        expect(jwt.decode(assertion, { complete: true })?.header.alg).to.equal(kind)
        // jsonwebtoken knows no EdDSA: WebCrypto verifies that one.
        if (kind !== 'EdDSA') jwt.verify(assertion, publicPem(publicKey))
        else expect(await verifiesEd25519(assertion, publicKey)).to.equal(true)
        accepted.push(`${kind} ${given === jwk ? 'JWK' : given === key ? 'CryptoKey' : 'PEM'}`)
      }
    }
    expect(accepted).to.have.length(15)
    const { alg, kid } = await importPrivateKey({
      privateKey: { ...KEYS.RS256.privateKey.export({ format: 'jwk' }), kid: 'k', alg: 'RS256', use: 'enc' } as object,
      alg: 'PS384',
    })
    expect([alg, kid]).to.deep.equal(['PS384', 'k'])
  })

  it('R-66: rejects a key that cannot sign, with advice and without showing the key', async () => {
    const { privateKey, publicKey } = KEYS.ES256
    const sec1 = privateKey.export({ format: 'pem', type: 'sec1' }).toString()
    const der = pem(privateKey)
    const { key } = await importPrivateKey({ privateKey: der })
    const x25519 = generateKeyPairSync('x25519').privateKey
    const bad: [string, Parameters<typeof importPrivateKey>[0], RegExp][] = [
      ['no PEM', { privateKey: 'hello' }, /PKCS#8 PEM/],
      ['another PEM', { privateKey: sec1 }, /openssl pkcs8/],
      ['cut PEM', { privateKey: der.replace(/\n.{20}/, '\n') }, /could not be read/],
      ['another alg', { privateKey: der, alg: 'RS256' }, /could not be read as a RS256/],
      ['no alg', { privateKey: der, alg: 'HS256' }, /HS256, which cannot sign/],
      ['unknown kind', { privateKey: pem(x25519) }, /unsupported type|type is unsupported/],
      ['public JWK', { privateKey: publicKey.export({ format: 'jwk' }) as object }, /public JWK/],
      ['odd curve', { privateKey: x25519.export({ format: 'jwk' }) as object }, /unsupported type|type is unsupported/],
      ['CryptoKey of another alg', { privateKey: key, alg: 'RS256' }, /signs ES256, not RS256/],
    ]
    for (const [name, options, message] of bad) {
      const refused = await failure(importPrivateKey(options))
      expect(refused.message, name).to.match(message)
      expect(refused.code, name).to.equal('invalid_options')
      expect(inspect(refused, { depth: 9 }), name).to.not.include(der.split('\n')[1])
    }
  })

  it('R-64, R-66: authenticates with basic, post and private_key_jwt at a verifying server', async () => {
    const { as } = await startFakeServers()
    const publicKey = publicPem(KEYS.ES256.publicKey)
    as.addClient({ client_id: 'basic', client_secret: 'one-secret' })
    as.addClient({ client_id: 'post', client_secret: 'two-secret', token_endpoint_auth_method: 'client_secret_post' })
    as.addClient({ client_id: 'jwt', publicKey, token_endpoint_auth_method: 'private_key_jwt' })
    const attempt = async (options: Partial<ClientOAuthOptions> & { clientId: string }) => {
      const ctx = testContext({ grant: { type: 'client_credentials' }, ...options })
      const server = await discoverServer(ctx, as.issuer, false, signal)
      const { clientId, clientSecret } = options
      const client = identity({ clientId, issuer: server.issuer, ...(clientSecret && { clientSecret }) })
      return requestToken(ctx, { server, client, grantType: 'client_credentials', parameters: {} }, signal)
    }
    const privateKey = pem(KEYS.ES256.privateKey)
    expect((await attempt({ clientId: 'basic', clientSecret: 'one-secret' })).tokenType).to.equal('Bearer')
    expect((await attempt({ clientId: 'jwt', privateKey })).tokenType).to.equal('Bearer')
    as.settings.tokenEndpointAuthMethods = ['client_secret_post']
    expect((await attempt({ clientId: 'post', clientSecret: 'two-secret' })).tokenType).to.equal('Bearer')
    const other = pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
    const refused = await failure(attempt({ clientId: 'jwt', privateKey: other }))
    expect([refused.code, refused.retryable]).to.deep.equal(['invalid_client', false])
    expect(refused.message).to.include('privateKey')
  })
})

async function verifiesEd25519(assertion: string, publicKey: KeyObject): Promise<boolean> {
  const [header = '', payload = '', signature = ''] = assertion.split('.')
  const jwk = publicKey.export({ format: 'jwk' })
  const key = await crypto.subtle.importKey('jwk', jwk, { name: 'Ed25519' }, false, ['verify'])
  const signed = Buffer.from(`${header}.${payload}`)
  return crypto.subtle.verify('Ed25519', key, Buffer.from(signature, 'base64url'), signed)
}
