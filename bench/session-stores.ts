// Compares session stores: memory, SQLite and Redis. `node:sqlite` can be missing in the current Node.js version,
// so all contestants run with the Node.js 24 package from npm.
import { execFileSync } from 'node:child_process'
import { cluster, mcpHostWith } from './contestants.ts'
import type { BenchRequest } from './requests.ts'
import type { Contestant } from './row.ts'
import { inSession } from './sessions.ts'

let cachedPath: string | undefined

/** The path of a Node.js version with `node:sqlite`. */
function findNode(): string {
  const name = `node-${process.platform}-${process.arch}@24`
  const args = ['--yes', '-p', name, 'node', '-p', 'process.execPath']
  cachedPath ??= execFileSync('npx', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  return cachedPath
}

export interface StoredHost {
  /** Name prefix of its config files. */
  readonly file: string
  readonly request: BenchRequest
  createConfig(plugins: object): string
}

/** Source text of the config keys for a store. */
export const storeConfigKeys = (plugins: object) => `http: { port: Number(process.env.PORT ?? 0) },
  secrets: ['a secret that only the benchmark uses'],
  ...(process.env.REDIS_URL && { redis: { url: process.env.REDIS_URL } }),
  plugins: ${JSON.stringify(plugins)},`

export const MEMORY = 'memory'
export const SQLITE = 'SQLite'
const REDIS = 'Redis, without the Redis process'

const isHost = (commandLine: string) => commandLine.includes('dist/cli/bin.js') && !commandLine.includes('cluster.ts')

/** Sends the requests in a session. */
export function contestantsPerStore({ file, request, createConfig }: StoredHost): Contestant[] {
  const withPlugins = (name: string, plugins: object) =>
    mcpHostWith(
      name,
      `${file}-${name.replaceAll(' ', '-')}`,
      createConfig({ 'transport-streamable': {}, ...plugins }),
      request,
    )
  const node = withPlugins(REDIS, { 'cluster-redis': {} })
  const onRedis: Contestant = {
    ...node,
    command: scratch => [...cluster(1, request).command(scratch).slice(0, 4), ...node.command(scratch)],
  }
  return [
    withPlugins(MEMORY, {}),
    withPlugins(SQLITE, { 'store-sqlite': { file: `${file}.db` } }),
    { ...onRedis, isCounted: isHost },
    { ...onRedis, name: 'Redis, with the Redis process' },
  ].map(contestant => ({ ...inSession(contestant, request), nodePath: findNode }))
}
