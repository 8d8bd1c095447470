// Runs the contracts of the store and the bus on Redis and Redis Cluster; each check has its own keys. The stores above them run
// their contracts in memory (test/testing/contracts.test.ts), between workers and in SQLite.
import { storeContract } from '../../core/testing.ts'
import { type RedisSettings, redisBus, redisStore } from '../../plugins/families/redis/index.ts'
import { describeContracts } from '../support/describe-contracts.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { sendToRedis } from '../support/redis-command.ts'
import { type RedisHost, startRedisHost, stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { compareWithModel } from '../support/store-model.ts'

let servers: readonly RedisServer[]
let spaces = 0

const closing: Array<() => void> = []

/** Opens hosts with a key prefix per contract. The checks of a contract share the hosts, and start without keys. */
function onRedis<Service>(create: (host: RedisHost) => Service | Promise<Service>, settings: () => RedisSettings) {
  const keyPrefix = `space-${++spaces}:`
  const hosts: RedisHost[] = []
  return {
    shared: true,
    async open(count: number) {
      while (hosts.length < count) hosts.push(await startRedisHost({ ...settings(), keyPrefix }))
      for (const server of servers) await sendToRedis(server, 'FLUSHALL')
      return {
        nodes: await Promise.all(hosts.slice(0, count).map(create)),
        async close() {
          for (const close of closing.splice(0)) close()
        },
      }
    },
  }
}

/** Starts the bus as the plugin does. */
async function beginBus({ connection, plugin }: RedisHost) {
  const bus = redisBus(connection, plugin)
  closing.push(() => void bus.close())
  await bus.start()
  return bus
}

for (const isCluster of [false, true]) {
  describe(isCluster ? 'Redis Cluster' : 'Redis', () => {
    const settings = () => (isCluster ? { cluster: servers.map(({ url }) => url) } : { url: servers[0]?.url ?? '' })
    before(async function () {
      needsRedis(this)
      servers = isCluster ? await startRedisCluster() : [await startRedis()]
    })
    after(stopHostsAndRedis)

    const openStore = onRedis(({ connection }) => redisStore(connection), settings)
    describeContracts({
      'store contract': storeContract('store', openStore),
      'bus contract': storeContract('bus', onRedis(beginBus, settings)),
    })

    // A cluster runs the same scripts.
    if (!isCluster) {
      it('gives the results of the model for random transactions', async () => {
        const { connection } = await startRedisHost(settings())
        await compareWithModel(redisStore(connection), 50)
      })
    }
  })
}
