// Tests that a session id is unknown on routes with a different session store.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { plugin } from '../fixtures/plugins.ts'
import { openSession, postMessage } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const PING = { id: 1, method: 'ping' }

describe('Session id on a route with another session store', () => {
  it('responds 404 to its owner without a warning and 403 to another user', async () => {
    const own = plugin(host => host.provide('sessionStore', { node: 'own', shared: false }))
    const { url, log } = await startHost({
      toolsets: { all: [defineTool({ name: 'a', handler: () => 'a' })] },
      routes: {
        '/one': { toolsets: 'all' },
        '/two': { toolsets: 'all' },
        '/apart': { toolsets: 'all', plugins: { own: false } },
      },
      plugins: { 'transport-streamable': {}, own, who: identifyByHeader() },
    })
    const statusOf = async (path: string, headers: Record<string, string>) =>
      (await postMessage(url + path, PING, headers)).status
    for (const user of [{ 'X-User': 'ada' }, {}] as Record<string, string>[]) {
      const { id } = await openSession(`${url}/one`, { headers: user })
      const headers = { 'Mcp-Session-Id': id, ...user }
      expect([await statusOf('/one', headers), await statusOf('/two', headers)]).to.deep.equal([200, 404])
      expect(await statusOf('/apart', headers)).to.equal(404)
      expect(log.filter(({ level }) => level === 'warn')).to.deep.equal([])
    }
    const { id } = await openSession(`${url}/one`, { headers: { 'X-User': 'ada' } })
    expect(await statusOf('/apart', { 'Mcp-Session-Id': id, 'X-User': 'bob' })).to.equal(403)
  })
})
