// Protected resource metadata: where it is looked for, whom it may speak for, and what is made of bad documents.
import { expect } from 'chai'
import fc from 'fast-check'
import { discoverResource, selectServer } from '../../client/discovery.ts'
import type { ClientOAuthOptions } from '../../client/options.ts'
import { caseCount } from '../support/thorough.ts'
import { authErrorOf } from './support/auth-error-of.ts'
import { testContext } from './support/context.ts'
import { startFakeServers, stopServers } from './support/fake-servers.ts'
import { type Entry, tableFetch } from './support/table-fetch.ts'

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

describe('R-21: the address that the challenge names', () => {
  it('is the only one that is asked for', async () => {
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

describe('R-22: without it, the well-known places', () => {
  it('at the path, then at the root', async () => {
    const { info, asked } = discover({ [AT_ROOT]: document() })
    expect((await info()).metadataUrl).to.equal(AT_ROOT)
    expect(asked).to.deep.equal([AT_PATH, AT_ROOT])
  })

  it('the root is left alone where the path has it', async () => {
    const { info, asked } = discover({
      [AT_PATH]: document(),
      [AT_ROOT]: document({ resource: 'https://evil.example' }),
    })
    await info()
    expect(asked).to.deep.equal([AT_PATH])
  })

  for (const serverUrl of ['https://mcp.example', 'https://mcp.example/', 'https://mcp.example/?key=secret']) {
    it(`${serverUrl} has one place, and its query stays at home`, async () => {
      const { info, asked } = discover({}, [], { serverUrl })
      await info()
      expect(asked).to.deep.equal([AT_ROOT])
    })
  }

  it('a page for every path is no document', async () => {
    const { info } = discover({ [AT_PATH]: '<!doctype html><title>App</title>', [AT_ROOT]: document() })
    expect((await info()).metadataUrl).to.equal(AT_ROOT)
  })

  for (const status of [401, 403, 404, 405, 502]) {
    it(`${status} at the path leads to the root`, async () => {
      expect((await discover({ [AT_PATH]: status, [AT_ROOT]: document() }).info()).metadataUrl).to.equal(AT_ROOT)
    })
  }

  for (const status of [500, 503, 504]) {
    it(`${status} is a failure of now, not a legacy server`, async () => {
      const { info, asked } = discover({ [AT_PATH]: status })
      expect(await authErrorOf(info)).to.include({ code: 'temporarily_unavailable', retryable: true })
      expect(asked).to.have.length(1)
    })
  }

  it('429 is no proof of a legacy server either', async () => {
    expect(await authErrorOf(discover({ [AT_PATH]: 429 }).info)).to.include({
      code: 'temporarily_unavailable',
      retryable: true,
    })
  })

  it('a broken connection is a failure of now', async () => {
    const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
    expect(await authErrorOf(discover({ [AT_PATH]: reset }).info)).to.include({
      code: 'temporarily_unavailable',
      retryable: true,
    })
  })
})

describe('R-23: a named address that does not help', () => {
  const named = 'https://mcp.example/custom'

  for (const status of [400, 401, 404, 410]) {
    it(`${status}: the well-known places are asked`, async () => {
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
    it(`200 with ${name}: an error, and nothing else is asked`, async () => {
      const { info, asked } = discover({ [named]: entry, [AT_PATH]: document() }, [named])
      expect(await authErrorOf(info)).to.include({ code, retryable: false })
      expect(asked).to.deep.equal([named])
    })
  }
})

describe('R-18: several named addresses', () => {
  const [one, two] = ['https://mcp.example/1', 'https://mcp.example/2']

  for (const [name, entry] of [
    ['404', 404],
    ['500', 500],
    ['HTML', '<html>'],
    ['a lie', document({ resource: 'https://evil.example' })],
  ] as [string, Entry][]) {
    it(`the second one helps where the first gives ${name}`, async () => {
      const { info, asked } = discover({ [one]: entry, [two]: document() }, [one, two])
      expect((await info()).metadataUrl).to.equal(two)
      expect(asked).to.deep.equal([one, two])
    })
  }

  it('the first failure is told where none helps', async () => {
    const { info } = discover({ [one]: '<html>', [two]: 500 }, [one, two])
    expect(await authErrorOf(info)).to.include({ code: 'invalid_resource_metadata' })
  })

  it('no more than 5 of them are asked for', async () => {
    const named = Array.from({ length: 50 }, (_, index) => `https://mcp.example/${index}`)
    const { info, asked } = discover({}, named, { legacyFallback: false })
    await authErrorOf(info)
    expect(asked).to.deep.equal([...named.slice(0, 5), AT_PATH, AT_ROOT])
  })

  it('a cancelled discovery asks for no more of them', async () => {
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

  it('text that is no address is an error', async () => {
    expect(await authErrorOf(discover({}, ['/relative\u001b[2J']).info)).to.include({ code: 'insecure_endpoint' })
  })
})

describe('R-24: whom a document may speak for', () => {
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
    it(`accepts ${resource}, and keeps it byte for byte`, async () => {
      expect((await accepts(resource)).resource).to.equal(resource)
    })
  }

  it('the query of the server makes no difference', async () => {
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
    it(`refuses ${resource}`, async () => {
      expect(await authErrorOf(() => accepts(resource))).to.include({ code: 'resource_mismatch', retryable: false })
    })
  }

  for (const resource of [undefined, null, 42, '', ['https://mcp.example'], {}]) {
    it(`refuses ${JSON.stringify(resource)} as none`, async () => {
      expect(await authErrorOf(() => accepts(resource))).to.include({ code: 'invalid_resource_metadata' })
    })
  }

  it('path-prefix allows a parent path, at a segment', async () => {
    const options = { resourceMatch: 'path-prefix' } as const
    expect((await accepts('https://mcp.example/a', options)).resource).to.equal('https://mcp.example/a')
    for (const resource of ['https://mcp.example/a/', SERVER, 'https://mcp.example']) await accepts(resource, options)
    const beside = { ...options, serverUrl: 'https://mcp.example/ab/c' }
    const { info } = discover({ [`${AT_ROOT}/ab/c`]: document({ resource: 'https://mcp.example/a' }) }, [], beside)
    expect(await authErrorOf(info)).to.include({ code: 'resource_mismatch' })
    expect((await authErrorOf(() => accepts('https://mcp.example/a'))).fix).to.include("resourceMatch: 'path-prefix'")
  })

  it('no other origin passes, whatever its path (property)', async () => {
    let refused = 0
    const host = fc.webUrl({ validSchemes: ['https', 'http'], withQueryParameters: true })
    await fc.assert(
      fc.asyncProperty(host, async resource => {
        fc.pre(new URL(resource).origin !== 'https://mcp.example')
        expect(await authErrorOf(() => accepts(resource, { resourceMatch: 'path-prefix' }))).to.include({
          code: 'resource_mismatch',
        })
        refused++
      }),
      { numRuns: caseCount(200, 30) },
    )
    console.log(`      ${refused} resources of other origins refused`)
  })

  it('what is shown of a lie has no control characters and an end', async () => {
    const error = await authErrorOf(() => accepts(`https://evil.example/\u001b[2J\u202e${'x'.repeat(5_000)}`))
    expect(error.message.length).to.be.below(800)
  })
})

describe('R-25: a document at the root', () => {
  for (const resource of ['https://mcp.example', 'https://mcp.example/', SERVER]) {
    it(`may name ${resource}`, async () => {
      expect((await discover({ [AT_ROOT]: document({ resource }) }).info()).resource).to.equal(resource)
    })
  }

  it('may not name a sibling', async () => {
    const { info } = discover({ [AT_ROOT]: document({ resource: 'https://mcp.example/other' }) })
    expect(await authErrorOf(info)).to.include({ code: 'resource_mismatch' })
  })
})

describe('R-26: the authorization servers', () => {
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
    it(`${JSON.stringify(servers)} is an error`, async () => {
      const { info } = discover({ [AT_PATH]: document({ authorization_servers: servers }) })
      expect(await authErrorOf(info)).to.include({ code: 'invalid_resource_metadata' })
    })
  }

  it('are kept as listed', async () => {
    const listed = ['https://AS.example:443/x/', 'https://as.example']
    const { info } = discover({ [AT_PATH]: document({ authorization_servers: listed }) })
    expect((await info()).authorizationServers).to.deep.equal(listed)
  })

  it('the rest of the document is read with care', async () => {
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

describe('R-27: no document anywhere', () => {
  it('the origin is its own authorization server, without a resource', async () => {
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

  it('without legacyFallback it is an error that names the place', async () => {
    const error = await authErrorOf(discover({}, [], { legacyFallback: false }).info)
    expect(error.code).to.equal('no_authorization_server')
    expect(error.fix).to.include(AT_PATH)
  })

  it('a document without authorization servers is not "no document"', async () => {
    const { info } = discover({ [AT_PATH]: { resource: SERVER } })
    expect(await authErrorOf(info)).to.include({ code: 'invalid_resource_metadata' })
  })
})

describe('R-28: nothing is kept between two discoveries', () => {
  after(stopServers)

  it('so that a server that moves to another authorization server is followed', async () => {
    const { rs, servers, serverUrl } = await startFakeServers({ authorizationServers: 2 })
    const ctx = testContext({ serverUrl })
    for (const server of servers) {
      rs.settings.authorizationServers = [server]
      expect((await discoverResource(ctx, [], never)).authorizationServers).to.deep.equal([server.issuer])
    }
  })
})

describe('R-29: the choice of an authorization server', () => {
  const listed = ['https://one.example', 'https://two.example/']
  const resource = {
    resource: SERVER,
    authorizationServers: listed,
    scopesSupported: undefined,
    metadataUrl: AT_PATH,
    dpopRequired: false,
    legacy: false,
  }

  it('is the first, and an event tells that there are others', async () => {
    const ctx = testContext()
    expect(await selectServer(ctx, resource)).to.equal('https://one.example')
    expect(ctx.events.map(({ type }) => type)).to.deep.equal([
      'several-authorization-servers',
      'authorization-server-selected',
    ])
  })

  it('is authServerSelector’s, sync or not', async () => {
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

  it('none picked is an error', async () => {
    const ctx = testContext({ authServerSelector: () => null })
    expect(await authErrorOf(() => selectServer(ctx, resource))).to.include({ code: 'no_authorization_server' })
  })

  for (const picked of ['https://evil.example', 'https://two.example', '']) {
    it(`${JSON.stringify(picked)} is not listed: an error`, async () => {
      const ctx = testContext({ authServerSelector: () => picked })
      expect(await authErrorOf(() => selectServer(ctx, resource))).to.include({ code: 'invalid_options' })
    })
  }

  it('a selector that changes its list changes nothing', async () => {
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
  it('is allowed, and an event tells', async () => {
    const named = 'https://cdn.example/meta?token=x'
    const { info, ctx } = discover({ [named]: document() }, [named])
    expect((await info()).resource).to.equal(SERVER)
    expect(ctx.events).to.deep.include({
      type: 'resource-metadata-cross-origin',
      key: 'test',
      url: 'https://cdn.example/meta',
    })
  })

  it('on the same origin there is no event', async () => {
    const { info, ctx } = discover({ [AT_ROOT]: document() }, [AT_ROOT])
    await info()
    expect(ctx.events).to.deep.equal([])
  })

  it('inside the caller’s network it is refused before anything is sent', async () => {
    for (const [named, code] of [
      ['http://localhost:6379/', 'blocked_address'],
      ['https://127.0.0.1/', 'blocked_address'],
      ['https://169.254.169.254/latest/meta-data', 'blocked_address'],
      ['http://cdn.example/', 'insecure_endpoint'],
      ['file:///etc/passwd', 'insecure_endpoint'],
    ] as const) {
      const { info, asked } = discover({}, [named])
      expect(await authErrorOf(info)).to.include({ code })
      expect(asked).to.deep.equal([])
    }
  })
})
