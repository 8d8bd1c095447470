// Tests that the user object passed to handlers is immutable.
import { expect } from 'chai'
import { defineTool, type User } from '../../core/index.ts'
import { plugin } from '../fixtures/plugins.ts'
import { modern } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

/** What can be changed of a user, by whoever does not care for types. */
function changeAll(user: unknown): string[] {
  const { scopes, roles, claims } = user as { scopes: string[]; roles: string[]; claims: Record<string, unknown> }
  const changes: Record<string, () => unknown> = {
    scopes: () => scopes.push('admin'),
    roles: () => roles.push('admin'),
    claims: () => {
      claims['admin'] = true
    },
    user: () => Object.assign(user as object, { subject: 'root' }),
  }
  return Object.entries(changes).flatMap(([name, change]) => {
    try {
      change()
      return [name]
    } catch {
      return []
    }
  })
}

describe('ctx.user', () => {
  it('is frozen with its scopes, roles and claims, whether shared or created per request', async () => {
    const make = (): User => ({ subject: 'ada', scopes: ['read'], roles: [], claims: { tier: 'iron' } })
    const one = Object.freeze(make())
    const changed: string[][] = []
    const who = plugin(
      host => {
        host.authenticate((ctx, next) => {
          ctx.state.user = ctx.req.headers['x-one'] ? one : make()
          return next()
        })
        host.onCall((call, next) => {
          if (call.method === 'tools/call') changed.push(changeAll(call.user))
          return next()
        })
      },
      { provides: ['user'] },
    )
    const tool = defineTool({
      name: 'grab',
      handler(_args, { user }) {
        changed.push(changeAll(user))
        return `${JSON.stringify(user)}`
      },
    })
    const { url } = await startHost({
      toolsets: { all: [tool] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, who },
    })
    for (const headers of [{ 'X-One': '1' }, {}] as Record<string, string>[]) {
      const { message } = await modern(url, 'tools/call', { name: 'grab' }, { headers })
      expect(JSON.parse(message.result.content[0].text)).to.deep.equal({ ...make(), issuer: 'urn:mcp-host:plugin:who' })
      const session = await openSession(url, { headers })
      await session.request('tools/call', { name: 'grab' })
    }
    expect(changed).to.deep.equal(Array(8).fill([]))
  })
})
