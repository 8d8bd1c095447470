// Tests the responses for unknown or unavailable clients: a page for browsers, JSON for programs and a log line.
import { expect } from 'chai'
import { type StartedBridge, startBridge, stopBridges } from '../../support/bridge.ts'

describe('auth-bridge: rejected clients', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge()
  })
  after(stopBridges)

  async function openAs(clientId: string, accept: string | undefined) {
    const client = await bridge.client()
    client.clientId = clientId
    const headers = accept === undefined ? {} : { Accept: accept }
    const response = await fetch(client.authorizeUrl({ scope: 'read' }), { redirect: 'manual', headers })
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() }
  }

  for (const accept of ['text/html,application/xhtml+xml,*/*;q=0.8', '*/*', undefined, 'text/html, application/json'])
    it(`shows an HTML page to a browser: ${accept ?? 'no Accept'}`, async () => {
      const { status, type, text } = await openAs('reg.of.nobody', accept)
      expect([status, type]).to.deep.equal([400, 'text/html; charset=utf-8'])
      expect(text).to.include('Invalid sign-in request').and.include('invalid_client')
    })

  for (const accept of ['application/json', 'application/json, text/html;q=0.5'])
    it(`returns JSON to a program: ${accept}`, async () => {
      const { status, type, text } = await openAs('reg.of.nobody', accept)
      expect([status, type]).to.deep.equal([400, 'application/json; charset=utf-8'])
      expect(JSON.parse(text)).to.include({ error: 'invalid_client', iss: bridge.issuer })
    })

  it('logs the reason with a shortened client id and without secrets', async () => {
    const before = bridge.log.length
    await openAs('https://127.0.0.1:4/client.json', 'text/html')
    await openAs('x'.repeat(5_000), 'text/html')
    const form = { grant_type: 'refresh_token', client_id: 'reg.of.nobody', refresh_token: 'one that is secret' }
    await fetch(`${bridge.issuer}/token`, { method: 'POST', body: new URLSearchParams(form) })
    const lines = bridge.log.slice(before).filter(({ message }) => message === 'refused a client request')
    expect(lines.map(({ at, client, error }) => [at, String(client).length, error])).to.deep.equal([
      ['authorization', 31, 'invalid_client'],
      ['authorization', 200, 'invalid_client'],
      ['token', 13, 'invalid_client'],
    ])
    expect(lines[0]).to.include({ text: 'client_id metadata document fetch failed' })
    expect(lines[0]?.['detail']).to.match(/^127\.0\.0\.1:4 is at 127\.0\.0\.1, inside a network/)
    expect(JSON.stringify(lines)).to.not.include('secret')
  })
})
