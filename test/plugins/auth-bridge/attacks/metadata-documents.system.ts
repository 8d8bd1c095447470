// Tests that client metadata documents cannot cause SSRF or overload (draft-ietf-oauth-client-id-metadata-document
// section 6, RFC 9700 4.13).
import { expect } from 'chai'
import { stopAll } from '../../../cli/run-cli.ts'
import { removeFolders } from '../../../config/folder.ts'
import { eventually } from '../../../support/eventually.ts'
import { REDIRECT } from '../../../support/form-browser.ts'
import {
  type IdentityProvider,
  startIdentityProvider,
  stopIdentityProviders,
} from '../../../support/identity-provider.ts'
import { encode, inSeconds, makeKey, signToken, toJwk } from '../../../support/test-issuer.ts'
import { errorIn, post, send } from './attacker.ts'
import { type Documents, goodAt, HUGE, idAt, NAME, startDocuments, startHostOf } from './document-server.ts'
import { Tally } from './tally.ts'

type Host = Awaited<ReturnType<typeof startHostOf>>

let address = 0
const fromAnother = () => {
  address += 1
  return { 'X-Forwarded-For': `198.51.${address >> 8}.${address & 255}` }
}

const ask = ({ issuer, resource }: Host, client_id: string, headers: Record<string, string> = fromAnother()) =>
  send(
    `${issuer}/authorize?${new URLSearchParams({
      ...{ client_id, resource, redirect_uri: REDIRECT, response_type: 'code' },
      ...{ code_challenge: 'a'.repeat(43), code_challenge_method: 'S256' },
    })}`,
    { headers },
  )

describe('auth-bridge attacks: client metadata documents (SSRF)', () => {
  let idp: IdentityProvider
  let documents: Documents
  /** Another server on this machine that nobody may reach. */
  let inner: Documents
  let guarded: Host
  let open: Host

  before(async () => {
    idp = await startIdentityProvider()
    documents = await startDocuments()
    inner = await startDocuments()
    guarded = await startHostOf(idp, documents)
    open = await startHostOf(idp, documents, { open: documents.port })
  })
  after(async () => {
    await stopAll()
    await Promise.all([documents.stop(), inner.stop(), stopIdentityProviders()])
    await removeFolders()
  })

  it('does not fetch loopback and private addresses in any spelling', async () => {
    const tally = new Tally('SSRF: private addresses')
    const { port } = documents
    const here = [
      ...[
        '127.0.0.1',
        '127.1',
        '127.0.0.2',
        '2130706433',
        '0x7f000001',
        '0x7f.1',
        '0177.0.0.1',
        '017700000001',
        '0.0.0.0',
        '0',
      ],
      ...[
        'localhost',
        'localhost.',
        'LOCALHOST',
        'a.localhost',
        '[::1]',
        '[0:0:0:0:0:0:0:1]',
        '[::]',
        '[::ffff:127.0.0.1]',
      ],
      ...[
        '[::ffff:7f00:1]',
        '[::ffff:0:0]',
        '[::127.0.0.1]',
        '①②⑦.⓪.⓪.①',
        '127。0。0。1',
        'ｌocalhost',
        '%31%32%37.0.0.1',
      ],
    ]
    const elsewhere = [
      ...[
        '10.0.0.1',
        '10.255.255.255',
        '172.16.0.1',
        '172.31.255.255',
        '192.168.0.1',
        '169.254.169.254',
        '169.254.170.2',
      ],
      ...[
        '100.64.0.1',
        '100.100.100.200',
        '192.0.0.1',
        '198.18.0.1',
        '224.0.0.1',
        '255.255.255.255',
        '2852039166',
        '0xa9fea9fe',
      ],
      ...[
        '[fc00::1]',
        '[fd00:ec2::254]',
        '[fe80::1]',
        '[64:ff9b::7f00:1]',
        '[64:ff9b::a9fe:a9fe]',
        '[2002:7f00:1::]',
        '[2002:7f00:1::5efe:808:808]',
        '[4000::5efe:808:808]',
        '[ff02::1]',
      ],
    ]
    const ids = [
      ...here.map(host => `https://${host}:${port}/good`),
      ...elsewhere.map(host => `https://${host}/latest/meta-data`),
      ...[
        'http://127.0.0.1/x',
        `http://127.0.0.1:${port}/good`,
        `https://x@127.0.0.1:${port}/good`,
        'file:///etc/passwd',
      ],
      ...[
        `https:127.0.0.1:${port}/good`,
        `https:/127.0.0.1:${port}/good`,
        `https:\\\\127.0.0.1:${port}/good`,
        'gopher://127.0.0.1/',
      ],
      ...['metadata.google.internal', 'metadata', 'kubernetes.default.svc', 'host.docker.internal'].map(
        name => `https://${name}/x`,
      ),
    ]
    const answers = await Promise.all(ids.map(id => ask(guarded, id)))
    for (const [index, { status, location }] of answers.entries())
      tally.add(ids[index] ?? '', status === 400 && location === undefined, status)
    // Who asks must not learn either which ports are open.
    expect(new Set(answers.map(errorIn)).size).to.equal(1)
    expect(documents.requests).to.deep.equal([])
    expect(documents.connections, 'connections').to.equal(0)
    tally.end(52)
  })

  it('resists DNS rebinding from a public to a loopback address', async () => {
    const tally = new Tally('SSRF: DNS rebinding')
    for (const path of ['/a', '/b', '/c']) {
      const { status, location } = await ask(guarded, idAt(documents, path))
      tally.add(path, status === 400 && location === undefined, status)
    }
    expect(documents.requests, 'requests that the server got').to.deep.equal([])
    expect(documents.connections, 'connections').to.equal(0)
    tally.end(3)
  })

  it('does not follow redirects', async () => {
    const tally = new Tally('SSRF: redirects')
    for (const status of [301, 302, 303, 307, 308]) {
      const got = await ask(open, idAt(documents, `/redirect${status}`))
      tally.add(String(status), got.status === 400, got.status)
    }
    expect(documents.requests.filter(path => path === '/good')).to.deep.equal([])
    tally.end(5)
  })

  it('stops slow, silent, oversized and compressed endless responses', async () => {
    const tally = new Tally('documents that never end')
    expect((await ask(open, idAt(documents, '/warm-up'))).status, 'a document as it should be').to.equal(303)
    const before = open.memory()
    const [slow, silent, huge, bomb] = await Promise.all(
      ['/slow', '/silent', '/huge', '/bomb'].map(path => ask(open, idAt(documents, path))),
    )
    for (const [what, got] of Object.entries({ slow, silent, huge, bomb }))
      tally.add(what, got?.status === 400, got?.status)
    await eventually(
      'all connections are ended',
      () => documents.cut,
      cut => cut >= 3,
    )
    const grown = open.memory() - before
    tally.add('slow is ended', documents.drips <= 5, documents.drips)
    tally.add('huge is ended', documents.taken < HUGE / 4, documents.taken)
    tally.add('memory', grown < 64 * 1_048_576, grown)
    tally.end(7)
  })

  it('answers each request for a document whose server upgrades the protocol', async () => {
    const tally = new Tally('documents with a protocol upgrade')
    // Requests at once share one fetch; the last one finds nothing pending.
    const answers = await Promise.all(Array.from({ length: 3 }, () => ask(open, idAt(documents, '/upgrade'))))
    answers.push(await ask(open, idAt(documents, '/upgrade')))
    for (const got of answers) tally.add('upgrade', got.status === 400, got.status)
    tally.end(4)
  })

  it('rejects invalid documents', async () => {
    const tally = new Tally('documents that are none, or another’s')
    const bent: Record<string, unknown> = {
      'no JSON': '{',
      nothing: '',
      null: 'null',
      'a list': [],
      'a text': '"x"',
      HTML: '<html></html>',
      'another client_id': { client_id: `https://${NAME}/else` },
      'no client_id': { client_id: undefined },
      'a list of client_ids': { client_id: [idAt(documents, '/x')] },
      'a secret': { client_secret: 'x' },
      'an empty secret': { client_secret: '' },
      'a secret to authenticate by': { token_endpoint_auth_method: 'client_secret_basic' },
      'another place': { redirect_uris: ['https://evil.example/cb'] },
      'one place more': { redirect_uris: [REDIRECT, 'https://evil.example/cb'] },
      'no places': { redirect_uris: [] },
      'places that are no list': { redirect_uris: REDIRECT },
      'a script for a page': { client_uri: 'javascript:alert(1)' },
      'a list for a method': { token_endpoint_auth_method: [{ toString: 'x' }] },
      'a list for an algorithm': { token_endpoint_auth_signing_alg: [{ toString: 'x' }] },
      'an object for a name': { client_name: { toString: 'x' } },
      'a long name': { client_name: 'x'.repeat(1_000) },
      'sector of another': { sector_identifier_uri: 'https://evil.example/s' },
    }
    for (const [index, [what, change]] of Object.entries(bent).entries()) {
      const path = `/bent-${index}`
      const isChange = typeof change === 'object' && change !== null && !Array.isArray(change)
      documents.said.set(path, isChange ? { ...goodAt(documents, path), ...change } : change)
      const got = await ask(open, idAt(documents, path))
      // What is left out before anything reads it does no harm.
      const isIgnored = what === 'sector of another' && got.status === 303
      tally.add(what, (got.status === 400 && got.location === undefined) || isIgnored, got.status)
    }
    tally.end(22)
  })

  it('does not fetch jwks_uri at a private address', async () => {
    const tally = new Tally('SSRF: jwks_uri')
    const key = makeKey('client')
    for (const host of ['127.0.0.1', 'localhost', '[::1]', NAME, '10.0.0.1', '169.254.169.254', '168.63.129.16']) {
      const path = `/keys-of-${encode(host)}`
      const jwks_uri = `https://${host}:${inner.port}/jwks`
      const method = {
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'ES256',
        jwks_uri,
      }
      documents.said.set(path, { ...goodAt(documents, path), ...method })
      const client_id = idAt(documents, path)
      const claims = {
        iss: client_id,
        sub: client_id,
        aud: open.issuer,
        jti: path,
        exp: inSeconds(60),
        iat: inSeconds(0),
      }
      const assertion = {
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: signToken(claims, key, { typ: 'JWT' }),
      }
      const form = { client_id, grant_type: 'refresh_token', refresh_token: 'x', ...assertion }
      const got = await post(`${open.issuer}/token`, form, fromAnother())
      tally.add(host, got.status >= 400 && got.status < 500 && errorIn(got) !== 'invalid_grant', got.text)
    }
    expect(inner.connections, 'connections to the server of the keys').to.equal(0)
    tally.end(7)
  })

  it('limits key set fetches per address, and fetches one key set once for many token requests', async () => {
    const tally = new Tally('key set flood of one address')
    const key = makeKey('client')
    const headers = fromAnother()
    const clientOf = (path: string) => {
      const jwks_uri = idAt(documents, `/jwks${path}`)
      const method = {
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'ES256',
        jwks_uri,
      }
      documents.said.set(path, { ...goodAt(documents, path), ...method })
      documents.said.set(`/jwks${path}`, { keys: [toJwk(key)] })
      return idAt(documents, path)
    }
    let count = 0
    const redeem = (client_id: string) => {
      count += 1
      const claims = { iss: client_id, sub: client_id, aud: open.issuer, jti: `flood-${count}`, exp: inSeconds(60) }
      const form = {
        ...{ client_id, grant_type: 'refresh_token', refresh_token: 'x' },
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: signToken({ ...claims, iat: inSeconds(0) }, key, { typ: 'JWT' }),
      }
      return post(`${open.issuer}/token`, form, headers)
    }
    const before = documents.requests.length
    const one = clientOf('/one-key-set')
    const answers = await Promise.all(Array.from({ length: 60 }, () => redeem(one)))
    for (const got of answers) tally.add('authenticated', errorIn(got) === 'invalid_grant', got.text)
    expect(documents.requests.slice(before).sort()).to.deep.equal(['/jwks/one-key-set', '/one-key-set'])
    const many = Array.from({ length: 60 }, (_, index) => clientOf(`/many-${index}`))
    await Promise.all(many.map(redeem))
    tally.add('fetches', documents.requests.length - before <= 30, documents.requests.length - before)
    tally.end(61)
  })

  it('limits document fetches per address, regardless of forwarding headers', async () => {
    const tally = new Tally('document flood of one address')
    const flooded = await startHostOf(idp, documents, { open: documents.port, proxied: false })
    const before = documents.requests.length
    const sent = Array.from({ length: 100 }, (_, index) => {
      const headers: Record<string, string> = index % 2 ? fromAnother() : {}
      return ask(flooded, idAt(documents, `/flood-${index}`), headers)
    })
    const answers = await Promise.all(sent)
    const fetched = documents.requests.length - before
    expect(fetched).to.be.within(1, 30)
    for (const { status } of answers.filter(answer => answer.status !== 303))
      tally.add('beyond the limit', status === 400 || status === 429, status)
    tally.end(70)
  })
})
