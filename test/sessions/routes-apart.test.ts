// Routes whose sessions are kept in stores of their own: an id of one names nothing on another, whoever's it is.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { createMemorySessionStore } from '../../core/sessions/memory-session-store.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { plugin } from '../fixtures/plugins.ts'
import { openSession, tell } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const PING = { id: 1, method: 'ping' }

describe('a session id on a route whose sessions are kept elsewhere', () => {
  it('is 404 for its owner, as on any other route, and the log says nothing; 403 for another user', async () => {
    const own = plugin(host => host.fill('sessionStore', createMemorySessionStore('own')))
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
      (await tell(url + path, PING, headers)).status
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
