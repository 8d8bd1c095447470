// The contracts of the store and the bus in a real PostgreSQL server.
import { createTestLog } from '../../../core/testing/test-log.ts'
import { storeContract } from '../../../core/testing.ts'
import { createPostgresBus } from '../../../plugins/store-postgres/bus.ts'
import { createPostgresStore, Postgres } from '../../../plugins/store-postgres/connection.ts'
import { describeContracts } from '../../support/describe-contracts.ts'
import { needsPostgres, type PostgresServer, startPostgres, stopPostgres } from '../../support/postgres-server.ts'
import { compareWithModel } from '../../support/store-model.ts'

const SCHEMA = 'contracts'
let server: PostgresServer
let nodes: readonly Postgres[] = []
let buses = 0

describe('PostgreSQL', () => {
  before(async function () {
    needsPostgres(this)
    server = await startPostgres({ fsync: 'off' })
    nodes = [0, 1].map(() => new Postgres({ url: server.url, schema: SCHEMA, log: createTestLog() }))
    for (const node of nodes) await node.start()
  })
  after(async () => {
    await Promise.all(nodes.map(node => node.close()))
    await stopPostgres()
  })

  const storeIn = {
    shared: true,
    async open(count: number) {
      await server.sql(`TRUNCATE ${['entries', 'members', 'messages'].map(table => `${SCHEMA}.${table}`)}`)
      return { nodes: nodes.slice(0, count).map(createPostgresStore) }
    },
  }
  const busIn = {
    shared: true,
    async open(count: number) {
      const opened = nodes.slice(0, count).map(node => createPostgresBus(node, `node ${++buses}`, createTestLog()))
      for (const bus of opened) await bus.start()
      return { nodes: opened, close: async () => void (await Promise.all(opened.map(bus => bus.leave()))) }
    },
  }
  describeContracts({
    'Store in PostgreSQL': storeContract('store', storeIn),
    'Bus in PostgreSQL': storeContract('bus', busIn),
  })

  it('gives the results of the model for random transactions', async () => {
    const [store] = (await storeIn.open(1)).nodes
    await compareWithModel(store as ReturnType<typeof createPostgresStore>, 50)
  })
})
