// Tests the document URLs with `resource`, `resourceMetadataUri`, `http.publicUrl` and route options.
import { expect } from 'chai'
import { requestHead, sendRaw } from '../../support/raw-http.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { challengedUrl, fetchDocument, LOGIN, protectedBy, WELL_KNOWN } from './documents.ts'

after(stopHosts)

const RESOURCE = 'https://mcp.acme.example'
const resourceAt = async (url: string) => (await fetchDocument(url))['resource']
const statusOf = async (url: string) => (await fetch(url)).status
const only = (path: string) => ({ routes: { [path]: { toolsets: 'clock', authorize: true as const } } })

describe('resource-metadata: `resource`', () => {
  it('is in every document, each at its own URL', async () => {
    const { url } = await startHost(protectedBy({ resource: RESOURCE }))
    for (const path of ['', '/admin', '/t', '/t/clock']) {
      expect(await resourceAt(`${url}${WELL_KNOWN}${path}`)).to.equal(RESOURCE)
    }
    expect(await challengedUrl(`${url}/t/clock`)).to.equal(`${url}${WELL_KNOWN}/t/clock`)
  })

  it('is served at the root and at its own path, even without a route there', async () => {
    const { url } = await startHost(protectedBy({ resource: `${RESOURCE}/api` }, only('/api/tools')))
    for (const path of ['', '/api', '/api/tools']) {
      expect(await resourceAt(`${url}${WELL_KNOWN}${path}`)).to.equal(`${RESOURCE}/api`)
    }
  })

  it('if not set, serves no root document without a root route', async () => {
    const { url } = await startHost(protectedBy({}, only('/mcp')))
    expect([await statusOf(`${url}${WELL_KNOWN}`), await statusOf(`${url}${WELL_KNOWN}/mcp`)]).to.deep.equal([404, 200])
    const categories = await startHost(
      protectedBy({}, { routes: { '/:category?': { toolsets: ':category', default: ['clock'] } } }),
    )
    expect(await resourceAt(`${categories.url}${WELL_KNOWN}`)).to.equal(categories.url)
    expect(await resourceAt(`${categories.url}${WELL_KNOWN}/clock`)).to.equal(`${categories.url}/clock`)
  })
})

describe('resource-metadata: `resourceMetadataUri`', () => {
  for (const uri of ['/oauth/resource.json', 'oauth/resource.json']) {
    it(`${uri} is a path of this host, and the only document URL`, async () => {
      const { url } = await startHost(protectedBy({ resource: RESOURCE, resourceMetadataUri: uri }))
      expect(await resourceAt(`${url}/oauth/resource.json`)).to.equal(RESOURCE)
      for (const path of ['', '/admin', '/t/clock']) expect(await statusOf(`${url}${WELL_KNOWN}${path}`)).to.equal(404)
      expect(await challengedUrl(`${url}/admin`)).to.equal(`${url}/oauth/resource.json`)
      expect(await challengedUrl(`${url}/t/clock`)).to.equal(`${url}/oauth/resource.json`)
    })
  }

  it('can be a URL of this host', async () => {
    const http = { publicUrl: 'https://mcp.acme.example/tools' }
    const resourceMetadataUri = 'https://mcp.acme.example/tools/resource.json'
    const { url } = await startHost(protectedBy({ resource: RESOURCE, resourceMetadataUri }, { http }))
    expect(await resourceAt(`${url}/resource.json`)).to.equal(RESOURCE)
    expect(await challengedUrl(`${url}/admin`)).to.equal(resourceMetadataUri)
  })

  it('can be a URL of another host: challenges name it, and this host does not serve it', async () => {
    const http = { publicUrl: RESOURCE }
    const resourceMetadataUri = 'https://static.acme.example/resource.json'
    const { url, log } = await startHost(protectedBy({ resource: RESOURCE, resourceMetadataUri }, { http }))
    expect(await challengedUrl(`${url}/admin`)).to.equal(resourceMetadataUri)
    for (const path of ['/resource.json', WELL_KNOWN]) expect(await statusOf(`${url}${path}`)).to.equal(404)
    expect(log.some(line => line['url'] === resourceMetadataUri)).to.equal(true)
  })
})

describe('resource-metadata: `http.publicUrl`', () => {
  it('is the base of resources and challenges behind a TLS proxy, without http: URLs', async () => {
    const { url } = await startHost(protectedBy({}, { http: { publicUrl: `${RESOURCE}/`, trustProxy: true } }))
    const headers = { Host: 'mcp.acme.example', 'X-Forwarded-Proto': 'http', 'X-Forwarded-Host': 'mcp.acme.example' }
    const document = await sendRaw(url, requestHead(url, { method: 'GET', path: `${WELL_KNOWN}/t/clock`, headers }))
    expect(document.message.resource).to.equal(`${RESOURCE}/t/clock`)
    expect(document.text).not.to.contain('http:')
    const refused = await sendRaw(url, requestHead(url, { path: '/t/clock', headers }))
    expect(refused.headers.get('www-authenticate')).to.contain(`"${RESOURCE}${WELL_KNOWN}/t/clock"`)
    const root = await sendRaw(url, requestHead(url, { method: 'GET', path: WELL_KNOWN, headers }))
    expect(root.message.resource).to.equal(RESOURCE)
  })

  it('with a path: serves documents below it and at the RFC 9728 location', async () => {
    const publicUrl = `${RESOURCE}/tools`
    const { url } = await startHost(protectedBy({}, { http: { publicUrl } }))
    expect(await challengedUrl(`${url}/t/clock`)).to.equal(`${publicUrl}${WELL_KNOWN}/t/clock`)
    expect(await challengedUrl(url)).to.equal(`${publicUrl}${WELL_KNOWN}`)
    for (const path of [WELL_KNOWN, `${WELL_KNOWN}/tools`]) {
      expect(await resourceAt(`${url}${path}`)).to.equal(publicUrl)
      expect(await resourceAt(`${url}${path}/admin`)).to.equal(`${publicUrl}/admin`)
      expect(await resourceAt(`${url}${path}/t/clock`)).to.equal(`${publicUrl}/t/clock`)
      expect(await statusOf(`${url}${path}/t/nothing`)).to.equal(404)
    }
  })
})

describe('resource-metadata: route options', () => {
  it('apply to their route only, and a route with the plugin off has no document', async () => {
    const route = { toolsets: 'clock', authorize: true as const }
    const scopesSupported = ['mcp.admin']
    const { url } = await startHost(
      protectedBy(
        { resource: RESOURCE },
        {
          routes: {
            '/tools': route,
            '/admin': { ...route, plugins: { 'resource-metadata': { scopesSupported } } },
            '/other': { ...route, plugins: { 'resource-metadata': { resource: 'https://other.acme.example' } } },
            '/off': { ...route, plugins: { 'resource-metadata': false } },
          },
        },
      ),
    )
    const base = { authorization_servers: [LOGIN], bearer_methods_supported: ['header'] }
    const general = { resource: RESOURCE, ...base }
    expect(await fetchDocument(`${url}${WELL_KNOWN}`)).to.deep.equal(general)
    expect(await fetchDocument(`${url}${WELL_KNOWN}/tools`)).to.deep.equal(general)
    expect(await fetchDocument(`${url}${WELL_KNOWN}/admin`)).to.deep.equal({
      ...general,
      scopes_supported: ['mcp.admin'],
    })
    expect(await resourceAt(`${url}${WELL_KNOWN}/other`)).to.equal('https://other.acme.example')
    expect(await statusOf(`${url}${WELL_KNOWN}/off`)).to.equal(404)
    for (const path of ['/tools', '/admin', '/other']) {
      expect(await challengedUrl(`${url}${path}`)).to.equal(`${url}${WELL_KNOWN}${path}`)
    }
    expect(await challengedUrl(`${url}/off`)).to.equal(undefined)
  })
})
