// Runs the store contracts against the Redis plugins; each check has its own keys.

import { storeContract } from '../../core/testing.ts'
import { createChangeBus, createPeers } from '../../core/transport.ts'
import { createGrantStore } from '../../plugins/families/grant-store/index.ts'
import { type RedisSettings, redisBus, redisStore } from '../../plugins/families/redis/index.ts'
import { createTaskStore } from '../../plugins/families/task-store/index.ts'
import { serviceContract } from '../support/contracts/index.ts'
import { describeContracts } from '../support/describe-contracts.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { sendToRedis } from '../support/redis-command.ts'
import { type RedisHost, startRedisHost, stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { createRedisEventStore, createRedisSessionStore } from '../support/redis-stores.ts'
import { compareWithModel } from '../support/store-model.ts'

let servers: readonly RedisServer[]
let spaces = 0

const closing: Array<() => void> = []

/** Opens hosts with a key prefix per contract. The checks of a contract share the hosts, and start without keys. */
function onRedis<Service>(
  create: (host: RedisHost) => Service | Promise<Service>,
  settings: () => RedisSettings = () => ({ url: servers[0]?.url ?? '' }),
) {
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

async function openTasks(host: RedisHost) {
  const { log, clock } = host.plugin
  return createTaskStore(redisStore(host.connection), { log, clock, bus: await beginBus(host) })
}

const BOUNDS = { ttl: 60_000, maxEvents: 1_000, maxBytes: 1_000_000 }

const contracts = {
  'Redis session store': serviceContract(
    'sessionStore',
    onRedis(({ connection, plugin }) => createRedisSessionStore(connection, plugin)),
  ),
  'Redis event store': serviceContract(
    'eventStore',
    onRedis(({ connection }) => createRedisEventStore(connection, BOUNDS)),
  ),
  'Redis grant store': serviceContract(
    'grantStore',
    onRedis(({ connection }) => createGrantStore(redisStore(connection))),
  ),
  'Redis task store': serviceContract('taskStore', onRedis(openTasks)),
  'Redis change bus': serviceContract(
    'changeBus',
    onRedis(async host => createChangeBus(await beginBus(host))),
  ),
  'Redis node messages (peers)': serviceContract(
    'peers',
    onRedis(async host => createPeers(await beginBus(host))),
  ),
}

describeContracts(contracts, {
  async before() {
    needsRedis(this)
    servers = [await startRedis()]
  },
  after: stopHostsAndRedis,
})

for (const isCluster of [false, true]) {
  const name = isCluster ? 'Store in Redis Cluster' : 'Store in Redis'
  const settings = () => (isCluster ? { cluster: servers.map(({ url }) => url) } : { url: servers[0]?.url ?? '' })
  const startServers: Mocha.Func = async function () {
    needsRedis(this)
    servers = isCluster ? await startRedisCluster() : [await startRedis()]
  }
  const contract = storeContract(
    'store',
    onRedis(({ connection }) => redisStore(connection), settings),
  )
  const bus = storeContract('bus', onRedis(beginBus, settings))
  describeContracts(
    { [`${name}: contract`]: contract, [`${name}: bus`]: bus },
    { before: startServers, after: stopHostsAndRedis },
  )

  describe(name, () => {
    before(startServers)
    after(stopHostsAndRedis)

    it('gives the results of the model for random transactions', async () => {
      const { connection } = await startRedisHost(settings())
      await compareWithModel(redisStore(connection), 100)
    })
  })
}
