// `testHost`: a config on a free port, clients of every revision, made-up users where tokens are asked for, and an end.
import { expect } from 'chai'
import { type Config, defineConfig, definePlugin, defineResource, defineTool, StartError } from 'mcp-host'
import { authJwt, entra, keycloak } from 'mcp-host/auth-jwt'
import { type TestHost, testHost, testPlugin } from 'mcp-host/testing'
import { REVISIONS } from 'mcp-host/transport'
import { rejectionOf } from '../fixtures/rejection-of.ts'

const who = defineTool({ name: 'who', handler: (_args, { user, route }) => ({ user: user ?? null, route: route.path }) })
const purge = defineTool({ name: 'purge', access: 'admin', handler: () => 'purged' })
const ask = defineTool({
  name: 'ask',
  async handler(_args, { elicit }) {
    const { action, content } = await elicit({
      message: 'Name?',
      requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    })
    return action === 'accept' ? `Hello, ${content?.['name']}` : action
  },
})
const grow = defineTool({
  name: 'grow',
  handler(_args, { host }) {
    host.tools.add(defineTool({ name: `extra-${Math.random()}`, handler: () => 'extra' }))
    host.resourceUpdated('test://page')
  },
})
const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'a page' })

const open = defineConfig({
  server: { name: 'tested', version: '1.0.0', instructions: 'Be kind.' },
  toolsets: { all: [who, ask, grow, page] },
  routes: { '/mcp': { toolsets: 'all' } },
})

describe('testHost', () => {
  it('serves a config without a transport, a port or secrets', async () => {
    await using host = await testHost(open)
    await using client = await host.client()
    expect((await client.listTools()).map(({ name }) => name)).to.have.members(['who', 'ask', 'grow'])
    expect(client.server).to.deep.equal({ name: 'tested', version: '1.0.0' })
    expect(client.instructions).to.equal('Be kind.')
    expect((await client.readResource('test://page')).text).to.equal('a page')
    expect(host.logged('warn')).to.deep.equal([])
    expect(host.host.routes.map(({ path }) => path)).to.deep.equal(['/mcp'])
  })

  for (const revision of REVISIONS) {
    it(`has a client of ${revision}: calls, answers, and hears of changes`, async () => {
      await using host = await testHost(open)
      await using client = await host.client({ revision, answers: [{ action: 'accept', content: { name: 'Ann' } }] })
      expect(client.revision).to.equal(revision)
      expect(await client.callTool('who')).to.deep.include({ text: '{"user":null,"route":"/mcp"}', isError: false })
      expect((await client.callTool('ask')).text).to.equal('Hello, Ann')
      expect(client.asks.map(({ kind }) => kind)).to.deep.equal(['elicit'])
      await client.watch('test://page')
      await client.callTool('grow')
      await client.notified('notifications/tools/list_changed')
      expect((await client.notified('notifications/resources/updated')).params).to.include({ uri: 'test://page' })
      expect(host.changes()).to.deep.equal([{ changed: 'tools' }, { changed: 'resource', uri: 'test://page' }])
      expect(await client.listTools()).to.have.lengthOf(4)
    })
  }
})
