// The contracts of the store and the bus in a real PostgreSQL server.
import { createTestLog } from '../../../core/testing/test-log.ts'
import { storeContract } from '../../../core/testing.ts'
import { createPostgresBus } from '../../../plugins/store-postgres/bus.ts'
import { createPostgresStore, Postgres } from '../../../plugins/store-postgres/connection.ts'
import { describeContracts } from '../../support/describe-contracts.ts'
import { needsPostgres, type PostgresServer, startPostgres, stopPostgres } from '../../support/postgres-server.ts'
import { compareWithModel } from '../../support/store-model.ts'

let server: PostgresServer
let schemas = 0

/** Nodes with a new schema. */
async function open(count: number) {
  const schema = `test_${++schemas}`
  const nodes = Array.from({ length: count }, () => new Postgres({ url: server.url, schema, log: createTestLog() }))
  await Promise.all(nodes.map(node => node.start()))
  return { nodes, close: async () => void (await Promise.all(nodes.map(node => node.close()))) }
}

describe('PostgreSQL', () => {
  before(async function () {
    needsPostgres(this)
    server = await startPostgres()
  })
  after(stopPostgres)

  const storeIn = {
    shared: true,
    async open(count: number) {
      const { nodes, close } = await open(count)
      return { nodes: nodes.map(createPostgresStore), close }
    },
  }
  const busIn = {
    shared: true,
    async open(count: number) {
      const { nodes, close } = await open(count)
      const buses = nodes.map((node, index) => createPostgresBus(node, `node ${index}`, createTestLog()))
      for (const bus of buses) await bus.start()
      return {
        nodes: buses,
        async close() {
          await Promise.all(buses.map(bus => bus.leave()))
          await close()
        },
      }
    },
  }
  describeContracts({
    'Store in PostgreSQL': storeContract('store', storeIn),
    'Bus in PostgreSQL': storeContract('bus', busIn),
  })

  it('gives the results of the model for random transactions', async () => {
    const { nodes, close } = await storeIn.open(1)
    await compareWithModel(nodes[0] as ReturnType<typeof createPostgresStore>, 100)
    await close()
  })
})
