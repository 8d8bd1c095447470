// Tests the validation of auth-bridge options at startup.
import { expect } from 'chai'
import type { BuiltInOptions } from '../../../core/config/define-config.ts'
import { createHost } from '../../../core/create-host.ts'
import { defineTool } from '../../../core/index.ts'
import { createTestLog } from '../../../core/testing/test-log.ts'

type Options = BuiltInOptions['auth-bridge']

const PROVIDER = { type: 'oidc', issuer: 'https://login.acme.example', clientId: 'a', clientSecret: 'b' } as const
const ROUTES = { '/': { toolsets: 'all' } }

/** What a start with these says. */
async function mistakeOf(options: Partial<Options>, more: object = {}, plugins: object = {}): Promise<string> {
  const config = {
    server: { name: 'test-host', version: '1.2.3' },
    secrets: ['a secret for tests, long enough to be one'],
    http: { port: 0 },
    toolsets: { all: [defineTool({ name: 'one', handler: () => 1 })] },
    routes: ROUTES,
    ...more,
    plugins: {
      'transport-streamable': {},
      'auth-jwt': {},
      'resource-metadata': {},
      'auth-bridge': { provider: PROVIDER, allow: { everyone: true }, ...options } as Options,
      ...plugins,
    },
  }
  const host = await createHost(config as Parameters<typeof createHost>[0], { log: createTestLog() }).catch(
    (error: unknown) => error,
  )
  if (host instanceof Error) return host.message
  await (host as { close(): Promise<void> }).close()
  return ''
}

describe('auth-bridge: options', () => {
  it('accepts the minimal options', async () => {
    expect(await mistakeOf({})).to.equal('')
  })

  const mistakes: ReadonlyArray<readonly [what: string, options: object, more: object, texts: readonly string[]]> = [
    ['nobody who may sign in', { allow: {} }, {}, ['allow']],
    ['an allow of nobody', { allow: { everyone: false } }, {}, ['allow.everyone']],
    [
      'a provider that it does not know',
      { provider: { ...PROVIDER, type: 'facebook' } },
      {},
      ['provider.type', 'github'],
    ],
    ['a provider without issuer', { provider: { ...PROVIDER, issuer: undefined } }, {}, ['provider', 'issuer']],
    [
      'an Entra tenant by its domain',
      { provider: { type: 'entra', tenant: 'acme.com', clientId: 'a', clientSecret: 'b' } },
      {},
      ['tenant'],
    ],
    [
      'a redirect with a host pattern',
      { clients: { redirects: ['https://*.acme.example/cb'] } },
      {},
      ['redirects[0]', 'needs a whole host'],
    ],
    [
      'a redirect over plain http',
      { clients: { redirects: ['http://app.acme.example/cb'] } },
      {},
      ['redirects[0]', 'use https'],
    ],
    [
      'a redirect to a script',
      { clients: { redirects: ['javascript:alert(1)'] } },
      {},
      ['redirects[0]', 'javascript:'],
    ],
    [
      'a redirect of a client that it knows',
      { clients: { fixed: [{ clientId: 'x', redirects: ['nowhere'] }] } },
      {},
      ['fixed[0].redirects[0]', 'is not a redirect URI'],
    ],
    ['keys that are not there', { signingKeys: 'no-such.pem' }, {}, ['signingKeys', 'cannot be read']],
    ['a logo that is not there', { page: { logo: 'no-such.svg' } }, {}, ['the logo "no-such.svg"', 'cannot be read']],
    ['a path with a parameter', { path: '/auth/:id' }, {}, ['path']],
    [
      'a public address over plain http',
      {},
      { http: { port: 0, publicUrl: 'http://mcp.acme.example' } },
      ['publicUrl', 'use https'],
    ],
    ['no public address', {}, { http: { port: 0, host: '0.0.0.0' } }, ['http.publicUrl', 'https URL']],
    ...['@acme.example', 'ann@acme.example', '*.acme.example', '*', 'acme', '.acme.example', ' acme.example'].map(
      domain =>
        [
          `${domain} as a domain who may sign in`,
          { allow: { domains: ['acme.example', domain] } },
          {},
          ['allow.domains[1]', 'a domain such as acme.example, without @ and *'],
        ] as const,
    ),
    ...['@acme.example', '*'].flatMap(domain => [
      [
        `${domain} as the domain of a rule`,
        { scopes: { write: { domain } } },
        {},
        ['scopes.write.domain', 'a domain such as acme.example, without @ and *'],
      ] as const,
      [
        `${domain} among the domains of a rule`,
        { roles: { admin: { domain: ['acme.example', domain] } } },
        {},
        ['roles.admin.domain[1]', 'a domain such as acme.example, without @ and *'],
      ] as const,
    ]),
    ['a title of a role', { roles: { admin: { title: 'Administrator' } } }, {}, ['roles.admin', 'title']],
    ['a scope without a title and rule', { scopes: { write: {} } }, {}, ['scopes.write']],
    ['a life of tokens below a second', { accessToken: 500 }, {}, ['accessToken', 'at least 1s']],
    ...['500ms', '0.9s', '0s', '0d', '00999ms', '0.000h'].map(
      time => [`a session of ${time}`, { session: time }, {}, ['session', 'at least 1s']] as const,
    ),
    ['a session of some time', { session: '30 sec' }, {}, ['session', "a duration such as '30s'"]],
    ['a life of tokens of no time', { accessToken: 0 }, {}, ['accessToken']],
  ]
  for (const [what, options, more, texts] of mistakes) {
    it(`rejects ${what}`, async () => {
      const text = await mistakeOf(options as Partial<Options>, more)
      for (const part of texts) expect(text).to.include(part)
    })
  }

  it('accepts durations from one second in every notation', async () => {
    for (const session of [1_000, '1s', '1000ms', '01.5s', '10.0s', '0.5h', '0.5d', '30m'])
      expect(await mistakeOf({ session }), String(session)).to.equal('')
  })

  it('accepts domains in every script and depth', async () => {
    const domains = ['acme.example', 'Mail.ACME.example', 'xn--bcher-kva.example', 'bücher.example', 'a-b.co.uk']
    const rules = { write: { domain: 'acme.example' }, read: { domain: domains } }
    expect(await mistakeOf({ allow: { domains }, scopes: rules })).to.equal('')
  })

  it('reports all configuration errors together', async () => {
    const text = await mistakeOf({ clients: { redirects: ['https://*/', 'file:///etc'] } })
    expect(text).to.include('redirects[0]').and.include('redirects[1]')
  })

  it('requires shared secrets if nodes share a store', async () => {
    const text = await mistakeOf({}, { secrets: [], redis: { url: 'redis://127.0.0.1:1' } }, { 'cluster-redis': {} })
    expect(text).to.include('MCP_HOST_SECRETS')
  })
})
