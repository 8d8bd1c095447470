// Tests that the log names the plugin that threw an error, and not the plugins that passed it on.
import { expect } from 'chai'
import { defineResource, defineTool } from '../../core/index.ts'
import { definePlugin, type InternalHost } from '../../core/internal.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

after(stopHosts)

const plugin = (setup: (host: InternalHost) => void) =>
  definePlugin<object>({ options: { type: 'object', additionalProperties: false, properties: {} }, setup })()

const fail = (): never => {
  throw new Error('fell over')
}

const broken = defineResource({ name: 'broken', uri: 'test://broken', handler: fail })
const echo = defineTool({ name: 'echo', handler: () => 'echoed' })

/** The plugins that the log names, of the lines with an error, for one request. */
async function namedBy(plugins: Record<string, (host: InternalHost) => void>, method = 'tools/call') {
  const { url, log } = await startHost({
    toolsets: { all: [echo, broken] },
    routes: { '/': { toolsets: 'all' } },
    plugins: {
      'transport-streamable': {},
      ...Object.fromEntries(Object.entries(plugins).map(([name, setup]) => [name, plugin(setup)])),
    },
  })
  await modern(url, method, method === 'tools/call' ? { name: 'echo' } : { uri: 'test://broken' })
  return log.filter(({ err }) => err).map(({ plugin: name, message }) => [name, message])
}

const passOn = (host: InternalHost) => {
  host.use((_, next) => next())
  host.onRequest((_, next) => next())
  host.onCall((_, next) => next())
}

describe('Plugin name in error logs', () => {
  for (const [hook, setup, message] of [
    ['use', host => host.use(fail), 'a request failed'],
    ['onRequest', host => host.onRequest(async () => fail()), 'a request failed'],
    ['authenticate', host => host.authenticate(fail), 'a request failed'],
    ['authorize', host => host.authorize(async () => fail()), 'a request failed'],
    ['onCall', host => host.onCall(async () => fail()), 'a plugin failed'],
    ['onFinish', host => host.onFinish(fail), 'an observer failed'],
  ] satisfies ReadonlyArray<readonly [string, (host: InternalHost) => void, string]>) {
    it(`identifies the plugin whose ${hook} hook threw`, async () => {
      expect(await namedBy({ outer: passOn, audit: setup, inner: passOn })).to.deep.equal([['audit', message]])
    })
  }

  it('identifies the plugin whose onCall returned nothing, or an unknown result of its extension', async () => {
    const nothing = (host: InternalHost) => host.onCall(async () => undefined as never)
    const unknown = (host: InternalHost) => {
      const extension = host.extension('com.example/jobs', { results: { 'tools/call': ['job'] } })
      host.onCall(async () => extension.result('jobb', {}))
    }
    for (const setup of [nothing, unknown]) {
      expect(await namedBy({ outer: passOn, audit: setup })).to.deep.equal([['audit', 'a plugin failed']])
    }
  })

  it('identifies the plugin whose tool key returned nothing', async () => {
    const priced = definePlugin({
      options: { type: 'object', additionalProperties: false, properties: {} },
      toolKeys: { price: { type: 'integer' } },
      setup: host => host.toolKey('price', { onCall: () => undefined as never }),
    })
    const { url, log } = await startHost({
      toolsets: { all: [defineTool({ name: 'echo', price: 1, handler: () => 'echoed' } as never)] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, priced: priced() },
    })
    await modern(url, 'tools/call', { name: 'echo' })
    expect(log.filter(({ err }) => err).map(({ plugin: name }) => name)).to.deep.equal(['priced'])
  })

  it('is absent for an error of a tool handler', async () => {
    expect(await namedBy({ audit: passOn }, 'resources/read')).to.deep.equal([[undefined, 'a handler failed']])
  })
})
