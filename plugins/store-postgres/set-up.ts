// Opens the store and the bus in PostgreSQL for a host. Routes with the same database share the connections.
import type { InternalHost } from '../../core/internal.ts'
import type { Store } from '../../core/store.ts'
import { claimOf, readStreamLimits, requireSecrets } from '../families/stores/index.ts'
import { createPostgresBus } from './bus.ts'
import { createPostgresStore, Postgres } from './connection.ts'
import type { FilledStorePostgresOptions } from './options.ts'

const OPENED = Symbol('databases of store-postgres')

export function setUp(host: InternalHost, options: FilledStorePostgresOptions): void {
  requireSecrets(host, 'sessions are for every node, but the keys that sign their ids')
  host.provide('store', { ...openOnce(host, options), limits: { streams: readStreamLimits(host, options) } })
}

function openOnce(host: InternalHost, { url, schema }: FilledStorePostgresOptions): Store {
  const all = host.share(OPENED, () => new Map<string, Store>())
  const name = JSON.stringify([url, schema])
  const opened = all.get(name) ?? open(host, url, schema, all.size === 0 ? 'postgres' : `postgres ${all.size + 1}`)
  all.set(name, opened)
  return opened
}

function open(host: InternalHost, url: string, schema: string, condition: string): Store {
  const { log, config } = host
  const postgres = new Postgres({ url, schema, log, claim: claimOf(host) })
  const bus = createPostgresBus(postgres, config.node, log)
  host.onStart(async () => {
    if (config.purpose === 'inspect') return
    await postgres.start()
    await bus.start()
  })
  host.readiness(condition, () => postgres.isUp || postgres.problem)
  host.onClose(async () => {
    await bus.leave()
    await postgres.close()
  })
  return { ...createPostgresStore(postgres), bus }
}
