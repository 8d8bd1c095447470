// Resource metadata in the config: what stops the start, and what the operator is warned of.
import { expect } from 'chai'
import type { ResourceMetadataOptions } from '../../../plugins/resource-metadata/index.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { LOGIN, lock, protectedBy } from './documents.ts'

const NAME = "plugins['resource-metadata']"

describe('resource metadata in the config', () => {
  after(stopHosts)

  it('stops the start where the host listens off loopback without a publicUrl', async () => {
    for (const host of ['0.0.0.0', '::']) {
      await expectStopped(protectedBy({}, { http: { port: 0, host } }), `${NAME}: set http.publicUrl`)
    }
    await startHost(protectedBy({}, { http: { port: 0, host: '0.0.0.0', publicUrl: 'https://mcp.acme.example' } }))
  })

  it('stops the start without authorizationServers, on a route alone too', async () => {
    const { plugins, ...rest } = protectedBy({})
    const none = { ...plugins, 'resource-metadata': {} as ResourceMetadataOptions }
    await expectStopped({ ...rest, plugins: none }, 'authorizationServers')
    const routes = {
      '/': { toolsets: 'clock', plugins: { 'resource-metadata': { resourceName: 'x' } as ResourceMetadataOptions } },
    }
    const { 'resource-metadata': _, ...others } = plugins
    await expectStopped({ ...rest, routes, plugins: others }, `${NAME}.authorizationServers: missing`)
  })

  it('stops the start with resourceMetadataUri but no resource', async () => {
    await expectStopped(
      protectedBy({ resourceMetadataUri: '/resource.json' }),
      '.resourceMetadataUri: it needs `resource`',
    )
  })

  it('stops the start where it would demand proofs that nothing checks, and warns of what it promises beside', async () => {
    const words = /dpopBoundAccessTokensRequired: nothing asks for proofs .* set dpop: \{ mode: 'required' \}/
    await expectStopped(protectedBy({ dpopBoundAccessTokensRequired: true }), words)
    const route = { toolsets: 'clock', plugins: { 'resource-metadata': { dpopBoundAccessTokensRequired: true } } }
    const onRoute = protectedBy({}, { routes: { '/': { toolsets: 'clock' }, '/dpop': route } })
    await expectStopped(onRoute, words)
    await startHost(protectedBy({ dpopBoundAccessTokensRequired: false }))
    const { log } = await startHost(
      protectedBy({
        tlsClientCertificateBoundAccessTokens: true,
        dpopSigningAlgValuesSupported: ['ES256'],
        bearerMethodsSupported: ['header', 'query'],
      }),
    )
    const told = log.filter(({ message }) => message?.includes('is published, but nothing here does what it promises'))
    expect(told).to.have.length(3)
  })

  it('stops the start where the document would be at an address that something else has', async () => {
    const clash = protectedBy({ resource: 'https://mcp.acme.example', resourceMetadataUri: '/admin' })
    await expectStopped(clash, /both serve \/admin; /)
  })

  it('stops the start for values that no client could use, and names them', async () => {
    const wrong: Array<[Partial<ResourceMetadataOptions>, string]> = [
      [{ resource: 'mcp.acme.example' }, 'resource'],
      [{ resource: 'https://mcp.acme.example/#x' }, 'resource'],
      [{ resource: 'http://mcp.acme.example' }, 'resource'],
      [{ resource: 'https://mcp.acme.example', resourceMetadataUri: '/a?b' }, 'resourceMetadataUri'],
      [{ resource: 'https://mcp.acme.example', resourceMetadataUri: '/a/:b' }, 'resourceMetadataUri'],
      [{ authorizationServers: [] }, 'authorizationServers'],
      [{ authorizationServers: ['login.acme.example'] }, 'authorizationServers[0]'],
      [{ scopesSupported: ['two words'] }, 'scopesSupported[0]'],
      [{ scopesSupported: [] }, 'scopesSupported'],
      [{ bearerMethodsSupported: ['cookie' as 'header'] }, 'bearerMethodsSupported[0]'],
      [{ resourceSigningAlgValuesSupported: ['none'] }, 'resourceSigningAlgValuesSupported[0]'],
      [{ jwksUri: '/jwks.json' }, 'jwksUri'],
    ]
    for (const [options, key] of wrong) {
      await expectStopped(protectedBy(options), `${NAME}.${key}`)
    }
  })

  it('stops the start where another plugin fills the same slot', async () => {
    const other = plugin(host => {
      host.fill('protectedResource', {
        resourceOf: route => route.path,
        metadataUrlOf: () => undefined,
        scopesOf: () => [],
      })
    })
    const plugins = { other, lock: lock() }
    await expectStopped(protectedBy({}, { plugins }), 'already provides the protectedResource')
  })

  it('warns of a publicUrl off loopback that is not https', async () => {
    const warned = async (publicUrl: string) => {
      const { log } = await startHost(protectedBy({ authorizationServers: [LOGIN] }, { http: { port: 0, publicUrl } }))
      return log.filter(line => line.level === 'warn').map(line => line['publicUrl'])
    }
    expect(await warned('http://mcp.internal')).to.deep.equal(['http://mcp.internal'])
    expect(await warned('http://localhost:8080')).to.deep.equal([])
  })
})
