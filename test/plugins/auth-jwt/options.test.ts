import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { AuthJwtOptions } from '../../../plugins/auth-jwt/options.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { callAs, challengeHeader, readUser, startProtected } from '../../support/protected-host.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import {
  encode,
  inSeconds,
  makeKey,
  signText,
  signToken,
  startIssuer,
  stopIssuers,
  toJwk,
} from '../../support/test-issuer.ts'

after(async () => {
  await stopHosts()
  await stopIssuers()
})

const ISSUER = 'https://issuer.example'
const SECRET = 'a secret of tests, shared with the issuer'
/** Made with openssl, of a key that nobody kept. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIUatEk2L2DG95ON6q4V0nb8L7b03wwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjIwMTIxNTRaGA8yMTI2MTAyOTAxMjE1
NFowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABA2i
7hPYZVR+t9mPNp48XvB3ljxDYNd+hxyU9Sn0M4kUR0S6299ZGHDveqBb8RTV72lq
mbIM7124jW+E8crqmAyjUzBRMB0GA1UdDgQWBBSKTiXYplXuY8SpNzrdvwn8n5BT
RTAfBgNVHSMEGDAWgBSKTiXYplXuY8SpNzrdvwn8n5BTRTAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIEHC/WuLqU53nj6bFeWAuHNhzcUScypmrgWB
pIF3HtlxAiEA4juCy9NrSIZz8HA0JbyL0xki04Ecvps8dMc+/SgnMe4=
-----END CERTIFICATE-----
`
const pemOf = (key: ReturnType<typeof makeKey>) => key.publicKey.export({ type: 'spki', format: 'pem' }).toString()

const claimsFor = (aud: string, changes: object = {}) => ({
  iss: ISSUER,
  sub: 'ann',
  aud,
  exp: inSeconds(300),
  ...changes,
})

function signBySecret(claims: object, secret: string, alg = 'HS256'): string {
  const text = `${encode({ alg, typ: 'JWT' })}.${encode(claims)}`
  return `${text}.${signText(text, alg, secret)}`
}

describe('auth-jwt: options at startup', () => {
  const config = (options: AuthJwtOptions) => ({
    toolsets: { all: [] },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, 'auth-jwt': options },
  })
  const key = makeKey('a', 'ES256')
  const rsa = makeKey('r2', 'RS256')
  const der = (type: 'spki' | 'pkcs1') => rsa.publicKey.export({ type, format: 'der' }).toString('base64')
  const publicTexts: ReadonlyArray<readonly [string, string]> = [
    ['a public key in PEM', pemOf(rsa)],
    ['one with its line breaks written out', pemOf(rsa).replaceAll('\n', '\\n')],
    ['an EC key in PEM', pemOf(key)],
    ['a certificate', CERTIFICATE],
    ['a certificate in one line of base64', CERTIFICATE.split('\n').slice(1, -2).join('')],
    ['a JWK', JSON.stringify(toJwk(rsa))],
    ['a set of JWKs', JSON.stringify({ keys: [toJwk(rsa)] })],
    ['a JWK in base64', Buffer.from(JSON.stringify(toJwk(rsa))).toString('base64')],
    ['PEM in base64', Buffer.from(pemOf(rsa)).toString('base64')],
    ['SPKI in base64', der('spki')],
    ['PKCS #1 in base64', der('pkcs1')],
    ['an SSH public key', `ssh-rsa AAAA${'B'.repeat(360)} ann@example`],
  ]
  type Row = readonly [string, AuthJwtOptions, string]
  const insteadOfSecret = ([what, secret]: readonly [string, string]): Row[] => [
    [`with ${what} as its secret`, { issuer: ISSUER, secret }, 'anyone who has it could sign tokens'],
    [
      `with ${what} as the secret of one of several`,
      { issuers: [{ authority: 'https://b.example' }, { issuer: ISSUER, secret }] },
      "plugins['auth-jwt'].issuers[1].secret: ",
    ],
  ]
  const rows: readonly Row[] = [
    ['with a secret of nobody', { secret: SECRET }, 'secret requires issuer'],
    ...publicTexts.flatMap(insteadOfSecret),
    ['with a secret that a line break makes long enough', { issuer: ISSUER, secret: `${'x'.repeat(31)}\n` }, 'shorter'],
    ['with RS algorithms for a secret', { issuer: ISSUER, secret: SECRET, algorithms: ['RS256'] }, 'algorithms'],
    ['with a symmetric JWK', { issuer: ISSUER, keys: [{ kty: 'oct', k: 'AAAA' }] }, 'secret'],
    ['with a key that is none', { issuer: ISSUER, keys: ['-----BEGIN nothing'] }, 'cannot be read'],
    ['with a short RSA key', { issuer: ISSUER, keys: [toJwk(makeKey('r', 'RS256', { bits: 1024 }))] }, '1024 bits'],
    [
      'with a URL that cannot be parsed',
      { issuer: ISSUER, jwksUri: 'https://login.example.com:99999/jwks' },
      'jwksUri',
    ],
    ['with alg none', { authority: ISSUER, algorithms: ['none' as 'RS256'] }, 'algorithms'],
  ]
  for (const [what, options, words] of rows) {
    it(`${what}: fails startup with advice`, () => expectStopped(config(options), words))
  }

  it('accepts valid HMAC secrets', async () => {
    const fine = [
      SECRET,
      'q'.repeat(44),
      randomBytes(32).toString('base64'),
      randomBytes(512).toString('hex'),
      randomBytes(300).toString('base64'),
    ]
    for (const secret of fine) await startHost(config({ issuer: ISSUER, secret, audience: 'me' }))
  })

  it('can be one of several authentication plugins of a route, in the order of the config', async () => {
    const jwt = { issuer: ISSUER, secret: SECRET, audience: 'me' }
    const introspection = { endpoint: 'https://a.example/i', clientId: 'a', clientSecret: 'b', audience: 'me' }
    const plugins = { ...config({}).plugins, 'auth-introspection': introspection, 'auth-jwt': jwt }
    const one = { toolsets: 'all', plugins: { 'auth-introspection': false as const } }
    const { host } = await startHost({ ...config({}), plugins, routes: { '/a': one, '/b': { toolsets: 'all' } } })
    expect(host.inspect('/a')?.authenticators).to.deep.equal(['auth-jwt'])
    expect(host.inspect('/b')?.authenticators).to.deep.equal(['auth-jwt', 'auth-introspection'])
  })

  it('requires publicUrl or audience if the host listens off loopback', async () => {
    const http = { host: '0.0.0.0' }
    await expectStopped({ ...config({ authority: ISSUER }), http }, /http\.publicUrl.*plugins\.auth-jwt\.audience/)
  })

  it('warns about each disabled check', async () => {
    const validate = { issuer: false, audience: false, lifetime: false, signingKey: false }
    const { log } = await startProtected({ 'auth-jwt': { issuer: ISSUER, keys: [toJwk(key)], validate } })
    const warned = log.filter(({ level, check }) => level === 'warn' && check !== undefined).map(({ check }) => check)
    expect(warned).to.have.members(['issuer', 'audience', 'lifetime', 'signingKey'])
    const quiet = await startProtected({ 'auth-jwt': { issuer: ISSUER, keys: [toJwk(key)] } })
    expect(quiet.log.filter(({ level, plugin }) => level === 'warn' && plugin !== undefined)).to.deep.equal([])
  })
})

describe('auth-jwt: keys in the config', () => {
  it('can be JWKs and PEM texts; a token without kid is tried with each', async () => {
    const [a, b] = [makeKey('a'), makeKey('b', 'RS256')]
    const { guarded } = await startProtected({ 'auth-jwt': { issuer: ISSUER, keys: [toJwk(a), pemOf(b)] } })
    for (const key of [a, b]) {
      for (const header of [{}, { kid: undefined }]) {
        expect((await callAs(guarded, signToken(claimsFor(guarded), key, header))).status, key.kid).to.equal(200)
      }
    }
    expect((await callAs(guarded, signToken(claimsFor(guarded), makeKey('a')))).status).to.equal(401)
  })

  it('can be a secret, which no public key algorithm accepts', async () => {
    const { guarded } = await startProtected({ 'auth-jwt': { issuer: ISSUER, secret: SECRET } })
    for (const alg of ['HS256', 'HS384', 'HS512']) {
      expect((await callAs(guarded, signBySecret(claimsFor(guarded), SECRET, alg))).status, alg).to.equal(200)
    }
    expect((await callAs(guarded, signBySecret(claimsFor(guarded), `${SECRET}.`))).status).to.equal(401)
    expect((await callAs(guarded, signToken(claimsFor(guarded), makeKey('a')))).status).to.equal(401)
  })

  it('belong to one issuer each: a public key is never used as an HMAC secret', async () => {
    const rsa = makeKey('r', 'RS256')
    const { guarded } = await startProtected({
      'auth-jwt': {
        issuers: [
          { issuer: ISSUER, keys: [pemOf(rsa)] },
          { issuer: 'https://shared.example', secret: SECRET },
        ],
      },
    })
    const shared = { iss: 'https://shared.example' }
    expect((await callAs(guarded, signBySecret(claimsFor(guarded, shared), SECRET))).status).to.equal(200)
    expect((await callAs(guarded, signToken(claimsFor(guarded), rsa))).status).to.equal(200)
    const attacks = [
      signBySecret(claimsFor(guarded), pemOf(rsa)),
      signBySecret(claimsFor(guarded), SECRET),
      signBySecret(claimsFor(guarded, shared), pemOf(rsa)),
      signToken(claimsFor(guarded, shared), rsa),
    ]
    for (const token of attacks) expect((await callAs(guarded, token)).status).to.equal(401)
  })
})

describe('auth-jwt: algorithms in the config', () => {
  it('rejects tokens with other algorithms, named in the error', async () => {
    const issuer = await startIssuer({ keys: [makeKey('es'), makeKey('rs', 'RS256')] })
    const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url, algorithms: ['RS256'] } })
    const [es, rs] = issuer.keys
    if (!es || !rs) throw new Error('two keys were made')
    expect((await callAs(guarded, signToken(issuer.claims(guarded), rs))).status).to.equal(200)
    const answer = await callAs(guarded, signToken(issuer.claims(guarded), es))
    expect(challengeHeader(answer)).to.match(/ES256.*RS256/)
  })
})

describe('auth-jwt: disabled checks', () => {
  const key = makeKey('a')
  const start = (validate: AuthJwtOptions['validate'] & object) =>
    startProtected({ 'auth-jwt': { issuer: ISSUER, keys: [toJwk(key)], validate } })

  it('disables only the audience check', async () => {
    const { guarded } = await start({ audience: false })
    expect((await callAs(guarded, signToken(claimsFor('other'), key))).status).to.equal(200)
    expect((await callAs(guarded, signToken(claimsFor('other', { exp: 1 }), key))).status).to.equal(401)
    expect((await callAs(guarded, signToken(claimsFor('other', { iss: 'x' }), key))).status).to.equal(401)
  })

  it('disables only the lifetime check (expiry)', async () => {
    const { guarded } = await start({ lifetime: false })
    expect((await callAs(guarded, signToken(claimsFor(guarded, { exp: 1 }), key))).status).to.equal(200)
    expect((await callAs(guarded, signToken(claimsFor(guarded, { exp: undefined }), key))).status).to.equal(200)
    expect((await callAs(guarded, signToken(claimsFor('other'), key))).status).to.equal(401)
  })

  it('disables only the issuer check, and takes the issuer of the user from the token', async () => {
    const { guarded } = await start({ issuer: false })
    const user = readUser(await callAs(guarded, signToken(claimsFor(guarded, { iss: 'https://b.example' }), key)))
    expect(user.issuer).to.equal('https://b.example')
    const foreign = makeKey('a')
    expect((await callAs(guarded, signToken(claimsFor(guarded), foreign))).status).to.equal(401)
  })

  it('never disables the signature check: without signingKey any key of the issuer is accepted', async () => {
    const { guarded } = await start({ signingKey: false })
    expect((await callAs(guarded, signToken(claimsFor(guarded), key, { kid: 'other' }))).status).to.equal(200)
    expect((await callAs(guarded, signToken(claimsFor(guarded), makeKey('a')))).status).to.equal(401)
  })
})
