// Tests shadow mode: denials are logged but not enforced.
import { expect } from 'chai'
import { defineResource, defineTool } from '../../../core/index.ts'
import type { ToolPolicyOptions } from '../../../plugins/tool-policy/index.ts'
import { modern } from '../../support/rpc.ts'
import { listen, nextMessage, openSession } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { as, bearerJson } from './bearer-json.ts'

afterEach(stopHosts)

const tools = ['purge', 'wipe', 'other'].map(name => defineTool({ name, handler: () => 'done' }))
const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'done' })
const own = defineTool({ name: 'own', access: 'keepers', handler: () => 'done' })

const serve = (options: ToolPolicyOptions, routes = {}) =>
  startHost({
    toolsets: { all: [...tools, page, own] },
    routes: { '/': { toolsets: 'all' }, ...routes },
    plugins: { 'transport-streamable': {}, bearer: bearerJson(), 'tool-policy': options },
  })

const call = async (url: string, name: string) =>
  (await modern(url, 'tools/call', { name }, { headers: as({ subject: 'bob' }) })).status

describe('tool-policy: rule in shadow mode', () => {
  it('allows the call, and logs the caller, item and reason of the denial', async () => {
    const rules = { purge: { policy: { scope: 'a' }, mode: 'shadow' }, wipe: { scope: 'a' } } as const
    const { url, log } = await serve({ rules })
    expect([await call(url, 'purge'), await call(url, 'wipe'), await call(url, 'other')]).to.deep.equal([200, 403, 200])
    const lines = log.filter(({ shadow }) => shadow)
    expect(lines).to.have.length(1)
    expect(lines[0]).to.include({ method: 'tools/call', item: 'purge', subject: 'bob', reason: 'lacks scope "a"' })
    const { result } = (await modern(url, 'tools/list')).message
    expect(result.tools.map(({ name }: { name: string }) => name)).to.deep.equal(['other', 'purge'])
    expect(result.cacheScope).to.equal('private')
  })

  it('logs nothing for callers who satisfy it', async () => {
    const { url, log } = await serve({ rules: { purge: { policy: { scope: 'a' }, mode: 'shadow' } } })
    const headers = as({ scopes: ['a'] })
    expect((await modern(url, 'tools/call', { name: 'purge' }, { headers })).status).to.equal(200)
    expect(log.filter(({ shadow }) => shadow)).to.deep.equal([])
  })

  it('does not disable another rule for the same item', async () => {
    const { url } = await serve({ rules: { 'p*': { policy: { scope: 'a' }, mode: 'shadow' }, '*e': { scope: 'b' } } })
    expect(await call(url, 'purge')).to.equal(403)
  })

  it('is named in the log at every startup', async () => {
    const { log } = await serve({ rules: { purge: { policy: { scope: 'a' }, mode: 'shadow' }, wipe: { scope: 'a' } } })
    const warned = log.filter(({ level, message }) => level === 'warn' && message?.startsWith('shadow mode'))
    expect(warned.map(({ rules }) => rules)).to.deep.equal([['rule "purge"']])
  })
})

describe('tool-policy: mode shadow', () => {
  it('is the default mode of rules and of the access of definitions', async () => {
    const rules = { purge: { scope: 'a' }, wipe: { policy: { scope: 'a' }, mode: 'enforce' } } as const
    const { url, log } = await serve({ mode: 'shadow', rules })
    expect([await call(url, 'purge'), await call(url, 'wipe'), await call(url, 'own')]).to.deep.equal([200, 403, 200])
    expect(log.filter(({ shadow }) => shadow).map(({ item }) => item)).to.deep.equal(['purge', 'own'])
    const [warned] = log.filter(({ message }) => message?.startsWith('shadow mode'))
    expect(warned?.['rules']).to.deep.equal(['rule "purge"', '"own": its access "keepers"'])
  })

  it('never applies to the authorize of a route', async () => {
    const { url } = await serve({ mode: 'shadow' }, { '/b': { toolsets: 'all', authorize: { scope: 'a' } } })
    expect(await call(`${url}/b`, 'other')).to.equal(403)
  })

  it('logs reads, subscriptions and listens too', async () => {
    const { url, log } = await serve({ mode: 'shadow', rules: { 'resource:*': { scope: 'a' } } })
    const session = await openSession(url)
    for (const method of ['resources/read', 'resources/subscribe']) {
      expect((await session.request(method, { uri: page.uri })).message).to.have.property('result')
    }
    const stream = await listen(url, { resourceSubscriptions: [page.uri] })
    expect((await nextMessage(stream)).params.notifications.resourceSubscriptions).to.deep.equal([page.uri])
    stream.drop()
    const methods = log.filter(({ shadow, item }) => shadow && item === page.uri).map(({ method }) => method)
    expect(methods).to.deep.equal(['resources/read', 'resources/subscribe', 'subscriptions/listen'])
  })
})
