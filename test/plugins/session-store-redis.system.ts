// Sessions in Redis beyond the session store contract: updates after an outage.

import { enter, open } from '../support/contracts/session-steps.ts'
import { eventually } from '../support/eventually.ts'
import { startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis, startRedis } from '../support/redis-server.ts'
import { createRedisSessionStore } from '../support/redis-stores.ts'

describe('Session store in Redis', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('records answered requests after a Redis outage', async () => {
    const redis = await startRedis({ persistent: true })
    const { connection, plugin } = await startRedisHost({ url: redis.url })
    await whenHealthy(connection)
    const store = createRedisSessionStore(connection, plugin)
    store.onReturn(() => undefined)
    await open(store, 'digest')
    const requests = Array.from({ length: 20 }, (_, index) => index)
    await enter(store, 'digest', { requests })
    const kept = async () =>
      (await Promise.all(requests.map(request => store.nodeOf('digest', request)))).filter(Boolean).length
    await redis.kill()
    await whenHealthy(connection, false)
    for (const request of requests) store.leave('digest', [request])
    await redis.start()
    await whenHealthy(connection)
    await eventually('all requests are left', kept, count => count === 0)
  })
})
