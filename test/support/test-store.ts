// Chooses the store of sessions and streams: with MCP_TEST_STORE=sqlite, a file for each host of start-host.ts and test/cluster
// whose config names no store. test/sqlite/suites.ts lists the suites that run with it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isObject } from '../../core/plugin.ts'
import type { TestConfig } from './start-host.ts'

const named = process.env['MCP_TEST_STORE']
if (named !== undefined && named !== 'sqlite')
  throw new Error(`MCP_TEST_STORE is "${named}"; it may be sqlite, or not set`)

export const ON_SQLITE = named === 'sqlite'

/** Plugins that store sessions or streams. */
const STORES = /(?:^store-|-redis$)/

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

/** Adds a SQLite file as the store, if requested and if the config has no store. */
export function withStore(config: TestConfig): TestConfig {
  if (!ON_SQLITE) return config
  const plugins = config.plugins ?? { 'transport-streamable': {} }
  const ofRoutes = Object.values(config.routes).flatMap(route =>
    isObject(route.plugins) ? Object.keys(route.plugins) : [],
  )
  if ([...Object.keys(plugins), ...ofRoutes].some(name => STORES.test(name))) return config
  return { ...config, plugins: { ...plugins, 'store-sqlite': { file: storeFile() } } } as TestConfig
}
