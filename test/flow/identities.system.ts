// Tests that a client and a user of one issuer with the same name are separate identities.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { at } from '../cluster/support/nodes.ts'
import { accepted, callTool } from '../fixtures/asking-client.ts'
import { asking } from '../fixtures/asking-toolset.ts'
import { needsRedis, startRedis, stopRedis } from '../support/redis-server.ts'
import { initialize, openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { startIssuer, stopIssuers, type TestIssuer } from '../support/test-issuer.ts'

const routes = { '/': { toolsets: 'all', authorize: true as const } }
const toolsets = { all: [...asking, defineTool({ name: 'secret', handler: () => 'of the user' })] }

describe('client with the same name as a user', () => {
  let issuer: TestIssuer
  before(async () => {
    issuer = await startIssuer()
  })
  after(async () => {
    await stopHosts()
    await stopIssuers()
    await stopRedis()
  })

  const start = (more: object = {}, plugins: object = {}) =>
    startHost({
      toolsets,
      routes,
      ...more,
      plugins: { 'transport-streamable': {}, 'auth-jwt': { authority: issuer.url, audience: 'api' }, ...plugins },
    })
  const bearer = (claims: object) => ({ Authorization: `Bearer ${issuer.token('api', { ...claims })}` })
  const user = () => bearer({ sub: 'robot', client_id: 'a-client' })
  const client = () => bearer({ sub: undefined, client_id: 'robot' })
  const authorizedParty = () => bearer({ sub: undefined, client_id: undefined, azp: 'robot' })

  it('cannot use the sessions of the user, and vice versa', async () => {
    const { url } = await start()
    const ofUser = await openSession(url, { headers: user() })
    const ofClient = await openSession(url, { headers: client() })
    const statuses = []
    for (const headers of [client(), authorizedParty()]) {
      statuses.push((await ofUser.request('ping', {}, { headers })).status)
      statuses.push((await ofUser.get(headers)).status, (await ofUser.end(headers)).status)
    }
    statuses.push((await ofClient.request('ping', {}, { headers: user() })).status)
    expect(statuses).to.deep.equal(Array(7).fill(403))
    expect((await ofUser.request('ping', {}, { headers: user() })).status).to.equal(200)
    // However the client is named, it is the same one.
    expect((await ofClient.request('ping', {}, { headers: authorizedParty() })).status).to.equal(200)
  })

  it('cannot use a requestState issued to the user', async () => {
    const { url } = await start()
    const { message } = await callTool(url, 'form', { headers: user() })
    const retry = { state: message.result.requestState, answers: { 'elicit-1': accepted('a') } }
    const taken = await callTool(url, 'form', { ...retry, headers: client() })
    expect([taken.message.error?.code, taken.message.result]).to.deep.equal([-32602, undefined])
    const own = await callTool(url, 'form', { ...retry, headers: user() })
    expect(own.message.result.content[0].text).to.equal('a')
  })

  it('has its own session limit', async () => {
    const { url } = await start({ sessions: { maxPerOwner: 1 } })
    const statuses = []
    for (const headers of [user(), client(), user(), client(), authorizedParty()]) {
      statuses.push((await initialize(url, { headers })).status)
    }
    expect(statuses).to.deep.equal([200, 200, 429, 429, 429])
  })

  it('is a separate owner at every node and in Redis', async function () {
    needsRedis(this)
    const redis = await startRedis()
    const shared = { redis: { url: redis.url }, sessions: { maxPerOwner: 1 } }
    const one = await start(shared, { 'cluster-redis': {} })
    const two = await start(shared, { 'cluster-redis': {} })
    const session = at(`${two.url}/`, await openSession(one.url, { headers: user() }))
    expect((await session.request('ping', {}, { headers: client() })).status).to.equal(403)
    expect((await session.request('ping', {}, { headers: user() })).status).to.equal(200)
    expect((await initialize(two.url, { headers: client() })).status).to.equal(200)
    expect((await initialize(two.url, { headers: user() })).status).to.equal(429)
  })

  it('users with equal values in different subject claims are separate', async () => {
    const claims = { subject: ['oid', 'sub'] }
    const { url } = await start({}, { 'auth-jwt': { authority: issuer.url, audience: 'api', claims } })
    const session = await openSession(url, { headers: bearer({ oid: 'one', sub: 'two' }) })
    expect((await session.request('ping', {}, { headers: bearer({ oid: undefined, sub: 'one' }) })).status).to.equal(
      403,
    )
    expect((await session.request('ping', {}, { headers: bearer({ oid: 'one', sub: 'x' }) })).status).to.equal(200)
  })
})
