// Opens the store and the bus in PostgreSQL for a host. Routes with the same options share the connections.
import { assertInstalled } from '../../core/auth.ts'
import type { InternalHost } from '../../core/internal.ts'
import type { Bus, Store } from '../../core/store.ts'
import { demandSecrets } from '../families/stores/index.ts'
import { createPostgresBus } from './bus.ts'
import { Postgres } from './connection.ts'
import type { FilledStorePostgresOptions } from './index.ts'
import { createPostgresStore } from './store.ts'

const OPENED = Symbol('databases of store-postgres')

interface Opened {
  readonly store: Store
  readonly bus: Bus
}

export function openPostgres(host: InternalHost, options: FilledStorePostgresOptions): Opened {
  assertInstalled(['pg'], host.config)
  demandSecrets(host, 'all nodes share the sessions, but the keys that sign their ids')
  const opened = host.share(OPENED, () => new Map<string, Opened>())
  const name = JSON.stringify(options)
  const found = opened.get(name) ?? open(host, options, opened.size === 0 ? 'postgres' : `postgres ${opened.size + 1}`)
  opened.set(name, found)
  return found
}

function open(host: InternalHost, { url, schema }: FilledStorePostgresOptions, condition: string): Opened {
  const { log, config } = host
  const postgres = new Postgres({ url, schema, log })
  const bus = createPostgresBus(postgres, config.node, log)
  host.onStart(async () => {
    if (config.purpose === 'inspect') return
    await postgres.start()
    await bus.start()
  })
  host.readiness(condition, () => postgres.isUp || 'PostgreSQL does not respond')
  host.onClose(async () => {
    await bus.leave()
    await postgres.close()
  })
  return { store: createPostgresStore(postgres), bus }
}
