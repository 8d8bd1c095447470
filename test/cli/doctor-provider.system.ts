// Tests `mcp-host doctor --config` with auth-bridge: metadata, keys and clock of the provider, and the redirect URI.
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { PluginFinding } from '../../core/config/examination.ts'
import { checkKeys } from '../../plugins/auth-bridge/doctor.ts'
import { createConnector } from '../../plugins/auth-bridge/upstream/connection.ts'
import { settle } from '../../plugins/auth-bridge/upstream/settings.ts'
import { type IdentityProvider, startIdentityProvider, stopIdentityProviders } from '../support/identity-provider.ts'
import { createTestLog } from '../support/start-host.ts'
import { makeKey, toJwk } from '../support/test-issuer.ts'
import { CALLBACK, configOf, examine as examineConfigOf } from './doctor-bridge-config.ts'

let idp: IdentityProvider
/** Answers as `reply` says, whatever it is asked. */
let odd: Server
let oddUrl = ''
let reply: (response: ServerResponse) => void = response => response.end()

const examine = (provider: object, publicUrl?: string) =>
  examineConfigOf(configOf(provider, {}, publicUrl === undefined ? undefined : { publicUrl }))

/** The findings of these checks, one a line. */
const linesOf = (findings: readonly PluginFinding[], ...checks: readonly string[]) =>
  findings
    .filter(({ check }) => checks.some(one => check === `auth-bridge: ${one}`))
    .map(({ check, level, text, fix = '' }) => `${level} ${check.replace('auth-bridge: ', '')}: ${text} -> ${fix}`)
    .join('\n')

const json = (body: unknown, headers: Record<string, string> = {}, status = 200) => {
  reply = response => {
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }
}

const keySet = (...changes: readonly object[]) => ({
  keys: changes.map((change, index) => ({ ...toJwk(makeKey(`key-${index}`)), ...change })),
})

before(async () => {
  idp = await startIdentityProvider({ redirects: [CALLBACK] })
  odd = createServer((_request, response) => reply(response))
  await new Promise<void>(resolve => odd.listen(0, '127.0.0.1', resolve))
  oddUrl = `http://127.0.0.1:${(odd.address() as AddressInfo).port}`
})
afterEach(() => {
  idp.metadata = {}
  for (const endpoint of Object.keys(idp.failing)) delete idp.failing[endpoint as keyof typeof idp.failing]
})
after(async () => {
  odd.closeAllConnections()
  odd.close()
  await stopIdentityProviders()
})

describe('mcp-host doctor: the redirect URI of auth-bridge', () => {
  it('is printed if everything is correct', async () => {
    const findings = await examine(idp.options())
    expect(linesOf(findings, 'redirect URI'))
      .to.match(/^ok .*redirects to /)
      .and.include(CALLBACK)
  })

  it('is part of the fix if it is not registered', async () => {
    const findings = await examine(idp.options(), 'https://elsewhere.example')
    const [finding] = findings.filter(({ level }) => level === 'wrong')
    expect(finding?.fix).to.include('https://elsewhere.example/auth/callback')
  })

  it('is a finding if the provider rejects it, but not for other errors', async () => {
    idp.failing.token = { error: 'invalid_request', error_description: 'AADSTS50011: The redirect URI is not known' }
    expect(linesOf(await examine(idp.options()), 'client secret'))
      .to.match(/^wrong /)
      .and.include(CALLBACK)
    idp.failing.token = { error: 'invalid_client', error_description: 'unknown secret' }
    expect(linesOf(await examine(idp.options()), 'client secret'))
      .to.match(/^wrong /)
      .and.not.include(CALLBACK)
  })
})

describe('mcp-host doctor: error text of a provider', () => {
  it('is printed once if it begins with the error code', async () => {
    idp.failing.token = { error: 'invalid_client', error_description: 'invalid_client: client is invalid' }
    expect(linesOf(await examine(idp.options()), 'client secret')).to.include(
      'refused: invalid_client: client is invalid',
    )
    idp.failing.token = { error: 'invalid_client', error_description: 'client is invalid' }
    expect(linesOf(await examine(idp.options()), 'client secret')).to.include(
      'refused: invalid_client: client is invalid',
    )
    idp.failing.authorization = { error: 'invalid_scope', error_description: 'invalid_scope: no such scope' }
    expect(linesOf(await examine(idp.options()), 'authorization request')).to.include('invalid_scope: no such scope')
  })

  it('is printed once if it is part of a page', async () => {
    for (const [status, page, expected] of [
      [
        400,
        '<p>invalid_redirect_uri: not one of the client</p>',
        'an error page: invalid_redirect_uri: not one of the client',
      ],
      [400, '<p>invalid_client: client is invalid</p>', 'an error page: invalid_client: client is invalid'],
      [400, '<p>Client not found.</p>', 'an error page: Client not found.'],
    ] as const) {
      reply = response => response.writeHead(status, { 'Content-Type': 'text/html' }).end(page)
      idp.metadata = { authorization_endpoint: `${oddUrl}/authorize` }
      expect(linesOf(await examine(idp.options()), 'redirect URI')).to.include(`${expected} -> `)
    }
  })
})

describe('mcp-host doctor: keys of the provider', () => {
  const keysOf = async () => {
    idp.metadata = { jwks_uri: `${oddUrl}/jwks` }
    return linesOf(await examine(idp.options()), 'keys', 'clock')
  }

  it('are fetched', async () => {
    expect(linesOf(await examine(idp.options()), 'keys')).to.match(/^ok keys: .*\/jwks has a signing key/)
    json(keySet({}, { use: undefined }, { use: 'enc' }, { use: undefined, key_ops: ['verify'] }))
    expect(await keysOf()).to.match(/^ok keys: .* has 3 signing keys/)
  })

  for (const [what, answer, words] of [
    ['500', () => json('oops', {}, 500), /answers 500/],
    ['404', () => json('{}', {}, 404), /returns 404|404/],
    ['a page', () => json('<!doctype html><p>Sign in</p>'), /proxy/],
    ['an object', () => json({ keys: 'none' }), /is not a key set -> /],
    ['an empty set', () => json({ keys: [] }), /is an empty key set: ID tokens cannot be verified -> .*signing key/],
    ['keys for encryption', () => json(keySet({ use: 'enc' }, { key_ops: ['wrapKey'] })), /no signing key.* -> /],
    ['a shared key', () => json({ keys: [{ kty: 'oct', k: 'abc' }, null, 'x'] }), /no signing key.* -> /],
    ['too much', () => json('x'.repeat(2_000_000)), / -> .*proxy/],
  ] as const) {
    it(`are reported as invalid: ${what}`, async () => {
      answer()
      expect(await keysOf())
        .to.match(/^wrong keys: /)
        .and.match(words)
    })
  }

  it('that do not arrive end with a timeout', async () => {
    reply = () => undefined
    idp.metadata = { jwks_uri: `${oddUrl}/jwks` }
    const settings = settle(idp.options() as unknown as Parameters<typeof settle>[0], ['provider'])
    const findings = await checkKeys(await createConnector(settings, createTestLog(), 500)())
    expect(findings).to.have.length(1)
    expect(findings[0]).to.include({ check: 'keys', level: 'wrong' })
    expect(findings[0]?.text).to.include('it did not respond in time')
    expect(findings[0]?.fix).to.include('let this machine reach the provider')
  })

  for (const [what, seconds, age, words] of [
    ['agrees', 0, undefined, /ok clock: .* agree/],
    ['is half a minute off', 30, undefined, /ok clock: .* agree/],
    ['is half a minute off, the other way', -30, undefined, /ok clock: .* agree/],
    ['answers from a cache', -3_600, 3_600, /ok clock: .* agree/],
    ['is ahead', 600, undefined, /wrong clock: .* 10 min behind that of the provider.* -> .*NTP/],
    ['is behind', -90, undefined, /wrong clock: .* (?:89|90) s ahead of that of the provider.* -> .*NTP/],
    ['is hours behind', -7_230, undefined, /wrong clock: .* 2 h ahead of that of the provider.* -> .*NTP/],
  ] as const) {
    it(`are checked for a provider whose clock ${what}`, async () => {
      reply = response => {
        const date = new Date(Date.now() + seconds * 1_000).toUTCString()
        response.writeHead(200, { Date: date, ...(age !== undefined && { Age: String(age) }) })
        response.end(JSON.stringify(keySet({})))
      }
      expect(await keysOf()).to.match(words)
    })
  }

  it('are checked for a provider without a Date header', async () => {
    for (const time of ['', 'yesterday']) {
      json(keySet({}), { Date: time })
      expect(await keysOf())
        .to.match(/^ok keys: /)
        .and.not.include('clock')
    }
  })
})

describe('mcp-host doctor: metadata of the provider', () => {
  const provider = (issuer: string) => ({ type: 'oidc', issuer, clientId: 'a', clientSecret: 'b' })

  for (const [what, answer, words] of [
    ['a page', () => json('<!doctype html><h1>Blocked</h1>'), /issuer.*proxy/],
    ['bad JSON', () => json('{"issuer": '), /issuer.*proxy/],
    ['too much', () => json(`"${'x'.repeat(2_000_000)}"`), /answered more than .* -> .*issuer.*proxy/],
    ['500', () => json('oops', {}, 500), /answers 500/],
    ['503', () => json('oops', {}, 503), /answers 503/],
    ['429', () => json('oops', {}, 429), /answers 429.*later/],
    ['no endpoints', () => json({ issuer: oddUrl }), /has no authorization_endpoint -> .*OpenID Connect/],
  ] as const) {
    it(`is reported as invalid, with a fix: ${what}`, async () => {
      answer()
      const findings = await examine(provider(oddUrl))
      expect(linesOf(findings, 'provider')).to.match(words).and.not.include('firewall')
    })
  }

  it('is requested from a server without TLS', async () => {
    const findings = await examine(provider(oddUrl.replace('http:', 'https:')))
    expect(linesOf(findings, 'provider'))
      .to.match(/does not use TLS/)
      .and.not.include('firewall')
  })
})
