// Per-route options of event-store-redis, and a route where it is disabled.
import { expect } from 'chai'
import { createPuppet } from '../support/puppet-tool.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, startRedis } from '../support/redis-server.ts'
import { startHost } from '../support/start-host.ts'
import { openStreamingSession } from '../support/streaming-session.ts'

before(function () {
  needsRedis(this)
})
after(stopHostsAndRedis)

describe('event-store-redis: per-route options', () => {
  it('stores events with the options of each route, and nothing where disabled', async () => {
    const redis = await startRedis()
    const puppet = createPuppet()
    const { url } = await startHost({
      redis: { url: redis.url },
      toolsets: { all: [puppet.tool] },
      routes: {
        '/': { toolsets: 'all' },
        '/b': { toolsets: 'all', plugins: { 'event-store-redis': { ttl: '1m' } } },
        '/off': { toolsets: 'all', plugins: { 'event-store-redis': false } },
      },
      plugins: { 'transport-streamable': {}, 'event-store-redis': { ttl: '1h' } },
    })
    /** The times that are left to what a call on the route left in Redis, in seconds. */
    async function timesAfterCall(path: string): Promise<number[]> {
      redis.cli('FLUSHALL')
      const session = await openStreamingSession(url + path)
      const opening = session.call('puppet', { name: path })
      const { ctx, finish } = await puppet.call(path)
      for (const step of [1, 2, 3]) ctx.progress(step)
      const stream = await opening
      const [, place] = await stream.until(({ message }) => message !== undefined)
      finish('done')
      await stream.rest()
      const times = redis
        .cli('KEYS', '*')
        .filter(key => key.includes(':l:'))
        .map(key => Number(redis.cli('PTTL', key)[0]))
      // Whatever keeps them, a client can come back for them.
      const again = await session.get(place?.id)
      expect((await again.rest()).at(-1)?.message).to.have.nested.property('result.content[0].text', 'done')
      return times.map(time => Math.ceil(time / 1_000))
    }
    const [root, own, off] = [await timesAfterCall(''), await timesAfterCall('/b'), await timesAfterCall('/off')]
    expect(root).to.not.deep.equal([])
    expect(root.every(time => time > 3_000 && time <= 3_600)).to.equal(true)
    expect(own).to.not.deep.equal([])
    expect(own.every(time => time > 0 && time <= 60)).to.equal(true)
    expect(off).to.deep.equal([])
  })
})
