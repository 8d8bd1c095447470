// Tests a table of token attacks: each must be rejected for its own reason.
import { expect } from 'chai'
import { callAs, challengeHeader, type ProtectedHost, startProtected } from '../../support/protected-host.ts'
import { requestBytes, sendRaw } from '../../support/raw-http.ts'
import { modernRequest, type RpcAnswer } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import {
  encode,
  inSeconds,
  makeKey,
  signText,
  signToken,
  startIssuer,
  stopIssuers,
  type TestIssuer,
  type TestKey,
  toJwk,
} from '../../support/test-issuer.ts'

const rsa = makeKey('rsa', 'RS256')
const ec = makeKey('ec')
const foreign = makeKey('ec')
const short = makeKey('short', 'RS256', { bits: 1024 })

let issuer: TestIssuer
let other: TestIssuer
let thief: TestIssuer
let host: ProtectedHost
before(async () => {
  issuer = await startIssuer({ keys: [rsa, ec, short] })
  other = await startIssuer({ keys: [makeKey('of-other')] })
  thief = await startIssuer({ keys: [foreign] })
  host = await startProtected({ 'auth-jwt': { issuers: [{ authority: issuer.url }, { authority: other.url }] } })
})
after(async () => {
  await stopHosts()
  await stopIssuers()
})

const good = (changes: Record<string, unknown> = {}) => issuer.claims(host.guarded, changes)
const withHeader = (header: Record<string, unknown>, key: TestKey = ec) => signToken(good(), key, header)
const withClaims = (changes: Record<string, unknown>) => signToken(good(changes), ec)
const pem = (key: TestKey) => key.publicKey.export({ type: 'spki', format: 'pem' }).toString()
const unsigned = (alg: string) => `${encode({ alg, typ: 'JWT' })}.${encode(good())}.`

function confused(alg: string, secret: string, kid = 'rsa') {
  const text = `${encode({ alg, typ: 'JWT', kid })}.${encode(good())}`
  return `${text}.${signText(text, alg, secret)}`
}

/** The parts of a good token, put together otherwise. */
function rebuilt(change: (parts: [string, string, string]) => string[]): string {
  const [header = '', claims = '', signature = ''] = signToken(good(), ec).split('.')
  return change([header, claims, signature]).join('.')
}

/** The same bytes in other letters: the last letter of a signature has bits that no byte has. */
function looseBits(text: string): string {
  const bytes = Buffer.from(text, 'base64url').toString('base64url')
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  return `${bytes.slice(0, -1)}${letters[letters.indexOf(bytes.at(-1) ?? '') + 1]}`
}

type Row = readonly [attack: string, token: () => string, words: RegExp]

const HEADERS: readonly Row[] = [
  ['alg none', () => unsigned('none'), /not signed/],
  ['alg NoNe', () => unsigned('NoNe'), /not signed/],
  ['alg none with a signature', () => rebuilt(([, c, s]) => [encode({ alg: 'none' }), c, s]), /not signed/],
  ['no alg', () => rebuilt(([, c, s]) => [encode({ typ: 'JWT' }), c, s]), /not signed/],
  ['signature cut off', () => rebuilt(([h, c]) => [h, c, '']), /not signed/],
  ['RSA public key (PEM) as HS256 secret', () => confused('HS256', pem(rsa)), /algorithm HS256/],
  ['EC public key (PEM) as HS512 secret', () => confused('HS512', pem(ec), 'ec'), /algorithm HS512/],
  ['empty HS256 secret', () => confused('HS256', ''), /algorithm HS256/],
  ['RS256 header over an EC signature', () => withHeader({ alg: 'RS256' }), /key/],
  ['alg as a list', () => withHeader({ alg: ['ES256'] }), /not signed/],
  ['alg with a line break', () => withHeader({ alg: 'ES256\r\nX-Evil: 1' }), /algorithm/],
  ['EdDSA', () => signToken(good(), makeKey('ed', 'EdDSA')), /key/],
  ['an RSA key of 1,024 bits', () => signToken(good(), short), /key/],
  ['kid: path traversal', () => withHeader({ kid: '../../../../dev/null' }, foreign), /key/],
  ['kid: URL', () => withHeader({ kid: `${thief.url}/jwks` }, foreign), /key/],
  ['kid: SQL', () => withHeader({ kid: "x' UNION SELECT 'key' --" }, foreign), /key/],
  ['kid: __proto__', () => withHeader({ kid: '__proto__' }, foreign), /key/],
  ['kid: an object', () => withHeader({ kid: { $ne: null } }), /kid/],
  ['kid of another key of the issuer', () => withHeader({ kid: 'rsa' }), /key/],
  ['our kid, their key', () => signToken(good(), foreign), /signature/],
  ['no kid, their key', () => withHeader({ kid: undefined }, foreign), /signature/],
  ['jku', () => withHeader({ jku: `${thief.url}/jwks` }, foreign), /signature/],
  ['x5u', () => withHeader({ x5u: `${thief.url}/jwks` }, foreign), /signature/],
  ['jwk', () => withHeader({ jwk: toJwk(foreign) }, foreign), /signature/],
  ['x5c', () => withHeader({ x5c: [pem(foreign)] }, foreign), /signature/],
  ['crit', () => withHeader({ crit: ['exp'] }), /crit/],
  ['crit, empty', () => withHeader({ crit: [] }), /crit/],
  ['crit b64', () => withHeader({ crit: ['b64'], b64: false }), /crit/],
  ['typ: ID token', () => withHeader({ typ: 'id+jwt' }), /typ/],
  ['typ: logout token', () => withHeader({ typ: 'logout+jwt' }), /typ/],
  ['typ: DPoP proof', () => withHeader({ typ: 'dpop+jwt' }), /typ/],
  ['typ: client assertion', () => withHeader({ typ: 'client-authentication+jwt' }), /typ/],
  ['typ: a number', () => withHeader({ typ: 1 }), /typ/],
]

const CLAIMS: readonly Row[] = [
  ['expired', () => withClaims({ exp: inSeconds(-300) }), /expired/],
  ['no exp', () => withClaims({ exp: undefined }), /\(exp\)/],
  ['exp as text', () => withClaims({ exp: String(inSeconds(300)) }), /\(exp\)/],
  ['exp null', () => withClaims({ exp: null }), /\(exp\)/],
  [
    'exp beyond all numbers',
    () => signToken(JSON.stringify(good({ exp: 0 })).replace('"exp":0', '"exp":1e999'), ec),
    /\(exp\)/,
  ],
  ['not yet valid', () => withClaims({ nbf: inSeconds(300) }), /nbf/],
  ['nbf as text', () => withClaims({ nbf: 'now' }), /nbf/],
  ['issued in the future', () => withClaims({ iat: inSeconds(300) }), /iat/],
  ['iat as text', () => withClaims({ iat: 'today' }), /iat/],
  ['no subject, no client', () => withClaims({ sub: undefined, client_id: undefined }), /subject/],
  ['empty subject, no client', () => withClaims({ sub: '', client_id: undefined }), /subject/],
  ['a subject that is no text', () => withClaims({ sub: { id: 1 } }), /subject/],
  ['ID token: nonce', () => withClaims({ nonce: 'n' }), /nonce/],
  ['ID token: at_hash', () => withClaims({ at_hash: 'h' }), /at_hash/],
  ['wrong issuer', () => withClaims({ iss: 'https://evil.example' }), /issuer/],
  ['no issuer', () => withClaims({ iss: undefined }), /issuer/],
  ['issuer with a slash more', () => withClaims({ iss: `${issuer.url}/` }), /issuer/],
  ['issuers as a list', () => withClaims({ iss: [issuer.url] }), /issuer/],
  ['issuer __proto__', () => withClaims({ iss: '__proto__' }), /issuer/],
  ["another issuer's key, our issuer's name", () => signToken(good(), other.keys[0] ?? foreign), /key/],
  ["our issuer's key, another issuer's name", () => withClaims({ iss: other.url }), /key/],
  ['wrong audience', () => withClaims({ aud: 'https://other.example' }), /audience/],
  ['audience of another route', () => withClaims({ aud: host.open }), /audience/],
  ['audience that begins like ours', () => withClaims({ aud: `${host.guarded}.evil.example` }), /audience/],
  ['no audience', () => withClaims({ aud: undefined }), /audience/],
  ['audience as an object', () => withClaims({ aud: { [host.guarded]: true } }), /audience/],
]

const ENCODINGS: readonly Row[] = [
  ['tampered claims', () => rebuilt(([h, , s]) => [h, encode(good({ sub: 'root' })), s]), /signature/],
  ['tampered signature', () => rebuilt(([h, c, s]) => [h, c, `${s[0] === 'A' ? 'B' : 'A'}${s.slice(1)}`]), /signature/],
  ['signature of nulls', () => rebuilt(([h, c]) => [h, c, Buffer.alloc(64).toString('base64url')]), /signature/],
  ['padding', () => rebuilt(([h, c, s]) => [h, c, `${s}==`]), /encoding/],
  ['loose bits in the signature', () => rebuilt(([h, c, s]) => [h, c, looseBits(s)]), /encoding/],
  ['the other base64 alphabet', () => rebuilt(([h, c]) => [h, c, '+/+/']), /encoding/],
  ['an empty header', () => rebuilt(([, c, s]) => ['', c, s]), /encoding/],
  ['two parts', () => rebuilt(([h, c]) => [h, c]), /JWT/],
  ['five parts (JWE)', () => rebuilt(([h, c, s]) => [h, c, s, c, s]), /JWT/],
  ['claims that are no JSON', () => signToken('sub=root', ec), /JSON/],
  ['claims that are a list', () => signToken('[]', ec), /JSON/],
  ['claims that are null', () => signToken('null', ec), /JSON/],
  [
    'invalid UTF-8 in the claims',
    () => rebuilt(([h, , s]) => [h, Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url'), s]),
    /JSON/,
  ],
  ['a line break in the token', () => rebuilt(([h, c, s]) => [h, `${c}%0a`, s]), /contains no bearer token/],
  ['an oversized token', () => withClaims({ pad: 'x'.repeat(9_500) }), /longer than/],
  ['an opaque token', () => 'c2VjcmV0', /JWT/],
]

const descriptionIn = (answer: RpcAnswer) =>
  /error_description="([^"]*)"/.exec(challengeHeader(answer) ?? '')?.[1] ?? ''

describe('auth-jwt: token attacks', () => {
  it('rejects every forged or invalid token with 401 and the matching reason', async () => {
    const control = await callAs(host.guarded, signToken(good(), ec))
    expect(control.status, 'a good token').to.equal(200)
    const wrong: string[] = []
    for (const [attack, token, words] of [...HEADERS, ...CLAIMS, ...ENCODINGS]) {
      const answer = await callAs(host.guarded, token())
      const description = descriptionIn(answer)
      const refused = answer.status === 401 && challengeHeader(answer)?.includes('error="invalid_token"')
      if (!refused || !words.test(description)) wrong.push(attack)
    }
    expect(wrong).to.deep.equal([])
  })

  it("never contacts the attacker's server named in headers or claims (jku, x5u, iss)", () => {
    expect(thief.asked).to.deep.equal([])
  })

  it('rejects duplicate headers, tokens in the query or body, and oversized headers', async () => {
    const token = signToken(good(), ec)
    const { headers, body } = modernRequest('tools/call', { name: 'whoami' })
    const raw = (change: { path?: string; authorization?: string | string[] }, text = body) =>
      sendRaw(
        host.guarded,
        requestBytes(host.guarded, text, {
          path: change.path ?? '/guarded',
          headers: { ...headers, Authorization: change.authorization },
        }),
      )
    const rows = [
      ['two Authorization headers, good first', await raw({ authorization: [`Bearer ${token}`, 'Bearer x'] }), 400],
      ['two Authorization headers, good last', await raw({ authorization: ['Bearer x', `Bearer ${token}`] }), 400],
      ['a good token twice', await raw({ authorization: [`Bearer ${token}`, `Bearer ${token}`] }), 400],
      ['Basic, then Bearer', await raw({ authorization: ['Basic YTpi', `Bearer ${token}`] }), 400],
      ['Bearer, then Basic', await raw({ authorization: [`Bearer ${token}`, 'Basic YTpi'] }), 400],
      ['a token in the query', await raw({ path: `/guarded?access_token=${token}` }), 400],
      ['the name encoded', await raw({ path: `/guarded?access%5Ftoken=${token}` }), 400],
      ['a token in the body', await raw({}, body.replace('{', `{"access_token":"${token}",`)), 401],
      ['a list of tokens', await raw({ authorization: `Bearer ${token},${token}` }), 400],
      ['Bearer and nothing', await raw({ authorization: 'Bearer' }), 401],
      ['a tab in the place of the space', await raw({ authorization: `Bearer\t${token}` }), 401],
      ['no scheme', await raw({ authorization: token }), 401],
      ['a header of 20 kB', await raw({ authorization: `Bearer ${'x'.repeat(20_000)}` }), 431],
    ] as const
    expect(rows.map(([attack, { status }]) => [attack, status])).to.deep.equal(
      rows.map(([attack, , status]) => [attack, status]),
    )
  })
})
