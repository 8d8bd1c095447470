// Tests Redis over TLS with client certificates: rejected certificates, messages with a fix, and renewal of certificate
// files.
import { copyFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { StartError } from '../../core/plugin.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { type Authority, makeAuthority, needsOpenssl, removeTlsFolders, tlsFolder } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'

type Host = Awaited<ReturnType<typeof startRedisHost>>

interface Issued {
  readonly names?: string
  /** How long it is good for, and below 0 how long ago it ended. */
  readonly days?: number
}

/** Two authorities, of whose certificates Redis and we have the names of files. */
function create() {
  const authority = (name: string) => {
    const { sign, files }: Authority = makeAuthority(name)
    const issue = (subject: string, { days = 1, ...more }: Issued = {}) =>
      sign({ subject, days: [Math.min(days, 0) - 1, days], ...more }).files
    return { ...files, issue }
  }
  return { folder: tlsFolder(), ours: authority('ours'), other: authority('other') }
}

/** The line that says why there is no connection. */
const whyNot = ({ log }: Host) =>
  eventually('a line about Redis in the log', () =>
    log.find(({ level, redis }) => level === 'warn' && redis !== undefined),
  )

const killClients = (redis: RedisServer) => redis.cli('CLIENT', 'KILL', 'TYPE', 'normal')

describe('Redis over mutual TLS', () => {
  before(function () {
    needsRedis(this)
    needsOpenssl(this)
  })
  afterEach(async () => {
    await stopHostsAndRedis()
    removeTlsFolders()
  })

  it('connects with a client certificate from files', async () => {
    const { ours } = create()
    const redis = await startRedis({ tls: { ...ours.issue('redis'), ca: ours.cert } })
    const { connection, log } = await startRedisHost({ url: redis.url, tls: { ca: ours.cert, ...ours.issue('mcp') } })
    await whenHealthy(connection)
    expect(await connection.run(client => client.set('mcp-host:a', 'b'))).to.equal('OK')
    expect(JSON.stringify(log)).to.not.include('PRIVATE KEY')
  })

  const WRONG = [
    {
      what: 'an unknown CA signed the Redis certificate',
      server: ({ other }: ReturnType<typeof create>) => other.issue('redis'),
      fix: /redis\.tls\.ca/,
    },
    {
      what: 'the Redis certificate has expired',
      server: ({ ours }: ReturnType<typeof create>) => ours.issue('redis', { days: -1 }),
      fix: /the certificate of Redis or .* has expired: renew it/,
    },
    {
      what: 'the Redis certificate has another host name',
      server: ({ ours }: ReturnType<typeof create>) => ours.issue('redis', { names: 'IP:127.0.0.9' }),
      fix: /redis\.tls\.servername/,
    },
    {
      what: 'the client certificate is missing',
      client: () => undefined,
      fix: /redis\.tls\.cert/,
    },
    {
      what: 'the client certificate has expired',
      client: ({ ours }: ReturnType<typeof create>) => ours.issue('mcp', { days: -1 }),
      fix: /the client certificate has expired/,
    },
    {
      what: 'an unknown CA signed the client certificate',
      client: ({ other }: ReturnType<typeof create>) => other.issue('mcp'),
      fix: /redis\.tls\.cert/,
    },
    {
      what: 'the key does not match the client certificate',
      client: ({ ours }: ReturnType<typeof create>) => ({ ...ours.issue('mcp'), key: ours.issue('mcp').key }),
      fix: /do not match/,
    },
  ] as const

  for (const { what, fix, ...wrong } of WRONG) {
    it(`logs one message with a fix when ${what}; readiness fails`, async () => {
      const made = create()
      const { ours } = made
      const server = 'server' in wrong ? wrong.server(made) : ours.issue('redis')
      const client = 'client' in wrong ? wrong.client(made) : ours.issue('mcp')
      const redis = await startRedis({ tls: { ...server, ca: ours.cert } })
      const host = await startRedisHost({ url: redis.url, tls: { ca: ours.cert, ...client } })
      const line = await whyNot(host)
      expect(line?.message).to.equal('Redis does not respond; retrying')
      expect(String(line?.['fix'])).to.match(fix)
      expect((await host.plugin.checkReadiness()).checks).to.include({ redis: false })
    })
  }

  it('logs a message with a fix when the port does not use TLS', async () => {
    const redis = await startRedis()
    const host = await startRedisHost({ url: redis.url.replace('redis:', 'rediss:'), commandTimeout: 500 })
    const line = await whyNot(host)
    // Such a Redis waits for the rest of what it takes for a command.
    expect(line?.['reason']).to.equal('Connection timeout')
    expect((await host.plugin.checkReadiness()).checks).to.include({ redis: false })
  })

  it('uses renewed certificate files for new connections without a restart', async () => {
    const { ours, other, folder } = create()
    const first = { ...ours.issue('redis'), ca: ours.cert }
    const redis = await startRedis({ tls: first })
    const files = { ca: join(folder, 'ca.pem'), cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
    const put = (from: { ca: string; cert: string; key: string }) => {
      for (const kind of ['ca', 'cert', 'key'] as const) copyFileSync(from[kind], files[kind])
    }
    put({ ...ours.issue('mcp'), ca: ours.cert })
    const { connection, log } = await startRedisHost({ url: redis.url, tls: files })
    await whenHealthy(connection)
    // A new authority signs for both sides.
    const next = { ...other.issue('redis'), ca: other.cert }
    for (const kind of ['ca', 'cert', 'key'] as const) copyFileSync(next[kind], first[kind])
    put({ ...other.issue('mcp'), ca: other.cert })
    expect(connection.healthy).to.equal(true)
    await redis.kill()
    await whenHealthy(connection, false)
    await redis.start()
    await whenHealthy(connection)
    // Half of a change, such as a key that is not there yet: tried until it is whole.
    const kept = other.issue('mcp')
    rmSync(files.key)
    copyFileSync(kept.cert, files.cert)
    await redis.kill()
    await redis.start()
    const line = () => log.find(({ reason }) => String(reason).includes('redis.tls.key'))
    await eventually('a line that names the file', line)
    copyFileSync(kept.key, files.key)
    await whenHealthy(connection)
    expect(String(line()?.['reason'])).to.match(/redis\.tls\.key.*PEM.*ENOENT\)/)
  })

  it('uses renewed certificates in a Redis Cluster', async () => {
    const { ours, other, folder } = create()
    const first = { ...ours.issue('redis'), ca: ours.cert }
    const node = await startRedis({
      cluster: true,
      tls: first,
      more: ['--tls-cluster', 'yes', '--cluster-announce-ip', '127.0.0.1'],
    })
    node.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await eventually(
      'a cluster of one node',
      () => node.cli('CLUSTER', 'INFO'),
      lines => lines.some(line => line.startsWith('cluster_state:ok')),
    )
    const files = { ca: join(folder, 'ca.pem'), cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
    const put = (from: typeof files, to: typeof files) => {
      for (const kind of ['ca', 'cert', 'key'] as const) copyFileSync(from[kind], to[kind])
    }
    put({ ...ours.issue('mcp'), ca: ours.cert }, files)
    const { connection } = await startRedisHost({ cluster: [node.url], tls: files })
    await whenHealthy(connection)
    put({ ...other.issue('redis'), ca: other.cert }, first)
    put({ ...other.issue('mcp'), ca: other.cert }, files)
    await node.kill()
    await whenHealthy(connection, false)
    await node.start()
    await whenHealthy(connection)
    expect(await connection.run(client => client.set('mcp-host:a', 'b'))).to.equal('OK')
  })

  it('applies to Sentinels and their primary', async () => {
    const { ours } = create()
    const tls = { ...ours.issue('redis'), ca: ours.cert }
    const primary = await startRedis({ tls })
    const own = [
      'tls-replication yes',
      `tls-cert-file ${tls.cert}`,
      `tls-key-file ${tls.key}`,
      `tls-ca-cert-file ${tls.ca}`,
    ]
    const tlsPort = ['tls-auth-clients yes', ...own]
    const server = await startRedis({
      sentinel: [`sentinel monitor mymaster 127.0.0.1 ${primary.port} 1`, ...tlsPort],
      tls,
    })
    const sentinel = { name: 'mymaster', addresses: [server.url] }
    const { connection } = await startRedisHost({ sentinel, tls: { ca: ours.cert, ...ours.issue('mcp') } })
    await whenHealthy(connection)
    expect(await connection.run(client => client.set('mcp-host:a', 'b'))).to.equal('OK')
    expect(killClients(primary)).to.have.lengthOf(1)
    await whenHealthy(connection, false)
    await whenHealthy(connection)
  })

  it('startup fails without both the certificate and the key in PEM format', async () => {
    const { ours, folder } = create()
    const { cert, key } = ours.issue('mcp')
    const binary = join(folder, 'binary.der')
    writeFileSync(binary, Buffer.from([0x30, 0x82]))
    for (const [tls, message] of [
      [{ cert }, /redis\.tls\.cert and redis\.tls\.key/],
      [{ key }, /go together/],
      [{ cert: binary, key }, /redis\.tls\.cert.*PEM/],
      [{ ca: join(folder, 'none.pem') }, /redis\.tls\.ca.*PEM.*ENOENT\)/],
    ] as const) {
      const error = await rejectionOf(startRedisHost({ url: 'rediss://127.0.0.1:1', tls }))
      expect(error).to.be.instanceOf(StartError)
      expect(String(error)).to.match(message)
    }
  })
})
