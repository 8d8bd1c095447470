// Tests that a guarded route takes precedence over an open parameter route for every path encoding.
import { expect } from 'chai'
import { createHost } from '../../core/create-host.ts'
import { defineTool } from '../../core/index.ts'
import { createTestLog } from '../../core/testing/test-log.ts'
import { LOGIN, lock, WELL_KNOWN } from '../plugins/resource-metadata/documents.ts'
import { closePaths, readToolNames, requestPath } from '../support/raw-path.ts'
import { type StartedHost, startHost, stopHosts, type TestConfig } from '../support/start-host.ts'

const toolset = (name: string) => [defineTool({ name, handler: () => name })]
const guard = { authorize: true as const }
const OFF = { 'transport-sse': false, 'resource-metadata': false } as const

const config: TestConfig = {
  toolsets: { admin: toolset('admin'), root: toolset('root'), café: toolset('café'), clock: toolset('clock') },
  routes: {
    '/t/:category?': { toolsets: ':category', default: ['clock'] },
    '/t/admin': { toolsets: 'admin', ...guard },
    // Neither its stream nor its document is served: nor is that of the parameter route, for this name.
    '/t/root': { toolsets: 'root', ...guard, stateless: true, plugins: OFF },
    '/t/café': { toolsets: 'café', ...guard },
    '/tenants/:tenant': { toolsets: 'clock' },
    '/tenants/root': { toolsets: 'root', ...guard },
  },
  plugins: {
    'transport-streamable': {},
    'transport-sse': {},
    lock: lock(),
    'resource-metadata': { authorizationServers: [LOGIN] },
    health: {},
  },
}

/** Of a path whose last part can be spelled in these ways; what is odd is nowhere. */
const SPELLINGS: Record<string, readonly string[]> = {
  '/t/admin': [
    ...['/t/%61dmin', '/t/%61%64%6D%69%6e', '/%74/admin', '/t/admin/', '/t/%61dmin/'],
    ...['/t/admin//', '/t//admin', '//t/admin', '/t/./admin', '/t/x/../admin', '/t/%2e/admin', '/t/admin/.'],
    ...['/t/admin%2f', '/t%2fadmin', '/t/admin%5c', '/t\\admin', '/t/admin\\', '/t/admin%00', '/t/admin%0a'],
    ...['/t/%2561dmin', '/t/%6', '/t/admin%', '/t/%c1%a1dmin', '/t/ADMIN', '/T/admin', '/t/admin;a=b', '/t/admin%20'],
  ],
  '/t/root': ['/t/%72oot', '/t/root/', '/t/root//', '/t/%72%6f%6f%74/', '/t/roo%74'],
  '/t/caf%C3%A9': ['/t/caf%c3%a9', '/%74/%63af%C3%A9/', '/t/cafe%CC%81', '/t/caf%E9', '/t/caf%C3%89'],
  '/tenants/root': ['/tenants/%72oot', '/tenants/root//', '/tenants/root/', '/%74enants/root'],
}

let host: StartedHost
before(async () => {
  host = await startHost(config)
})
after(closePaths)
after(stopHosts)

describe('guarded fixed route next to an open parameter route', () => {
  for (const [guarded, spellings] of Object.entries(SPELLINGS)) {
    it(`${guarded} requires a token in every path encoding`, async () => {
      const seen: Record<number, number> = {}
      for (const path of [guarded, ...spellings]) {
        for (const suffix of ['', '/sse', '/message?sessionId=x']) {
          const spelled = path.endsWith('/') && suffix !== '' ? path.slice(0, -1) + suffix : path + suffix
          const { status } = await requestPath(host.url, suffix === '/sse' ? 'GET' : 'POST', spelled)
          expect([401, 404], `${spelled}: ${status}`).to.include(status)
          seen[status] = (seen[status] ?? 0) + 1
        }
      }
      expect(seen[401]).to.be.greaterThan(1)
    })
  }

  it('serves one protected resource metadata document per URL', async () => {
    const resourceAt = async (path: string) => {
      const { status, body } = await requestPath(host.url, 'GET', `${WELL_KNOWN}${path}`)
      return status === 200 ? new URL(JSON.parse(body).resource).pathname : status
    }
    expect(await resourceAt('/t/admin')).to.equal('/t/admin')
    expect(await resourceAt('/t/%61dmin/')).to.equal('/t/admin')
    expect(await resourceAt('/t/caf%c3%a9')).to.equal('/t/caf%C3%A9')
    for (const path of ['/t/root', '/t/%72oot', '/t/roo%74/', '/t/admin//', '/t/x%2fadmin']) {
      expect(await resourceAt(path), path).to.equal(404)
    }
  })

  it('serves the open routes in equivalent path encodings', async () => {
    for (const [path, tool] of [
      ['/t', 'clock'],
      ['/t/', 'clock'],
      ['/t/clock', 'clock'],
      ['/%74/cloc%6B/', 'clock'],
      ['/tenants/anybody', 'clock'],
      ['/tenants/%72oots', 'clock'],
      ['/tenants/Root', 'clock'],
    ] as const) {
      const answer = await requestPath(host.url, 'POST', path)
      expect([answer.status, readToolNames(answer)], path).to.deep.equal([200, [tool]])
    }
    expect((await requestPath(host.url, 'GET', '/t/clock/sse')).status).to.equal(200)
    expect((await requestPath(host.url, 'GET', '/%68ealth/')).status).to.equal(200)
  })

  it('does not serve or list toolsets of the guarded route on the open route', () => {
    const open = host.host.routes.find(({ path }) => path === '/t/:category?')
    expect(open?.toolsets).to.deep.equal(['clock'])
    expect(host.host.inspect('/t/%61dmin')?.route.path).to.equal('/t/admin')
    expect(host.host.inspect('/t/admin//')).to.equal(undefined)
  })
})

describe('open route of a host that other machines can reach', () => {
  const warned = async (http: object, routes: TestConfig['routes'], purpose: 'inspect' | 'serve' = 'inspect') => {
    const log = createTestLog()
    const server = { name: 'test-host', version: '1.2.3' }
    const plugins = { 'transport-streamable': {}, lock: lock() }
    const host = await createHost({ ...config, server, http, routes, plugins }, { log, purpose })
    await host.close()
    return log.lines.flatMap(line => (line.message?.includes('without a token') ? [line['routes']] : []))
  }
  const open = { '/': { toolsets: 'clock' }, '/admin': { toolsets: 'admin', ...guard } }

  it('is reported by check and at startup', async () => {
    for (const purpose of ['inspect', 'serve'] as const)
      expect(await warned({ host: '0.0.0.0' }, open, purpose)).to.deep.equal([['/']])
    expect(await warned({ host: '::' }, open)).to.deep.equal([['/']])
    expect(await warned({ host: '192.0.2.7' }, open)).to.deep.equal([['/']])
  })

  it('is not reported with publicUrl, allowedHosts, authorize or a loopback address', async () => {
    const host = '0.0.0.0'
    expect(await warned({ host, publicUrl: 'https://mcp.example' }, open)).to.deep.equal([])
    expect(await warned({ host, allowedHosts: ['mcp.example'] }, open)).to.deep.equal([])
    expect(
      await warned({ host, publicUrl: 'https://a.example' }, { '/': { toolsets: 'clock', ...guard } }),
    ).to.deep.equal([])
    expect(await warned({ host: '127.0.0.1' }, open)).to.deep.equal([])
  })
})

describe('toolset that is guarded on one route', () => {
  const warned = async ({ routes, ...more }: Partial<TestConfig>) => {
    const { log } = await startHost({ ...config, ...more, routes: routes ?? {} })
    return log.flatMap(line =>
      line.message?.includes('which another route guards') ? [[line['route'], line['guardedBy'], line.level]] : [],
    )
  }
  const open = { '/t/:category?': { toolsets: ':category', default: ['clock'] } }

  it('startup warns when an open route serves the same toolset', async () => {
    const routes = { ...open, '/admin': { toolsets: ['admin'], ...guard }, '/all': { toolsets: ['clock', 'admin'] } }
    expect(await warned({ routes })).to.deep.equal([
      ['/t/:category?', ['/admin'], 'warn'],
      ['/all', ['/admin'], 'warn'],
    ])
  })

  it('does not warn when the open route cannot reach it or both routes are guarded', async () => {
    expect(await warned({ routes: { ...open, '/t/admin': { toolsets: ['admin'], ...guard } } })).to.deep.equal([])
    const kept = { '/t/:category?': { ...open['/t/:category?'], ...guard } }
    expect(await warned({ routes: { ...kept, '/admin': { toolsets: ['admin'], ...guard } } })).to.deep.equal([])
  })

  it('does not warn when every item has its own access rule', async () => {
    const purge = defineTool({ name: 'purge', access: 'admin', handler: () => 'done' })
    const toolsets = { clock: toolset('clock'), admin: [purge] }
    const plugins = { ...config.plugins, 'tool-policy': { policies: { admin: { role: 'admin' } } } }
    const routes = { ...open, '/admin': { toolsets: ['admin'], ...guard } }
    expect(await warned({ routes, toolsets, plugins })).to.deep.equal([])
    const second = { clock: toolset('clock'), admin: [purge, ...toolset('status')] }
    expect(await warned({ routes, toolsets: second, plugins })).to.deep.equal([['/t/:category?', ['/admin'], 'warn']])
  })
})
