// Tests protected resource metadata documents (RFC 9728, MCP authorization).
import { expect } from 'chai'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { challengedUrl, fetchDocument, LOGIN, protectedBy, readSlot, WELL_KNOWN } from './documents.ts'

const slot = readSlot()

let url: string
before(async () => {
  ;({ url } = await startHost(
    protectedBy({ scopesSupported: ['mcp.tools', 'mcp.admin'] }, { plugins: { slot: slot.plugin } }),
  ))
})
after(stopHosts)

/** Path of an address -> path of its document and its resource. */
const ADDRESSES = [
  ['/', WELL_KNOWN, ''],
  ['/admin', `${WELL_KNOWN}/admin`, '/admin'],
  ['/t', `${WELL_KNOWN}/t`, '/t'],
  ['/t/clock', `${WELL_KNOWN}/t/clock`, '/t/clock'],
  ['/t/calculator/', `${WELL_KNOWN}/t/calculator`, '/t/calculator'],
] as const

describe('resource-metadata: documents', () => {
  for (const [address, path, resource] of ADDRESSES) {
    it(`at ${path} describe ${address} as a resource, and the challenge there links to it`, async () => {
      expect(await fetchDocument(`${url}${path}`)).to.deep.equal({
        resource: `${url}${resource}`,
        authorization_servers: [LOGIN],
        scopes_supported: ['mcp.tools', 'mcp.admin'],
        bearer_methods_supported: ['header'],
      })
      expect(await challengedUrl(`${url}${address}`)).to.equal(`${url}${path}`)
    })
  }

  it('are public JSON: readable without a token and from any origin', async () => {
    const answer = await fetch(`${url}${WELL_KNOWN}/admin`, { headers: { Origin: 'https://inspector.example' } })
    expect(answer.status).to.equal(200)
    expect(answer.headers.get('content-type')).to.match(/^application\/json/)
    expect(answer.headers.get('access-control-allow-origin')).to.equal('*')
  })

  it('ignore a trailing slash', async () => {
    for (const path of ['', '/t/clock']) {
      const plain = await fetchDocument(`${url}${WELL_KNOWN}${path}`)
      expect(await fetchDocument(`${url}${WELL_KNOWN}${path}/`)).to.deep.equal(plain)
    }
  })

  it('answer CORS preflight requests with any header', async () => {
    for (const path of [WELL_KNOWN, `${WELL_KNOWN}/t/clock`]) {
      const answer = await fetch(`${url}${path}`, {
        method: 'OPTIONS',
        headers: {
          Origin: 'https://inspector.example',
          'Access-Control-Request-Method': 'GET',
          'Access-Control-Request-Headers': 'mcp-protocol-version',
        },
      })
      expect(answer.status).to.equal(204)
      expect(answer.headers.get('access-control-allow-origin')).to.equal('*')
      expect(answer.headers.get('access-control-allow-methods')).to.equal('GET')
      expect(answer.headers.get('access-control-allow-headers')).to.equal('mcp-protocol-version')
    }
  })

  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS']) {
    it(`answer ${method} with 405 and Allow: GET`, async () => {
      const answer = await fetch(`${url}${WELL_KNOWN}/admin`, { method })
      expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'GET'])
    })
  }

  it('answer 404, with CORS headers, for an unknown category or route', async () => {
    for (const path of ['/t/nothing', '/t/clock/more']) {
      const answer = await fetch(`${url}${WELL_KNOWN}${path}`)
      expect(answer.status, path).to.equal(404)
    }
    const unknown = await fetch(`${url}${WELL_KNOWN}/t/nothing`, { headers: { Origin: 'https://inspector.example' } })
    expect(unknown.headers.get('access-control-allow-origin')).to.equal('*')
  })

  it('provide resource, document URL and scopes of each route to auth plugins', () => {
    const [admin, category] = [slot.route('/admin'), slot.route('/t/:category?')]
    const { resourceOf, metadataUrlOf, scopesOf } = slot.resource()
    expect(resourceOf(admin, {})).to.equal(`${url}/admin`)
    expect(resourceOf(category, { category: 'clock' })).to.equal(`${url}/t/clock`)
    expect(metadataUrlOf(category, { category: 'clock' })).to.equal(`${url}${WELL_KNOWN}/t/clock`)
    expect(scopesOf(admin)).to.deep.equal(['mcp.tools', 'mcp.admin'])
  })
})

describe('resource-metadata: optional fields', () => {
  it('use the RFC names, and are absent if not configured', async () => {
    const full = await startHost(
      protectedBy({
        bearerMethodsSupported: ['header', 'body'],
        resourceName: 'Acme tools',
        resourceDocumentation: 'https://acme.example/docs',
        resourcePolicyUri: 'https://acme.example/policy',
        resourceTosUri: 'https://acme.example/terms?lang=en',
        jwksUri: 'https://acme.example/jwks.json',
        resourceSigningAlgValuesSupported: ['ES256'],
        tlsClientCertificateBoundAccessTokens: true,
        authorizationDetailsTypesSupported: ['payment'],
        dpopSigningAlgValuesSupported: ['ES256'],
        dpopBoundAccessTokensRequired: false,
      }),
    )
    expect(await fetchDocument(`${full.url}${WELL_KNOWN}/admin`)).to.deep.equal({
      resource: `${full.url}/admin`,
      authorization_servers: [LOGIN],
      bearer_methods_supported: ['header', 'body'],
      resource_name: 'Acme tools',
      resource_documentation: 'https://acme.example/docs',
      resource_policy_uri: 'https://acme.example/policy',
      resource_tos_uri: 'https://acme.example/terms?lang=en',
      jwks_uri: 'https://acme.example/jwks.json',
      resource_signing_alg_values_supported: ['ES256'],
      tls_client_certificate_bound_access_tokens: true,
      authorization_details_types_supported: ['payment'],
      dpop_signing_alg_values_supported: ['ES256'],
      dpop_bound_access_tokens_required: false,
    })
  })
})
