// Tests which request headers are stored with a session and sent to other nodes: all without credentials.
import { expect } from 'chai'
import { withoutCredentials } from '../../core/sessions/credentials.ts'

const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl'

const SECRET = {
  authorization: 'Bearer one',
  'proxy-authorization': 'Basic one',
  cookie: 'a=b',
  'set-cookie': ['a=b'],
  'x-api-key': 'one',
  'x-forwarded-access-token': 'one',
  'cf-access-jwt-assertion': 'one',
  'x-goog-iap-jwt-assertion': 'one',
  'x-amzn-oidc-accesstoken': 'one',
  'x-amzn-oidc-data': JWT,
  'x-auth-request-access-token': 'one',
  'x-auth': 'one',
  'x-auth-key': 'one',
  'x-custom-auth': 'one',
  'x-csrf-token': 'one',
  'x-xsrf': 'one',
  'client-secret': 'one',
  'x-hub-signature-256': 'one',
  'x-password': 'one',
  'x-passwd': 'one',
  'x-credentials': 'one',
  'mcp-session-id': 'one',
  'X-Api-Key': 'one',
  'x-anything': 'bearer one',
  'x-raw': `before ${JWT}`,
  'x-many': ['plain', 'Basic dXNlcjpwYXNz'],
  'x-pat': 'one',
  'x-sid': 'one',
  'connect.sid': 'one',
  'x-pin': 'one',
  'x-otp-code': 'one',
  'x-pwd': 'one',
  'x-license': 'one',
  'x-licence': 'one',
  'x-saml': 'one',
  'x-acme-ticket': 'one',
  'x-shopify-hmac-sha256': 'one',
  'x-forwarded-client-cert': 'By=spiffe://example;Hash=0a1b2c;URI=spiffe://client',
  'ssl-client-cert': 'one',
  'x-amzn-mtls-clientcert-leaf': 'one',
  'x-github': 'ghp_0123456789abcdefghijklmnopqrstuvwxyzAB',
  'x-github-app': 'a=ghs_0123456789abcdefghijklmnopqrstuvwxyzAB',
  'x-github-new': 'github_pat_11ABCDEFG0123456789_abcdefghijklmnopqrstuvwxyz',
  'x-gitlab': 'glpat-0123456789abcdefghij',
  'x-model': 'sk-proj-0123456789abcdefghij',
  'x-payment': 'sk_live_0123456789abcdefghij',
  'x-chat': 'xoxb-0123456789-abcdefghijkl',
  'x-cloud': 'AKIAIOSFODNN7EXAMPLE',
  'x-map': 'AIzaSyA0123456789abcdefghijklmnopqrstuv',
  'x-drive': 'ya29.a0123456789abcdefghij',
  'x-registry': 'npm_0123456789abcdefghijklmnopqrstuvwxyz',
  'x-hub': 'hf_0123456789abcdefghijklmnopqrst',
  'x-pem': '-----BEGIN%20CERTIFICATE-----%0Aone',
  referer: 'https://example.com/page?access_token=one&page=2',
  'x-referer': 'https://example.com/page?sid=one',
  'x-original-url': '/callback?code=one',
}

const PLAIN = {
  'user-agent': 'client/1.0 (X11; Linux x86_64)',
  accept: 'application/json, text/event-stream',
  'accept-language': 'de-CH, de;q=0.9',
  'content-type': 'application/json; charset=utf-8',
  host: 'mcp.example.com',
  origin: 'https://app.example.com',
  referer: 'https://example.com/page?tab=2',
  forwarded: 'for=192.0.2.60;proto=https;by=203.0.113.43',
  'x-forwarded-for': '192.0.2.60',
  'x-real-ip': '192.0.2.60',
  'x-request-id': '0f8fad5b-d9cb-469f-a165-70867728950e',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=00f067aa0ba902b7',
  baggage: 'tenant=blue,region=eu',
  'mcp-protocol-version': '2025-11-25',
  'x-tenant': 'blue',
  'x-path': 'a',
  'x-side': 'left',
  'x-spin': 'up',
  'x-region': 'sk-north',
  'x-tier': 'gold',
  'x-team': ['blue', 'green'],
  'x-user': 'ann',
  'x-auth-request-user': 'ann',
  'x-auth-request-preferred-username': 'ann',
  'x-auth-request-email': 'ann@example.com',
  'x-auth-request-groups': 'analysts,admins',
  'x-authenticated-userid': '17',
  'x-forwarded-email': 'ann@example.com',
  'x-amzn-oidc-identity': '17',
}

describe('Stored request headers', () => {
  it('omit credentials by header name and by value', () => {
    const kept = Object.keys(withoutCredentials(SECRET))
    expect(kept).to.deep.equal([])
  })

  it('keep all other headers unchanged', () => {
    expect(withoutCredentials(PLAIN)).to.deep.equal(PLAIN)
  })

  it('keep proxy identity headers by exact name only', () => {
    for (const name of ['x-auth-user-token', 'x-auth-user-x', 'auth-user', 'x-auth-email-key', 'y-x-auth-user']) {
      expect(withoutCredentials({ [name]: 'one' }), name).to.deep.equal({})
    }
  })
})
