// Tests that a stream of a weaker token receives no updates of resources that only a stronger token can read.
import { expect } from 'chai'
import { defineResource } from '../../../core/index.ts'
import { at } from '../../cluster/support/nodes.ts'
import { stopHostsAndRedis } from '../../support/redis-host.ts'
import { needsRedis, startRedis } from '../../support/redis-server.ts'
import { nextMessage, openSession } from '../../support/session-client.ts'
import { openSseSession } from '../../support/sse-client.ts'
import { startHost } from '../../support/start-host.ts'
import type { StreamExchange } from '../../support/stream-exchange.ts'
import { as, bearerJson } from './bearer-json.ts'

const WEAK = as({ scopes: [] })
const STRONG = as({ scopes: ['staff'] })
const SECRET = 'test://secret/page'
const TEMPLATED = 'test://secret/of/1'
const OPEN = 'test://open/page'

const config = {
  toolsets: {
    all: [
      defineResource({ name: 'open', uri: OPEN, handler: () => 'open' }),
      defineResource({ name: 'secret', uri: SECRET, access: 'staff', handler: () => 'secret' }),
      defineResource({ name: 'of', uriTemplate: 'test://secret/of/{id}', access: 'staff', handler: () => 'secret' }),
    ],
  },
  routes: { '/': { toolsets: 'all' } },
}
const plugins = {
  'transport-streamable': {},
  'transport-sse': {},
  bearer: bearerJson(),
  'tool-policy': { policies: { staff: { scope: 'staff' } } },
}

/** The resources that are told of until the open one is. */
async function heardOn(stream: Pick<StreamExchange, 'next'>): Promise<string[]> {
  const uris: string[] = []
  while (uris.at(-1) !== OPEN) {
    const message = await nextMessage(stream as StreamExchange)
    if (message === undefined) break
    uris.push(message.params.uri)
  }
  return uris
}

const ALL = [SECRET, TEMPLATED, OPEN]

describe('tool-policy: resource subscriptions with tokens of different access', () => {
  after(stopHostsAndRedis)

  it('sends updates on the stream of the stronger token, not on new or resumed weaker streams', async () => {
    const { url, host } = await startHost({ ...config, plugins })
    const session = await openSession(url, { headers: STRONG })
    for (const uri of ALL) expect((await session.request('resources/subscribe', { uri })).status).to.equal(200)
    const update = () => {
      for (const uri of ALL) host.runtime.resourceUpdated(uri)
    }
    const weak = await session.get(WEAK)
    const first = await weak.next()
    update()
    expect(await heardOn(weak), 'a weak stream').to.deep.equal([OPEN])
    weak.drop()
    // What was kept while nobody read is not told to the weaker token either.
    const strong = await session.get()
    const primed = await strong.next()
    update()
    expect(await heardOn(strong), 'a strong stream').to.deep.equal(ALL)
    strong.drop()
    await strong.whole
    update()
    const resumed = await session.get({ ...WEAK, 'Last-Event-ID': String(primed?.id) })
    expect([...(await heardOn(resumed)), ...(await heardOn(resumed))], 'a weak one, resumed').to.deep.equal([
      OPEN,
      OPEN,
    ])
    resumed.drop()
    const again = await session.get({ 'Last-Event-ID': String(first?.id) })
    expect(await heardOn(again), 'a strong one, resumed').to.deep.equal(ALL)
    again.drop()
  })

  it('sends updates by HTTP+SSE only if the stream belongs to the stronger token', async () => {
    const { url, host } = await startHost({ ...config, plugins })
    for (const [opener, heard] of [
      [WEAK, [OPEN]],
      [STRONG, ALL],
    ] as const) {
      const client = await openSseSession(url, { headers: opener })
      for (const [index, uri] of ALL.entries()) {
        await client.post({ id: index, method: 'resources/subscribe', params: { uri } }, STRONG)
        expect((await client.next()).result).to.deep.equal({})
      }
      for (const uri of ALL) host.runtime.resourceUpdated(uri)
      expect(await heardOn(client.stream)).to.deep.equal(heard)
      client.stream.drop()
    }
  })

  it('sends updates at another node only to the stronger token', async function () {
    needsRedis(this)
    const redis = await startRedis()
    const shared = { ...config, redis: { url: redis.url }, plugins: { ...plugins, 'cluster-redis': {} } }
    const [one, two] = [await startHost(shared), await startHost(shared)]
    const session = await openSession(one.url, { headers: STRONG })
    for (const uri of ALL) await session.request('resources/subscribe', { uri })
    const there = at(`${two.url}/`, session)
    for (const [headers, heard] of [
      [WEAK, [OPEN]],
      [STRONG, ALL],
    ] as const) {
      const stream = await there.get(headers)
      await stream.next()
      for (const uri of ALL) one.host.runtime.resourceUpdated(uri)
      expect(await heardOn(stream)).to.deep.equal(heard)
      stream.drop()
    }
  })
})
