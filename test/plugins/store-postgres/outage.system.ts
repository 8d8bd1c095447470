// The store and the bus while PostgreSQL is killed, paused and restarted under load.
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { createTestLog } from '../../../core/testing/test-log.ts'
import { createPostgresBus, type PostgresBus } from '../../../plugins/store-postgres/bus.ts'
import { createPostgresStore, MAX_CONNECTIONS, Postgres } from '../../../plugins/store-postgres/connection.ts'
import { eventually } from '../../support/eventually.ts'
import {
  needsPostgres,
  type PostgresServer,
  queryPostgres,
  startPostgres,
  stopPostgres,
} from '../../support/postgres-server.ts'

const OUTAGES: ReadonlyArray<readonly [string, (server: PostgresServer) => Promise<void>]> = [
  [
    'is killed and restarted',
    async server => {
      await server.kill()
      await server.start()
    },
  ],
  [
    'is paused for longer than the time limit',
    async server => {
      server.pause()
      await pause(7_000)
      server.resume()
    },
  ],
  ['ends all connections', async server => server.sql('SELECT pg_terminate_backend(pid) FROM pg_stat_activity')],
]

interface Node {
  readonly postgres: Postgres
  readonly bus: PostgresBus
  readonly store: ReturnType<typeof createPostgresStore>
  readonly texts: Array<string | undefined>
  readonly letters: string[]
}

async function openNode(url: string, schema: string, name: string): Promise<Node> {
  const log = createTestLog()
  const postgres = new Postgres({ url, schema, log })
  const bus = createPostgresBus(postgres, name, log)
  const node: Node = { postgres, bus, store: createPostgresStore(postgres), texts: [], letters: [] }
  bus.subscribe(text => node.texts.push(text))
  bus.receive(text => node.letters.push(text))
  await postgres.start()
  await bus.start()
  return node
}

/** Calls until the end of the outage, each after the other; returns the acknowledged numbers. */
function load(act: (number: number) => Promise<unknown>) {
  const acknowledged: number[] = []
  let isOver = false
  const run = (async () => {
    for (let number = 0; !isOver; number++) {
      try {
        if ((await act(number)) !== false) acknowledged.push(number)
      } catch (error) {
        expect((error as { kind?: string }).kind, String(error)).to.equal('unavailable')
      }
      await pause(2)
    }
  })()
  return {
    acknowledged,
    async end() {
      isOver = true
      await run
    },
  }
}

let server: PostgresServer

before(async function () {
  needsPostgres(this)
  server = await startPostgres()
})
after(stopPostgres)

describe('PostgreSQL outages', () => {
  for (const [index, [what, outage]] of OUTAGES.entries()) {
    it(`lose nothing acknowledged and repeat nothing when the server ${what}`, async () => {
      const nodes = await Promise.all(['one', 'other'].map(name => openNode(server.url, `outage_${index}`, name)))
      const [one, other] = nodes as [Node, Node]
      let returns = 0
      one.store.onReturn?.(() => returns++)
      const loads = {
        texts: load(async number => one.bus.publish(`text ${number}`)),
        letters: load(number => one.bus.send('other', `letter ${number}`, 'share')),
        messages: load(async number => one.store.transact('p', [{ log: 'l', append: [`${number}`] }])),
        counts: load(async () => one.store.transact('p', [{ record: 'r', add: { n: 1 } }])),
      }
      await eventually('texts arrive', () => other.texts.length > 20 && other.letters.length > 20)
      await outage(server)
      const before = loads.texts.acknowledged.length
      await eventually('the server responds', () => loads.texts.acknowledged.length > before + 20)
      await Promise.all(Object.values(loads).map(one => one.end()))
      const last = loads.texts.acknowledged.at(-1)
      await eventually('the last text arrives', () => nodes.every(({ texts }) => texts.includes(`text ${last}`)))
      const letters = loads.letters.acknowledged.map(number => `letter ${number}`)
      await eventually('the last letter arrives', () => other.letters.includes(letters.at(-1) ?? ''))

      for (const { texts } of nodes) {
        expect(texts.filter((text, at) => texts.indexOf(text) < at)).to.deep.equal([])
        expect(loads.texts.acknowledged.filter(number => !texts.includes(`text ${number}`))).to.deep.equal([])
      }
      expect(one.texts).to.deep.equal(other.texts)
      expect(letters.filter(letter => !other.letters.includes(letter))).to.deep.equal([])
      expect(other.letters.filter((letter, at) => other.letters.indexOf(letter) < at)).to.deep.equal([])
      const [log, record] = await one.store.read('p', [{ log: 'l', after: 0 }, { record: 'r' }] as const)
      const stored = log?.messages ?? []
      expect(loads.messages.acknowledged.filter(number => !stored.includes(`${number}`))).to.deep.equal([])
      expect(stored.filter((text, at) => stored.indexOf(text) < at)).to.deep.equal([])
      expect(Number(record?.fields['n'])).to.be.at.least(loads.counts.acknowledged.length)
      // Connections of a killed server can respond for a moment: at most one return for each.
      expect(returns).to.be.at.most(MAX_CONNECTIONS)
      for (const node of nodes) {
        await node.bus.leave()
        await node.postgres.close()
      }
    })
  }
})

describe('mcp-host doctor --config', () => {
  const log = createTestLog()

  it('connects to PostgreSQL and creates nothing', async () => {
    const finding = await new Postgres({ url: server.url, schema: 'examined', log }).examine()
    expect(finding).to.deep.equal({ check: 'PostgreSQL', level: 'ok', text: 'responds' })
    const schemas = queryPostgres(server.url, 'SELECT nspname FROM pg_namespace')
    expect(schemas).to.include('pg_catalog').and.not.include('examined')
  })

  it('reports a server that does not respond, with the fix', async () => {
    const finding = await new Postgres({ url: 'postgres://a@127.0.0.1:1/b', schema: 'mcp', log }).examine()
    expect(finding).to.include({ level: 'wrong', text: 'connect ECONNREFUSED 127.0.0.1:1' })
    expect(finding.fix).to.match(/check the URL/)
  })
})
