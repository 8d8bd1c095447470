// Resource metadata where nobody names an authorization server: it is the host itself, on the routes that have one.
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

describe('resource metadata without authorizationServers', () => {
  after(stopHosts)

  it("names the host's own issuer in each document, by the address that it listens on", async () => {
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

  it('names it by the public URL where there is one, and in the one document of one resource', async () => {
    const http = { port: 0, publicUrl: 'https://mcp.acme.example' }
    const options = { resource: 'https://mcp.acme.example', resourceMetadataUri: '/resource.json' }
    const { url } = await startHost(unnamed({ own: ownServer().plugin }, { http }, options))
    expect(await serversAt(`${url}/resource.json`)).to.deep.equal(['https://mcp.acme.example/auth'])
  })

  it('names on each route the server of that route, and what a route says itself goes before', async () => {
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

  it('names those of the options alone where they are there', async () => {
    const { url } = await startHost(protectedBy({}, { plugins: { own: ownServer().plugin } }))
    expect(await serversAt(`${url}${WELL_KNOWN}`)).to.deep.equal([LOGIN])
  })

  it('stops the start where a route has no server, naming the routes and both ways', async () => {
    await expectStopped(unnamed({}), `${NAME}: missing; say who gives out tokens`)
    await expectStopped(unnamed({}), 'or switch on auth-bridge')
    const routes = { '/a': CLOCK, '/b': { ...CLOCK, plugins: { own: false } } }
    const words = `${NAME}: missing for routes['/b']; say who gives out tokens`
    await expectStopped(unnamed({ own: ownServer().plugin }, { routes }), words)
  })

  it('is told together with what other plugins miss', async () => {
    const guarded = { '/': { ...CLOCK, authorize: true as const } }
    const config = { ...unnamed({ lock: false, 'auth-jwt': {} }, { routes: guarded }) }
    await expectStopped(
      config,
      /2 problems[\s\S]*(auth-jwt[\s\S]*authorizationServers|authorizationServers[\s\S]*auth-jwt)/,
    )
  })
})
