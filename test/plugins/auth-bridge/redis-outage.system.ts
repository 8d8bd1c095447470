// Tests auth-bridge while Redis is unavailable and after it recovers.
import { expect } from 'chai'
import { type StartedBridge, startBridge } from '../../support/bridge.ts'
import { eventually } from '../../support/eventually.ts'
import { stopIdentityProviders } from '../../support/identity-provider.ts'
import { callAs } from '../../support/protected-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../../support/redis-server.ts'
import { stopHosts } from '../../support/start-host.ts'

describe('auth-bridge: Redis outage', () => {
  let redis: RedisServer
  let bridge: StartedBridge

  before(async function () {
    needsRedis(this)
    redis = await startRedis({ persistent: true })
    bridge = await startBridge({
      plugins: { 'grant-store-redis': {} },
      config: { redis: { url: redis.url, commandTimeout: '5s' } },
    })
  })
  after(async () => {
    await stopHosts()
    await redis?.remove()
    await stopIdentityProviders()
  })

  it('answers 503 as an OAuth error and as a page, and resumes sessions after recovery', async () => {
    const client = await bridge.client()
    const tokens = await client.logIn({ scope: 'read' })
    const page = await client.ask({ scope: 'read' })
    await redis.kill()
    const refused = await eventually(
      'a refresh is refused',
      () => client.refresh(tokens.refresh_token ?? ''),
      ({ error }) => error === 'temporarily_unavailable',
    )
    expect(refused.error_description).to.equal('the store of this server is not available now')
    const form = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token ?? '', client_id: client.clientId }
    const answer = await fetch(`${bridge.issuer}/token`, { method: 'POST', body: new URLSearchParams(form) })
    expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '5'])
    // What needs nothing that is kept goes on.
    expect((await callAs(bridge.resource, tokens.access_token)).status).to.equal(200)
    expect((await client.register()).status).to.equal(201)
    const shown = await client.browser.page(page.url)
    expect([shown.status, shown.headers.get('retry-after'), shown.headers.get('content-type')]).to.deep.equal([
      503,
      '5',
      'text/html; charset=utf-8',
    ])
    expect(shown.html).to.include('Reload this page')
    await redis.start()
    const next = await eventually(
      'a refresh works',
      () => client.refresh(tokens.refresh_token ?? ''),
      ({ error }) => error !== 'temporarily_unavailable',
    )
    expect(next.error).to.equal(undefined)
    expect((await client.logIn({ scope: 'read' })).error).to.equal(undefined)
  })
})
