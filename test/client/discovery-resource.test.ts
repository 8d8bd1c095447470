// Tests discovery and validation of protected resource metadata.
import { expect } from 'chai'
import fc from 'fast-check'
import { discoverResource, selectServer } from '../../client/discovery.ts'
import type { ClientOAuthOptions } from '../../client/options.ts'
import { anyUrl } from '../support/any-text.ts'
import { caseCount } from '../support/thorough.ts'
import { authErrorOf } from './support/auth-error-of.ts'
import { testContext } from './support/context.ts'
import { startFakeServers, stopServers } from './support/fake-servers.ts'
import { type Entry, tableFetch } from './support/static-fetch.ts'

const SERVER = 'https://mcp.example/a/b'
const AT_PATH = 'https://mcp.example/.well-known/oauth-protected-resource/a/b'
const AT_ROOT = 'https://mcp.example/.well-known/oauth-protected-resource'
const document = (members: object = {}) => ({
  resource: SERVER,
  authorization_servers: ['https://as.example'],
  ...members,
})

const never = new AbortController().signal

function discover(table: Record<string, Entry>, named: string[] = [], options: Partial<ClientOAuthOptions> = {}) {
  const { fetch, asked } = tableFetch(table)
  const ctx = testContext({ serverUrl: SERVER, fetch, ...options })
  return { asked, ctx, info: () => discoverResource(ctx, named, never) }
}

const accepts = (resource: unknown, options: Partial<ClientOAuthOptions> = {}) =>
  discover({ [AT_PATH]: document({ resource }) }, [], options).info()

describe('R-21: metadata URL in the challenge', () => {
  it('is the only URL requested', async () => {
    const { info, asked } = discover({ 'https://mcp.example/custom': document() }, ['https://mcp.example/custom'])
    expect(await info()).to.deep.equal({
      resource: SERVER,
      authorizationServers: ['https://as.example'],
      scopesSupported: undefined,
      metadataUrl: 'https://mcp.example/custom',
      dpopRequired: false,
      legacy: false,
    })
    expect(asked).to.deep.equal(['https://mcp.example/custom'])
  })
})

describe('R-22: well-known locations without a URL in the challenge', () => {
  it('are requested with the path first, then at the root', async () => {
    const { info, asked } = discover({ [AT_ROOT]: document() })
    expect((await info()).metadataUrl).to.equal(AT_ROOT)
    expect(asked).to.deep.equal([AT_PATH, AT_ROOT])
  })

  it('exclude the root if the path has a document', async () => {
    const { info, asked } = discover({
      [AT_PATH]: document(),
      [AT_ROOT]: document({ resource: 'https://evil.example' }),
    })
    await info()
    expect(asked).to.deep.equal([AT_PATH])
  })

  for (const serverUrl of ['https://mcp.example', 'https://mcp.example/', 'https://mcp.example/?key=secret']) {
    it(`for ${serverUrl} are one location, without the query`, async () => {
      const { info, asked } = discover({}, [], { serverUrl })
      await info()
      expect(asked).to.deep.equal([AT_ROOT])
    })
  }

  it('reject an HTML page served for every path', async () => {
    const { info } = discover({ [AT_PATH]: '<!doctype html><title>App</title>', [AT_ROOT]: document() })
    expect((await info()).metadataUrl).to.equal(AT_ROOT)
  })

  for (const status of [401, 403, 404, 405, 502]) {
    it(`fall back to the root after ${status} at the path`, async () => {
      expect((await discover({ [AT_PATH]: status, [AT_ROOT]: document() }).info()).metadataUrl).to.equal(AT_ROOT)
    })
  }

  for (const [name, entry, code] of [
    ['{}', {}, 'invalid_resource_metadata'],
    ['an error object', { error: 'not_found' }, 'invalid_resource_metadata'],
    ['a document of another server', document({ resource: 'https://evil.example' }), 'resource_mismatch'],
  ] as [string, Entry, string][]) {
    it(`fall back to the root after ${name} at the path, and report it if the root has none`, async () => {
      expect((await discover({ [AT_PATH]: entry, [AT_ROOT]: document() }).info()).metadataUrl).to.equal(AT_ROOT)
      expect(await authErrorOf(discover({ [AT_PATH]: entry }).info)).to.include({ code })
    })
  }

  for (const status of [500, 503, 504]) {
    it(`report ${status} as temporary failure, not as a legacy server`, async () => {
      const { info, asked } = discover({ [AT_PATH]: status })
      expect(await authErrorOf(info)).to.include({ code: 'temporarily_unavailable', retryable: true })
      expect(asked).to.have.length(1)
    })
  }

  it('do not treat 429 as a legacy server', async () => {
    expect(await authErrorOf(discover({ [AT_PATH]: 429 }).info)).to.include({
      code: 'temporarily_unavailable',
      retryable: true,
    })
  })

  it('report a broken connection as temporary failure', async () => {
    const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
    expect(await authErrorOf(discover({ [AT_PATH]: reset }).info)).to.include({
      code: 'temporarily_unavailable',
      retryable: true,
    })
  })
})

describe('R-23: unusable metadata URL in the challenge', () => {
  const named = 'https://mcp.example/custom'

  for (const status of [400, 401, 404, 410]) {
    it(`with ${status} falls back to the well-known locations`, async () => {
      const { info, asked } = discover({ [named]: status, [AT_PATH]: document() }, [named])
      expect((await info()).metadataUrl).to.equal(AT_PATH)
      expect(asked).to.deep.equal([named, AT_PATH])
    })
  }

  const bad: [name: string, entry: Entry, code: string][] = [
    ['HTML', '<html>', 'invalid_resource_metadata'],
    ['a list', [], 'invalid_resource_metadata'],
    ['no resource', { authorization_servers: ['https://as.example'] }, 'invalid_resource_metadata'],
    ['another resource', document({ resource: 'https://evil.example' }), 'resource_mismatch'],
    ['no authorization server', { resource: SERVER }, 'invalid_resource_metadata'],
  ]
  for (const [name, entry, code] of bad) {
    it(`with 200 and ${name} falls back to the well-known locations`, async () => {
      const { info, asked } = discover({ [named]: entry, [AT_PATH]: document() }, [named])
      expect((await info()).metadataUrl).to.equal(AT_PATH)
      expect(asked).to.deep.equal([named, AT_PATH])
    })

    it(`with 200 and ${name} is an error if no location has a usable document`, async () => {
      const { info } = discover({ [named]: entry, [AT_PATH]: {} }, [named])
      expect(await authErrorOf(info)).to.include({ code, retryable: false })
      expect(await authErrorOf(discover({ [named]: entry }, [named]).info)).to.include({ code })
    })
  }

  for (const value of [
    '/.well-known/oauth-protected-resource/a/b',
    `'${AT_PATH}'`,
    'metadata',
    'http://mcp.example/',
  ]) {
    it(`that is ${value} falls back to the well-known locations`, async () => {
      const { info, asked } = discover({ [AT_ROOT]: document() }, [value])
      expect((await info()).metadataUrl).to.equal(AT_ROOT)
      expect(asked).to.deep.equal([AT_PATH, AT_ROOT])
      expect(await authErrorOf(discover({}, [value]).info)).to.include({ code: 'insecure_endpoint' })
    })
  }
})

describe('R-18: several metadata URLs in the challenge', () => {
  const [one, two] = ['https://mcp.example/1', 'https://mcp.example/2']

  for (const [name, entry] of [
    ['404', 404],
    ['500', 500],
    ['HTML', '<html>'],
    ['a lie', document({ resource: 'https://evil.example' })],
  ] as [string, Entry][]) {
    it(`use the second URL if the first returns ${name}`, async () => {
      const { info, asked } = discover({ [one]: entry, [two]: document() }, [one, two])
      expect((await info()).metadataUrl).to.equal(two)
      expect(asked).to.deep.equal([one, two])
    })
  }

  it('report the first failure if all fail', async () => {
    const { info } = discover({ [one]: '<html>', [two]: 500 }, [one, two])
    expect(await authErrorOf(info)).to.include({ code: 'invalid_resource_metadata' })
  })

  it('are limited to 5 requests', async () => {
    const named = Array.from({ length: 50 }, (_, index) => `https://mcp.example/${index}`)
    const { info, asked } = discover({}, named, { legacyFallback: false })
    await authErrorOf(info)
    expect(asked).to.deep.equal([...named.slice(0, 5), AT_PATH, AT_ROOT])
  })

  it('stop after the discovery is aborted', async () => {
    const stop = new AbortController()
    const asked: string[] = []
    const fetch: typeof globalThis.fetch = async input => {
      asked.push(String(input))
      stop.abort()
      throw new DOMException('stopped', 'AbortError')
    }
    const ctx = testContext({ serverUrl: SERVER, fetch })
    expect(await authErrorOf(() => discoverResource(ctx, [one, two], stop.signal))).to.include({ code: 'aborted' })
    expect(asked).to.deep.equal([one])
  })

  it('fail if one is not a URL', async () => {
    expect(await authErrorOf(discover({}, ['/relative\u001b[2J']).info)).to.include({ code: 'insecure_endpoint' })
  })
})

describe('R-24: validation of the resource', () => {
  const good = [
    SERVER,
    'https://mcp.example/a/b/',
    'https://mcp.example:443/a/b',
    'HTTPS://MCP.example/a/b',
    'https://mcp.example/a/b?version=2',
    'https://mcp.example',
    'https://mcp.example/',
  ]
  for (const resource of good) {
    it(`accepts ${resource} unchanged`, async () => {
      expect((await accepts(resource)).resource).to.equal(resource)
    })
  }

  it('ignores the query of the server URL', async () => {
    expect((await accepts(SERVER, { serverUrl: `${SERVER}?project=1` })).resource).to.equal(SERVER)
  })

  const wrong = [
    'https://evil.example/a/b',
    'https://mcp.example.evil.example/a/b',
    'https://mcp.example:8443/a/b',
    'http://mcp.example/a/b',
    'https://mcp.example/a',
    'https://mcp.example/a/c',
    'https://mcp.example/a/b/c',
    'https://mcp.example/A/b',
    'https://mcp.example/a/bc',
    'https://mcp.example/a/b//',
    'https://mcp.example@evil.example/a/b',
    'https://user:pass@mcp.example/a/b',
    'https://mcp.example/a/b#part',
    'https://mcp.example#',
    'mcp.example/a/b',
    '/a/b',
    'urn:mcp:example',
    'data:text/plain,x',
  ]
  for (const resource of wrong) {
    it(`rejects ${resource}`, async () => {
      expect(await authErrorOf(() => accepts(resource))).to.include({ code: 'resource_mismatch', retryable: false })
    })
  }

  for (const resource of [undefined, null, 42, '', ['https://mcp.example'], {}]) {
    it(`rejects ${JSON.stringify(resource)} as invalid`, async () => {
      expect(await authErrorOf(() => accepts(resource))).to.include({ code: 'invalid_resource_metadata' })
    })
  }

  it('path-prefix accepts a parent path at a segment boundary', async () => {
    const options = { resourceMatch: 'path-prefix' } as const
    expect((await accepts('https://mcp.example/a', options)).resource).to.equal('https://mcp.example/a')
    for (const resource of ['https://mcp.example/a/', SERVER, 'https://mcp.example']) await accepts(resource, options)
    const beside = { ...options, serverUrl: 'https://mcp.example/ab/c' }
    const { info } = discover({ [`${AT_ROOT}/ab/c`]: document({ resource: 'https://mcp.example/a' }) }, [], beside)
    expect(await authErrorOf(info)).to.include({ code: 'resource_mismatch' })
    expect((await authErrorOf(() => accepts('https://mcp.example/a'))).setting).to.include({
      option: 'resourceMatch',
      value: 'path-prefix',
    })
  })

  it('rejects every other origin (property)', async () => {
    await fc.assert(
      fc.asyncProperty(anyUrl, async resource => {
        fc.pre(new URL(resource).origin !== 'https://mcp.example')
        expect(await authErrorOf(() => accepts(resource, { resourceMatch: 'path-prefix' }))).to.include({
          code: 'resource_mismatch',
        })
      }),
      { numRuns: caseCount(50, 10) },
    )
  })

  for (const [serverUrl, resource, right] of [
    ['http://localhost:3000/mcp?a=b', 'http://127.0.0.1:3000/mcp', 'http://127.0.0.1:3000/mcp?a=b'],
    ['http://127.0.0.1:3000/mcp', 'http://localhost:3000/', 'http://localhost:3000/mcp'],
    ['http://[::1]:3000/', 'http://127.0.0.1:3000', 'http://127.0.0.1:3000/'],
    ['http://localhost:3000/mcp', 'http://127.0.0.1:3001/mcp', undefined],
    ['http://localhost:3000/mcp', 'http://127.0.0.1:3000/other', undefined],
    ['http://localhost:3000/mcp', 'http://evil.example:3000/mcp', undefined],
  ] as const) {
    it(`${serverUrl} is ${right ? '' : 'not '}the other name of this machine for ${resource}`, async () => {
      const { origin, pathname } = new URL(serverUrl)
      const at = `${origin}/.well-known/oauth-protected-resource${pathname.replace(/\/$/, '')}`
      const { info } = discover({ [at]: document({ resource }) }, [], { serverUrl })
      const { code, setting } = await authErrorOf(info)
      expect(code).to.equal('resource_mismatch')
      expect(setting && 'value' in setting ? setting.value : undefined).to.equal(right)
    })
  }

  it('shows an invalid resource without control characters, and truncated', async () => {
    const error = await authErrorOf(() => accepts(`https://evil.example/\u001b[2J\u202e${'x'.repeat(5_000)}`))
    expect(error.message.length).to.be.below(800)
  })
})

describe('R-25: metadata document at the root', () => {
  for (const resource of ['https://mcp.example', 'https://mcp.example/', SERVER]) {
    it(`can name ${resource}`, async () => {
      expect((await discover({ [AT_ROOT]: document({ resource }) }).info()).resource).to.equal(resource)
    })
  }

  it('cannot name a sibling path', async () => {
    const { info } = discover({ [AT_ROOT]: document({ resource: 'https://mcp.example/other' }) })
    expect(await authErrorOf(info)).to.include({ code: 'resource_mismatch' })
  })
})

describe('R-26: authorization_servers', () => {
  for (const servers of [
    undefined,
    [],
    'https://as.example',
    {},
    [''],
    ['as.example'],
    ['/as'],
    [null],
    ['https://as.example', 7],
  ]) {
    it(`rejects ${JSON.stringify(servers)}`, async () => {
      const { info } = discover({ [AT_PATH]: document({ authorization_servers: servers }) })
      expect(await authErrorOf(info)).to.include({ code: 'invalid_resource_metadata' })
    })
  }

  it('keeps the listed order', async () => {
    const listed = ['https://AS.example:443/x/', 'https://as.example']
    const { info } = discover({ [AT_PATH]: document({ authorization_servers: listed }) })
    expect((await info()).authorizationServers).to.deep.equal(listed)
  })

  it('tolerates invalid optional fields', async () => {
    const members = { scopes_supported: ['a', 7, 'b'], dpop_bound_access_tokens_required: true }
    expect(await discover({ [AT_PATH]: document(members) }).info()).to.deep.include({
      scopesSupported: ['a', 'b'],
      dpopRequired: true,
    })
    const odd = { scopes_supported: 'a b', dpop_bound_access_tokens_required: 'true' }
    expect(await discover({ [AT_PATH]: document(odd) }).info()).to.deep.include({
      scopesSupported: undefined,
      dpopRequired: false,
    })
    const none = { scopes_supported: [] }
    expect(await discover({ [AT_PATH]: document(none) }).info()).to.deep.include({ scopesSupported: undefined })
  })
})

describe('R-27: no metadata document', () => {
  it('uses the origin as authorization server, without a resource', async () => {
    const { info, asked } = discover({}, ['https://mcp.example/custom'])
    expect(await info()).to.deep.equal({
      resource: undefined,
      authorizationServers: ['https://mcp.example'],
      scopesSupported: undefined,
      metadataUrl: undefined,
      dpopRequired: false,
      legacy: true,
    })
    expect(asked).to.deep.equal(['https://mcp.example/custom', AT_PATH, AT_ROOT])
  })

  it('fails without legacyFallback, and names the URL', async () => {
    const error = await authErrorOf(discover({}, [], { legacyFallback: false }).info)
    expect(error.code).to.equal('no_authorization_server')
    expect(error.fix).to.include(AT_PATH)
  })

  it('rejects a document without authorization servers instead of falling back', async () => {
    const { info } = discover({ [AT_PATH]: { resource: SERVER } })
    expect(await authErrorOf(info)).to.include({ code: 'invalid_resource_metadata' })
  })
})

describe('R-28: no cache between two discoveries', () => {
  after(stopServers)

  it('follows a server that changes its authorization server', async () => {
    const { rs, servers, serverUrl } = await startFakeServers({ authorizationServers: 2 })
    const ctx = testContext({ serverUrl })
    for (const server of servers) {
      rs.settings.authorizationServers = [server]
      expect((await discoverResource(ctx, [], never)).authorizationServers).to.deep.equal([server.issuer])
    }
  })
})

describe('R-29: selection of an authorization server', () => {
  const listed = ['https://one.example', 'https://two.example/']
  const resource = {
    resource: SERVER,
    authorizationServers: listed,
    scopesSupported: undefined,
    metadataUrl: AT_PATH,
    dpopRequired: false,
    legacy: false,
  }

  it('uses the first, and emits an event if there are others', async () => {
    const ctx = testContext()
    expect(await selectServer(ctx, resource)).to.equal('https://one.example')
    expect(ctx.events.map(({ type }) => type)).to.deep.equal([
      'several-authorization-servers',
      'authorization-server-selected',
    ])
  })

  it('uses the result of authServerSelector, sync or async', async () => {
    for (const picked of ['https://two.example/', Promise.resolve('https://two.example/')]) {
      const ctx = testContext({
        authServerSelector: servers => {
          expect(servers).to.deep.equal(listed)
          return picked
        },
      })
      expect(await selectServer(ctx, resource)).to.equal('https://two.example/')
      expect(ctx.events.map(({ type }) => type)).to.deep.equal(['authorization-server-selected'])
    }
  })

  it('fails if the selector returns none', async () => {
    const ctx = testContext({ authServerSelector: () => null })
    expect(await authErrorOf(() => selectServer(ctx, resource))).to.include({ code: 'no_authorization_server' })
  })

  for (const picked of ['https://evil.example', 'https://two.example', '']) {
    it(`rejects ${JSON.stringify(picked)}, which is not listed`, async () => {
      const ctx = testContext({ authServerSelector: () => picked })
      expect(await authErrorOf(() => selectServer(ctx, resource))).to.include({ code: 'invalid_options' })
    })
  }

  it('ignores changes that a selector makes to its list', async () => {
    const ctx = testContext({
      authServerSelector: servers => {
        ;(servers as string[]).push('https://evil.example')
        return 'https://evil.example'
      },
    })
    expect(await authErrorOf(() => selectServer(ctx, resource))).to.include({ code: 'invalid_options' })
  })
})

describe('R-95: metadata on another origin', () => {
  it('is allowed with an event', async () => {
    const named = 'https://cdn.example/meta?token=x'
    const { info, ctx } = discover({ [named]: document() }, [named])
    expect((await info()).resource).to.equal(SERVER)
    expect(ctx.events).to.deep.include({
      type: 'resource-metadata-cross-origin',
      key: 'test',
      url: 'https://cdn.example/meta',
    })
  })

  it('emits no event on the same origin', async () => {
    const { info, ctx } = discover({ [AT_ROOT]: document() }, [AT_ROOT])
    await info()
    expect(ctx.events).to.deep.equal([])
  })

  it('in a private network is rejected before any request to it', async () => {
    for (const [named, code] of [
      ['http://localhost:6379/', 'blocked_address'],
      ['https://127.0.0.1/', 'blocked_address'],
      ['https://169.254.169.254/latest/meta-data', 'blocked_address'],
      ['http://cdn.example/', 'insecure_endpoint'],
      ['file:///etc/passwd', 'insecure_endpoint'],
    ] as const) {
      const { info, asked } = discover({}, [named])
      expect(await authErrorOf(info)).to.include({ code })
      expect(asked).to.deep.equal(code === 'blocked_address' ? [] : [AT_PATH, AT_ROOT])
    }
  })
})
