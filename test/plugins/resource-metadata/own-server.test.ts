// Tests resource metadata that names the host itself as authorization server.
import { expect } from 'chai'
import { ownServer } from '../../fixtures/own-server.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { fetchDocument, LOGIN, protectedBy, WELL_KNOWN } from './documents.ts'

const NAME = "plugins['resource-metadata'].authorizationServers"
const CLOCK = { toolsets: 'clock' }

/** A config that names no authorization server. */
function unnamed(plugins: object, more: object = {}, options: object = {}) {
  const { plugins: given, ...rest } = protectedBy({}, more)
  return { ...rest, plugins: { ...given, 'resource-metadata': options, ...plugins } }
}

const serversAt = async (url: string) => (await fetchDocument(url))['authorization_servers']

describe('resource-metadata without authorizationServers', () => {
  after(stopHosts)

  it("names the host's issuer in each document, with the actual port", async () => {
    const own = ownServer()
    const { url } = await startHost(unnamed({ own: own.plugin }, {}, { scopesSupported: ['a'] }))
    for (const path of ['', '/admin', '/t/clock']) {
      expect(await fetchDocument(`${url}${WELL_KNOWN}${path}`)).to.deep.equal({
        resource: `${url}${path}`,
        authorization_servers: [`${url}/auth`],
        scopes_supported: ['a'],
        bearer_methods_supported: ['header'],
      })
    }
  })

  it('names the issuer under the public URL, also in the document of a shared resource', async () => {
    const http = { port: 0, publicUrl: 'https://mcp.acme.example' }
    const options = { resource: 'https://mcp.acme.example', resourceMetadataUri: '/resource.json' }
    const { url } = await startHost(unnamed({ own: ownServer().plugin }, { http }, options))
    expect(await serversAt(`${url}/resource.json`)).to.deep.equal(['https://mcp.acme.example/auth'])
  })

  it('names the authorization server of each route, and prefers route options', async () => {
    const named = {
      ...CLOCK,
      plugins: { a: false as const, b: false as const, 'resource-metadata': { authorizationServers: [LOGIN] } },
    }
    const routes = {
      '/a': { ...CLOCK, plugins: { b: false as const } },
      '/b': { ...CLOCK, plugins: { a: false as const } },
      '/c': named,
    }
    const plugins = { a: ownServer('/auth/a').plugin, b: ownServer('/auth/b').plugin }
    const { url } = await startHost(unnamed(plugins, { routes }))
    expect(await serversAt(`${url}${WELL_KNOWN}/a`)).to.deep.equal([`${url}/auth/a`])
    expect(await serversAt(`${url}${WELL_KNOWN}/b`)).to.deep.equal([`${url}/auth/b`])
    expect(await serversAt(`${url}${WELL_KNOWN}/c`)).to.deep.equal([LOGIN])
  })

  it('names only the configured authorization servers if set', async () => {
    const { url } = await startHost(protectedBy({}, { plugins: { own: ownServer().plugin } }))
    expect(await serversAt(`${url}${WELL_KNOWN}`)).to.deep.equal([LOGIN])
  })

  it('fails startup if a route has no authorization server, and names routes and options', async () => {
    await expectStopped(unnamed({}), `${NAME}: missing; set the authorization servers`)
    await expectStopped(unnamed({}), /auth-bridge/)
    const routes = { '/a': CLOCK, '/b': { ...CLOCK, plugins: { own: false } } }
    const words = `${NAME}: missing for routes['/b']; set the authorization servers`
    await expectStopped(unnamed({ own: ownServer().plugin }, { routes }), words)
  })

  it('reports the error together with errors of other plugins', async () => {
    const guarded = { '/': { ...CLOCK, authorize: true as const } }
    const config = { ...unnamed({ lock: false, 'auth-jwt': {} }, { routes: guarded }) }
    await expectStopped(
      config,
      /2 problems[\s\S]*(auth-jwt[\s\S]*authorizationServers|authorizationServers[\s\S]*auth-jwt)/,
    )
  })
})
