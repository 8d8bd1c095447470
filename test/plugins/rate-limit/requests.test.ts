// Rate limits of HTTP requests: exact counts, keys by address, user and client, and rate limit headers.
import { expect } from 'chai'
import { addressKey } from '../../../core/auth.ts'
import { definePlugin } from '../../../core/internal.ts'
import type { CallRecord } from '../../../core/plugin.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { modern, modernRequest, post } from '../../support/rpc.ts'
import { openSession, postOpen, readWhole } from '../../support/session-client.ts'
import { stopHosts } from '../../support/start-host.ts'
import { atOnce, startLimited, statuses, TOOLS } from './limited-host.ts'

afterEach(stopHosts)

const FORGED = { http: { trustProxy: 1 } } as const

describe('rate-limit: HTTP requests', () => {
  it('allows exactly the limit of concurrent requests per address', async () => {
    const { call } = await startLimited({ address: '40/1h' })
    expect(statuses(await atOnce(90, () => call()))).to.deep.equal({ 200: 40, 429: 50 })
  })

  it('counts a request once for any headers, session, method or body', async () => {
    const { url, call, older } = await startLimited({ address: '12/1h' })
    const strange = [
      { 'X-Forwarded-For': '203.0.113.1' },
      { 'X-User': 'ann' },
      { 'Mcp-Session-Id': 'none' },
      { 'X-HTTP-Method-Override': 'GET', 'X-Real-IP': '203.0.113.9', Forwarded: 'for=203.0.113.9' },
    ]
    const answers: Array<{ status: number }> = []
    for (const headers of strange) answers.push(await call(headers), await older(headers))
    for (const method of ['HEAD', 'OPTIONS', 'PUT']) answers.push(await fetch(`${url}/`, { method }))
    answers.push(await post(`${url}/`, 'no JSON'))
    expect(statuses(answers)).not.to.have.property('429')
    expect((await call()).status).to.equal(429)
    expect((await fetch(`${url}/`, { method: 'HEAD' })).status).to.equal(429)
  })

  it('counts 404, 405 and 413 responses with served requests of an address', async () => {
    const { url, call } = await startLimited(
      { address: '5/1h' },
      { routes: { '/': { toolsets: 'all', stateless: true }, '/t/:category': { toolsets: ':category' } } },
    )
    const asked = [
      () => fetch(`${url}/nothing`),
      () => fetch(`${url}/t/nothing`, { method: 'POST' }),
      () => fetch(`${url}/`, { method: 'PUT' }),
      () => post(`${url}/`, 'x'.repeat(5_000_000)),
      () => call(),
    ]
    const found: number[] = []
    for (const ask of [...asked, ...asked]) found.push((await ask()).status)
    expect(found).to.deep.equal([404, 404, 405, 413, 200, 429, 429, 429, 429, 429])
    // A page of somebody else, in the browser of whoever has this address, could use its limit up.
    const origin = { Origin: 'https://evil.example' }
    expect((await call(origin)).status, 'refused before it is counted').to.equal(403)
  })

  it('does not count preflights, and exposes the headers to browsers', async () => {
    const origin = 'https://app.acme.example'
    const { url, call } = await startLimited(
      { address: '1/1h' },
      {
        routes: { '/': { toolsets: 'all', stateless: true, cors: 'pages' } },
        plugins: { cors: { policies: { pages: { origins: [origin] } } } },
      },
    )
    const preflight = { Origin: origin, 'Access-Control-Request-Method': 'POST' }
    for (let asked = 0; asked < 3; asked++) {
      expect((await fetch(`${url}/`, { method: 'OPTIONS', headers: preflight })).status).to.equal(204)
    }
    expect((await call({ Origin: origin })).status).to.equal(200)
    const { status, headers } = await call({ Origin: origin })
    expect(status).to.equal(429)
    expect(headers.get('access-control-expose-headers')).to.match(/RateLimit,RateLimit-Policy/)
    expect(headers.get('access-control-allow-origin')).to.equal(origin)
  })

  it('trusts X-Forwarded-For only from configured proxies', async () => {
    const alone = await startLimited({ address: '3/1h' })
    const forged = (index: number) => ({ 'X-Forwarded-For': `203.0.113.${index}` })
    expect(statuses(await atOnce(8, index => alone.call(forged(index))))).to.deep.equal({ 200: 3, 429: 5 })
    const behind = await startLimited({ address: '3/1h' }, FORGED)
    const appended = (index: number) => ({ 'X-Forwarded-For': `203.0.113.${index}, 198.51.100.7` })
    expect(statuses(await atOnce(8, index => behind.call(appended(index))))).to.deep.equal({ 200: 3, 429: 5 })
    expect(statuses(await atOnce(8, index => behind.call(forged(index))))).to.deep.equal({ 200: 8 })
  })

  it('normalises address spellings and groups IPv6 addresses by network', async () => {
    const { call } = await startLimited({ address: '1/1h' }, FORGED)
    const from = async (address: string) => (await call({ 'X-Forwarded-For': address })).status
    expect(await from('198.51.100.7')).to.equal(200)
    for (const same of ['::ffff:198.51.100.7', '::FFFF:c633:6407', '0:0:0:0:0:ffff:c633:6407', '198.51.100.7:443']) {
      expect(await from(same), same).to.equal(429)
    }
    expect(await from('2001:db8:1:2::1')).to.equal(200)
    for (const same of ['2001:DB8:1:2:ffff::', '2001:db8:0001:0002:0:0:0:1', '[2001:db8:1:2::9]:443']) {
      expect(await from(same), same).to.equal(429)
    }
    expect(await from('2001:db8:1:3::1')).to.equal(200)
  })

  for (const [ip, prefix, key] of [
    ['10.0.0.1', 64, '10.0.0.1'],
    ['::ffff:10.0.0.1', 64, '10.0.0.1'],
    ['::ffff:102:304', 64, '1.2.3.4'],
    ['::ffff:0:1.2.3.4', 128, '0:0:0:0:ffff:0:102:304/128'],
    ['2001:DB8::', 64, '2001:db8:0:0:0:0:0:0/64'],
    ['::', 64, '0:0:0:0:0:0:0:0/64'],
    ['::1', 128, '0:0:0:0:0:0:0:1/128'],
    ['fe80::1%eth0', 64, 'fe80:0:0:0:0:0:0:0/64'],
    ['2001:db8:1234:5678:9abc::', 56, '2001:db8:1234:5600:0:0:0:0/56'],
    ['2001:db8:1234:5678:9abc::', 32, '2001:db8:0:0:0:0:0:0/32'],
    ['1:2:3:4:5:6:1.2.3.4', 128, '1:2:3:4:5:6:102:304/128'],
    ['', 64, ''],
  ] as const) {
    it(`maps "${ip}" with prefix ${prefix} to "${key}"`, () => {
      expect(addressKey(ip, prefix)).to.equal(key)
    })
  }

  it('counts a user by issuer and subject across tokens, addresses and sessions, anonymous callers by address', async () => {
    const { call } = await startLimited({ user: '3/1h' }, FORGED)
    const as = (headers: Record<string, string>) =>
      atOnce(5, index => call({ 'X-Forwarded-For': `203.0.113.${index}`, ...headers }))
    expect(statuses(await as({ 'X-User': 'ann' }))).to.deep.equal({ 200: 3, 429: 2 })
    expect(statuses(await as({ 'X-User': 'ann', 'X-Issuer': 'https://i.example' }))).to.deep.equal({ 200: 3, 429: 2 })
    expect(statuses(await as({ 'X-User': 'bob' }))).to.deep.equal({ 200: 3, 429: 2 })
    expect(statuses(await as({}))).to.deep.equal({ 200: 5 })
    expect(statuses(await as({ 'X-Forwarded-For': '203.0.113.99' }))).to.deep.equal({ 200: 3, 429: 2 })
  })

  it('counts an OAuth client across its users, and skips tokens without a client', async () => {
    const { call } = await startLimited({ client: '3/1h' })
    const users = (client?: string) =>
      atOnce(5, index => call({ 'X-User': `user-${index}`, ...(client !== undefined && { 'X-Client': client }) }))
    expect(statuses(await users('desktop'))).to.deep.equal({ 200: 3, 429: 2 })
    expect(statuses(await users('cli'))).to.deep.equal({ 200: 3, 429: 2 })
    expect(statuses(await users())).to.deep.equal({ 200: 5 })
  })

  it('counts a route with its own options separately, and skips disabled routes', async () => {
    const routes = {
      '/': { toolsets: 'all', stateless: true },
      '/other': { toolsets: 'all', stateless: true },
      '/own': { toolsets: 'all', stateless: true, plugins: { 'rate-limit': { address: '2/1h' } } },
      '/free': { toolsets: 'all', stateless: true, plugins: { 'rate-limit': false as const } },
    }
    const { call } = await startLimited({ address: '4/1h' }, { routes })
    expect(statuses(await atOnce(3, () => call()))).to.deep.equal({ 200: 3 })
    expect(statuses(await atOnce(3, () => call({}, 'say', '/other')))).to.deep.equal({ 200: 1, 429: 2 })
    expect(statuses(await atOnce(3, () => call({}, 'say', '/own')))).to.deep.equal({ 200: 2, 429: 1 })
    expect(statuses(await atOnce(5, () => call({}, 'say', '/free')))).to.deep.equal({ 200: 5 })
  })

  it('allows requests again in the next window', async () => {
    const clock = createManualClock()
    const { call } = await startLimited({ address: '1/1s' }, {}, { clock })
    await call()
    await clock.advance(999)
    expect((await call()).status).to.equal(429)
    await clock.advance(1)
    expect((await call()).status).to.equal(200)
  })

  it('sends RateLimit headers, and Retry-After on 429, in both protocol eras', async () => {
    const records: CallRecord[] = []
    const watch = definePlugin({ setup: host => host.onFinish(record => void records.push(record)) })
    const { call, older } = await startLimited({ address: '9/1m', user: '2/1h' }, { plugins: { watch: watch() } })
    const { headers } = await call({ 'X-User': 'ann' })
    expect(headers.get('ratelimit-policy')).to.equal('"address";q=9;w=60, "user";q=2;w=3600')
    expect(headers.get('ratelimit')).to.match(/^"address";r=8;t=60, "user";r=1;t=3600$/)
    await call({ 'X-User': 'ann' })
    for (const ask of [call, older]) {
      const { status, message, headers: told } = await ask({ 'X-User': 'ann' })
      expect(status).to.equal(429)
      const wait = Number(told.get('retry-after'))
      expect(wait).to.be.within(3_500, 3_600)
      expect(told.get('ratelimit')).to.equal(`"user";r=0;t=${wait}`)
      expect(told.get('ratelimit-policy')).to.equal('"user";q=2;w=3600')
      expect(message.error.message).to.match(new RegExp(`2 requests in 1h.* ${wait} s`))
      expect(message.error).to.deep.include({
        code: -32600,
        data: { reason: 'rate-limited', limit: 'user', retryAfter: wait, retryable: true },
      })
    }
    await eventually('both records', () => records.filter(({ outcome }) => outcome === 'refused').length === 2)
    const refused = records.filter(({ outcome }) => outcome === 'refused')
    expect(refused.map(({ refusedBy, error }) => [refusedBy, error?.reason])).to.deep.equal(
      Array.from({ length: 2 }, () => ['rate-limit', 'rate limit user: 2/1h']),
    )
  })

  it('counts every request of a session, with headers on streams too', async () => {
    const { url } = await startLimited({ address: '4/1h' }, { routes: { '/': { toolsets: 'all' } } })
    const session = await openSession(`${url}/`)
    const stream = await session.get()
    expect(stream.status).to.equal(200)
    expect(stream.headers['ratelimit']).to.match(/^"address";r=1;t=/)
    stream.drop()
    expect((await session.request('tools/call', { name: 'say' })).status).to.equal(200)
    const { status, message } = await session.request('tools/call', { name: 'say' })
    expect([status, message.error.data.limit]).to.deep.equal([429, 'address'])
  })

  it('counts a batch as one request', async () => {
    const { url } = await startLimited({ address: '2/1h', user: '2/1h' })
    const batch = Array.from({ length: 20 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }))
    const send = () => readWhole(postOpen(`${url}/`, batch, { 'MCP-Protocol-Version': '2025-03-26' }))
    const answers = [await send(), await send(), await send()]
    expect(answers.map(({ status, message }) => [status, Array.isArray(message)])).to.deep.equal([
      [200, true],
      [200, true],
      [429, false],
    ])
  })

  it('is reported as an error that names the limit by the official client', async () => {
    const { url } = await startLimited(
      { address: '3/1h' },
      { routes: { '/': { toolsets: 'all' } }, toolsets: { all: TOOLS } },
    )
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
    const client = new Client({ name: 'test', version: '1.0.0' })
    const outcome = async () => {
      await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/`)))
      for (let calls = 0; calls < 4; calls++) await client.callTool({ name: 'say', arguments: {} })
    }
    const thrown = await outcome().catch((error: unknown) => error)
    await client.close()
    expect(String(thrown)).to.match(/3 requests in 1h/)
  })

  it('does not count endpoints outside of routes', async () => {
    const { url } = await startLimited({ address: '1/1h' }, { plugins: { health: {} } })
    for (let asked = 0; asked < 5; asked++) {
      expect((await fetch(`${url}/health`)).status).to.equal(200)
    }
    expect((await modern(`${url}/`, 'ping')).status).not.to.equal(429)
    const { body, headers } = modernRequest('ping')
    expect((await post(`${url}/`, body, headers)).status).to.equal(429)
  })
})
