// Chooses the store of sessions and streams for each host of start-host.ts and test/cluster whose config names no store:
// with MCP_TEST_STORE=sqlite a file, with MCP_TEST_STORE=memory a store in memory that the hosts of a cluster share, with
// MCP_TEST_STORE=postgres a schema in the PostgreSQL server of MCP_TEST_POSTGRES.
// test/sqlite/suites.ts lists the suites that run with it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isObject } from '../../core/plugin.ts'
import { createSessionStore } from '../../core/sessions/create-session-store.ts'
import { createEventStore } from '../../core/sessions/event-store.ts'
import { createMemoryStore } from '../../core/store/memory-store.ts'
import type { Store } from '../../core/store/store.ts'
import { plugin } from '../fixtures/plugins.ts'
import type { TestConfig } from './start-host.ts'

const named = process.env['MCP_TEST_STORE']
if (named !== undefined && !['sqlite', 'memory', 'postgres'].includes(named))
  throw new Error(`MCP_TEST_STORE is "${named}"; allowed: sqlite, memory, postgres`)

export const ON_SQLITE = named === 'sqlite'
export const IN_MEMORY = named === 'memory'
export const ON_POSTGRES = named === 'postgres'

/** A store that the hosts of this process share, as the processes of one host share a file. */
export function createSharedStore(): Store & { readonly partitions: ReadonlySet<string> } {
  const store = createMemoryStore()
  const partitions = new Set<string>()
  return {
    ...store,
    shared: 'host',
    partitions,
    transact(partition, steps) {
      partitions.add(partition)
      return store.transact(partition, steps)
    },
  }
}

const BOUNDS = { ttl: 3_600_000, maxEvents: 10_000, maxBytes: 4_194_304 }

/** Stores sessions and streams in a shared store. */
export const createStorePlugin = (store: Store, bounds: Partial<typeof BOUNDS> = {}) =>
  plugin(host => {
    host.provide('sessionStore', createSessionStore(store, { node: host.config.node, log: host.log }))
    host.provide('eventStore', createEventStore(store, { ...BOUNDS, ...bounds }))
  })

/** Plugins that store sessions or streams. */
const STORES = /(?:^store-|-redis$|^stored$)/

const folders = new Set<string>()
const remove = () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
}

/** For a file that is removed with this process. */
export function storeFile(): string {
  if (folders.size === 0) process.once('exit', remove)
  const folder = mkdtempSync(join(tmpdir(), 'test-store-'))
  folders.add(folder)
  return join(folder, 'host.db')
}

let schemas = 0

/** Options of store-postgres, with a new schema. */
export const newSchema = () => ({
  url: process.env['MCP_TEST_POSTGRES'] ?? '',
  schema: `test_${process.pid}_${++schemas}`,
})

/** Adds the store, if requested and if the config has no store. */
export function withStore(config: TestConfig): TestConfig {
  if (named === undefined) return config
  const plugins = config.plugins ?? { 'transport-streamable': {} }
  const ofRoutes = Object.values(config.routes).flatMap(route =>
    isObject(route.plugins) ? Object.keys(route.plugins) : [],
  )
  if ([...Object.keys(plugins), ...ofRoutes].some(name => STORES.test(name))) return config
  const store = ON_SQLITE
    ? { 'store-sqlite': { file: storeFile() } }
    : ON_POSTGRES
      ? { 'store-postgres': newSchema() }
      : { stored: createStorePlugin(createSharedStore()) }
  return { ...config, plugins: { ...plugins, ...store } } as TestConfig
}
