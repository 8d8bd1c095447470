// Tests resource URIs that two upstream servers have in common, with `uris: wrap`.
import { expect } from 'chai'
import { definePrompt, defineResource, defineTool } from '../../../core/index.ts'
import { defineApp } from '../../../plugins/apps/define-app.ts'
import type { UpstreamOptions } from '../../../plugins/upstream/index.ts'
import { eventually } from '../../support/eventually.ts'
import { modern } from '../../support/rpc.ts'
import { listen, nextMessage } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

afterEach(stopHosts)

type Server = UpstreamOptions['servers'][string]

const link = { type: 'resource_link', uri: 'test://page', name: 'page' } as const
const embedded = { type: 'resource', resource: { uri: 'test://on/a', text: 'on a' } } as const
const web = { type: 'resource_link', uri: 'https://acme.example/a', name: 'web' } as const

const startOrigin = (name: string) =>
  startHost({
    toolsets: {
      all: [
        defineResource({ name: 'page', uri: 'test://page', handler: () => `page of ${name}` }),
        defineResource({
          name: 'on',
          uriTemplate: 'test://on/{topic}',
          complete: { topic: value => [`${value} ${name}`] },
          handler: ({ topic, uri }) => ({ text: `${topic} of ${name}`, uri: String(uri) }),
        }),
        defineTool({ name: 'links', handler: () => [link, embedded, web] }),
        defineTool({
          name: 'draw',
          app: defineApp({ name: 'chart', html: `<!doctype html><p>${name}</p>` }),
          handler: () => 'drawn',
        }),
        definePrompt({ name: 'about', handler: () => [{ role: 'user', content: embedded }] }),
      ],
    },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, apps: {} },
  })

async function startBoth(server: Partial<Server>, names: readonly [string, string] = ['one', 'two']) {
  const [one, two] = await Promise.all(names.map(startOrigin))
  const urls = [one?.url, two?.url]
  const servers = Object.fromEntries(names.map((name, at) => [name, { url: `${urls[at]}/`, ...server }]))
  const { url } = await startHost({
    toolsets: {},
    routes: { '/': { toolsets: [...names] } },
    plugins: { 'transport-streamable': {}, upstream: { servers } },
  })
  const ask = async (method: string, params: Record<string, unknown> = {}) => {
    const { message } = await modern(url, method, params)
    return message.result ?? message
  }
  const read = async (uri: string) => (await ask('resources/read', { uri })).contents?.[0]
  return { url, origin: two, ask, read }
}

describe('Resource URIs that two upstream servers have in common', () => {
  it('stop startup by default', async () => {
    const failure = await startBoth({}).then(() => '', String)
    expect(failure).to.match(/two resources are called "test:\/\/page".*servers\.one.*uris: wrap/)
  })

  it('require a toolset name that can be part of a URI', async () => {
    const failure = await startBoth({ uris: 'wrap' }, ['one', 'the_two']).then(() => '', String)
    expect(failure).to.match(/servers\.the_two\.uris: requires a toolset name of letters/)
  })

  for (const revision of ['2026-07-28', '2025-11-25'] as const) {
    describe(`and that are wrapped (${revision})`, () => {
      it('are listed and read with the toolset name, in any notation', async () => {
        const { ask, read } = await startBoth({ uris: 'wrap', revision })
        const { resources } = await ask('resources/list')
        expect(resources.map(({ uri }: { uri: string }) => uri)).to.have.members(
          ['one', 'two'].flatMap(name => [`${name}+test://page`, `ui://${name}+chart/app.html`]),
        )
        const { resourceTemplates } = await ask('resources/templates/list')
        expect(resourceTemplates[1].uriTemplate).to.equal('two+test://on/{topic}')
        expect(await read('two+test://page')).to.deep.equal({ uri: 'two+test://page', text: 'page of two' })
        expect((await read('TWO+test://page')).text).to.equal('page of two')
        expect(await read('two+test://on/bees')).to.deep.equal({ uri: 'two+test://on/bees', text: 'bees of two' })
        expect((await read('Two+TEST://on/bees')).text).to.equal('bees of two')
        expect(await read('test://page')).to.equal(undefined)
        expect(await read('two+one+test://page')).to.equal(undefined)
      })

      it('are wrapped in links, embedded resources and pages of tools, except URIs of the web', async () => {
        const { ask, read } = await startBoth({ uris: 'wrap', revision })
        const { content } = await ask('tools/call', { name: 'two_links' })
        const resource = { uri: 'two+test://on/a', text: 'on a' }
        expect(content).to.deep.equal([{ ...link, uri: 'two+test://page' }, { ...embedded, resource }, web])
        const { messages } = await ask('prompts/get', { name: 'two_about' })
        expect(messages[0].content).to.deep.equal({ ...embedded, resource })
        const { tools } = await ask('tools/list')
        const { _meta } = tools.find(({ name }: { name: string }) => name === 'two_draw')
        const resourceUri = 'ui://two+chart/app.html'
        expect(_meta).to.deep.equal({ ui: { resourceUri }, 'ui/resourceUri': resourceUri })
        expect((await read(resourceUri)).text).to.equal('<!doctype html><p>two</p>')
      })

      it('are completed and report changes', async () => {
        const { url, ask, origin } = await startBoth({ uris: 'wrap', revision })
        const ref = { type: 'ref/resource', uri: 'two+test://on/{topic}' }
        const { completion } = await ask('completion/complete', { ref, argument: { name: 'topic', value: 'a' } })
        expect(completion.values).to.deep.equal(['a two'])
        const uris = ['two+test://page', 'two+test://on/a']
        const stream = await listen(`${url}/`, { resourceSubscriptions: ['one+test://page', ...uris] })
        expect((await nextMessage(stream)).method).to.equal('notifications/subscriptions/acknowledged')
        const updated = new Set<string>()
        const reading = (async () => {
          while (!uris.every(uri => updated.has(uri))) updated.add((await nextMessage(stream)).params.uri)
        })()
        const isDone = () => uris.every(uri => updated.has(uri))
        await eventually('both changes arrive', () => {
          if (!isDone()) for (const uri of ['test://page', 'test://on/a']) origin?.host.runtime.resourceUpdated(uri)
          return isDone()
        })
        await reading
        stream.drop()
      })
    })
  }
})
