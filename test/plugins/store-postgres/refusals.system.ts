// Hosts that PostgreSQL refuses: other secrets, and a role that is locked while the host runs.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { StartError } from '../../../core/plugin.ts'
import { eventually } from '../../support/eventually.ts'
import { needsPostgres, type PostgresServer, startPostgres, stopPostgres } from '../../support/postgres-server.ts'
import { openSession } from '../../support/session-client.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'

const [OLD = '', NEW = '', OTHER = ''] = ['old', 'new', 'other'].map(
  word => `a secret for tests that is ${word} and long`,
)

let server: PostgresServer

const start = (schema: string, secrets: readonly string[], url = server.url) =>
  startHost({
    toolsets: { all: [defineTool({ name: 'hello', handler: () => 'hello' })] },
    routes: { '/': { toolsets: 'all' } },
    secrets: [...secrets],
    store: { postgres: { url, schema } },
    plugins: { 'transport-streamable': {}, health: {} },
  })

const readiness = async ({ url }: StartedHost) => {
  const { reasons } = (await (await fetch(`${url}/health`)).json()) as { readonly reasons?: { postgres?: string } }
  return reasons?.postgres
}

describe('PostgreSQL', () => {
  before(async function () {
    needsPostgres(this)
    server = await startPostgres({ fsync: 'off' })
  })
  afterEach(stopHosts)
  after(stopPostgres)

  it('refuses a host without a secret of the running nodes, until they end', async () => {
    const node = await start('others', [OLD])
    const session = await openSession(`${node.url}/`)
    const refused = await start('others', [OTHER]).catch(error => error)
    expect(refused instanceof StartError && refused.code).to.equal('MH3501')
    expect(refused.message).to.match(/schema others is in use by a host with other `secrets`.*set a different `schema`/)
    expect((await session.request('ping')).status).to.equal(200)
    await start('another', [OTHER])
    await node.host.close({ grace: 0 })
    await start('others', [OTHER])
  })

  it('accepts each step of a secret rotation', async () => {
    const nodes = [await start('rotated', [OLD]), await start('rotated', [OLD])]
    for (const secrets of [[OLD, NEW], [NEW, OLD], [NEW]]) {
      for (const index of nodes.keys()) {
        const next = await start('rotated', secrets)
        await nodes[index]?.host.close({ grace: 0 })
        nodes[index] = next
      }
    }
    expect(await Promise.all(nodes.map(readiness))).to.deep.equal([undefined, undefined])
  })

  it('that refuses the role of a running host is named in the log and in the health page', async () => {
    await server.sql('CREATE ROLE app LOGIN SUPERUSER')
    const node = await start('locked', [OLD], server.url.replace('postgres@', 'app@'))
    await server.sql('ALTER ROLE app NOLOGIN')
    await server.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'`)
    const reason = await eventually(
      'the refusal',
      () => readiness(node),
      text => text?.includes('refuses') === true,
    )
    expect(reason).to.equal('PostgreSQL refuses this host: authentication (28000)')
    const line = node.log.find(({ code, message }) => code === 'MH3504' && message?.includes('refuses'))
    expect(line).to.deep.include({ level: 'warn', reason: 'role "app" is not permitted to log in' })
    expect(line?.['fix']).to.match(/^check the URL, the password/)
    await server.sql('ALTER ROLE app LOGIN')
    await eventually(
      'the return',
      () => readiness(node),
      text => text === undefined,
    )
    expect(node.log.filter(({ message }) => message?.startsWith('PostgreSQL refuses'))).to.have.length(1)
  })
})
