// Tests resource metadata options at startup: errors and warnings.
import { expect } from 'chai'
import type { ResourceMetadataOptions } from '../../../plugins/resource-metadata/index.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { LOGIN, lock, protectedBy } from './documents.ts'

const NAME = "plugins['resource-metadata']"

describe('resource-metadata: startup', () => {
  after(stopHosts)

  it('fails off loopback without a publicUrl', async () => {
    for (const host of ['0.0.0.0', '::']) {
      await expectStopped(protectedBy({}, { http: { port: 0, host } }), `${NAME}: set http.publicUrl`)
    }
    await startHost(protectedBy({}, { http: { port: 0, host: '0.0.0.0', publicUrl: 'https://mcp.acme.example' } }))
  })

  it('fails without authorizationServers, also on a single route', async () => {
    const { plugins, ...rest } = protectedBy({})
    const none = { ...plugins, 'resource-metadata': {} as ResourceMetadataOptions }
    await expectStopped({ ...rest, plugins: none }, 'authorizationServers')
    const routes = {
      '/': { toolsets: 'clock', plugins: { 'resource-metadata': { resourceName: 'x' } as ResourceMetadataOptions } },
    }
    const { 'resource-metadata': _, ...others } = plugins
    await expectStopped({ ...rest, routes, plugins: others }, `${NAME}.authorizationServers: missing`)
  })

  it('fails with resourceMetadataUri but no resource', async () => {
    await expectStopped(protectedBy({ resourceMetadataUri: '/resource.json' }), /resourceMetadataUri.*`resource`/)
  })

  it('fails if DPoP is required but not checked, and warns if it is only announced', async () => {
    const words = /dpopBoundAccessTokensRequired: no plugin requires proofs .* set dpop: \{ mode: 'required' \}/
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
    const told = log.filter(({ message }) => message?.includes('is published, but this host does not implement it'))
    expect(told).to.have.length(3)
  })

  it('fails if the document URL is already in use', async () => {
    const clash = protectedBy({ resource: 'https://mcp.acme.example', resourceMetadataUri: '/admin' })
    await expectStopped(clash, /both serve routes\['\/admin'\]; /)
  })

  it('fails for invalid values, and names them', async () => {
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

  it('fails if another plugin provides the same slot', async () => {
    const other = plugin(host => {
      host.provide('protectedResource', {
        resourceOf: route => route.path,
        metadataUrlOf: () => undefined,
        scopesOf: () => [],
      })
    })
    const plugins = { other, lock: lock() }
    await expectStopped(protectedBy({}, { plugins }), /protectedResource/)
  })

  it('warns about a publicUrl off loopback without https', async () => {
    const warned = async (publicUrl: string) => {
      const routes = { '/': { toolsets: 'clock', authorize: true as const } }
      const more = { http: { port: 0, publicUrl }, routes }
      const { log } = await startHost(protectedBy({ authorizationServers: [LOGIN] }, more))
      return log.filter(line => line.level === 'warn').map(line => line['publicUrl'])
    }
    expect(await warned('http://mcp.internal')).to.deep.equal(['http://mcp.internal'])
    expect(await warned('http://localhost:8080')).to.deep.equal([])
  })
})
