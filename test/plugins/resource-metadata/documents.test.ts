// Protected resource metadata as clients find it (RFC 9728, basic/authorization).
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

describe('protected resource metadata', () => {
  for (const [address, path, resource] of ADDRESSES) {
    it(`says at ${path} that ${address} is a resource of its own, and the challenge there says where`, async () => {
      expect(await fetchDocument(`${url}${path}`)).to.deep.equal({
        resource: `${url}${resource}`,
        authorization_servers: [LOGIN],
        scopes_supported: ['mcp.tools', 'mcp.admin'],
        bearer_methods_supported: ['header'],
      })
      expect(await challengedUrl(`${url}${address}`)).to.equal(`${url}${path}`)
    })
  }

  it('is JSON that anybody may read: without a token, and from any page', async () => {
    const answer = await fetch(`${url}${WELL_KNOWN}/admin`, { headers: { Origin: 'https://inspector.example' } })
    expect(answer.status).to.equal(200)
    expect(answer.headers.get('content-type')).to.match(/^application\/json/)
    expect(answer.headers.get('access-control-allow-origin')).to.equal('*')
  })

  it('is where the slash at the end does not count', async () => {
    for (const path of ['', '/t/clock']) {
      const plain = await fetchDocument(`${url}${WELL_KNOWN}${path}`)
      expect(await fetchDocument(`${url}${WELL_KNOWN}${path}/`)).to.deep.equal(plain)
    }
  })

  it('answers the preflight of a page, whatever headers it would send', async () => {
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
    it(`is 405 with Allow: GET on ${method}`, async () => {
      const answer = await fetch(`${url}${WELL_KNOWN}/admin`, { method })
      expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'GET'])
    })
  }

  it('is 404, readable by pages, for a category or a route that does not exist', async () => {
    for (const path of ['/t/nothing', '/t/clock/more']) {
      const answer = await fetch(`${url}${WELL_KNOWN}${path}`)
      expect(answer.status, path).to.equal(404)
    }
    const unknown = await fetch(`${url}${WELL_KNOWN}/t/nothing`, { headers: { Origin: 'https://inspector.example' } })
    expect(unknown.headers.get('access-control-allow-origin')).to.equal('*')
  })

  it('is the source of the slot that auth plugins read: resource, document and scopes of each route', () => {
    const [admin, category] = [slot.route('/admin'), slot.route('/t/:category?')]
    const { resourceOf, metadataUrlOf, scopesOf } = slot.resource()
    expect(resourceOf(admin, {})).to.equal(`${url}/admin`)
    expect(resourceOf(category, { category: 'clock' })).to.equal(`${url}/t/clock`)
    expect(metadataUrlOf(category, { category: 'clock' })).to.equal(`${url}${WELL_KNOWN}/t/clock`)
    expect(scopesOf(admin)).to.deep.equal(['mcp.tools', 'mcp.admin'])
  })
})

describe('optional fields', () => {
  it('have the names of the RFC, and those that the config leaves out are absent', async () => {
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
