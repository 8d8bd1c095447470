// The same host with its sessions in memory, in a file and in Redis. `node:sqlite` needs a Node that this program may not be
// run by: all of them are run by the newest that npm has, so that they compare.
import { execFileSync } from 'node:child_process'
import { cluster, oursWith } from './contestants.ts'
import type { BenchRequest } from './requests.ts'
import type { Contestant } from './row.ts'
import { inSession } from './sessions.ts'

let found: string | undefined

/** The path of a Node that has `node:sqlite`. */
function findNode(): string {
  const name = `node-${process.platform}-${process.arch}@24`
  const args = ['--yes', '-p', name, 'node', '-p', 'process.execPath']
  found ??= execFileSync('npx', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  return found
}

/** `configText`: a config whose `plugins` are the argument, in a file of this name. */
export interface Stored {
  readonly file: string
  readonly request: BenchRequest
  configText(plugins: object): string
}

/** The keys of such a config that say where it keeps things, as they are written. */
export const storedWith = (plugins: object) => `http: { port: Number(process.env.PORT ?? 0) },
  secrets: ['a secret of the benchmark, for nobody else'],
  ...(process.env.REDIS_URL && { redis: { url: process.env.REDIS_URL } }),
  plugins: ${JSON.stringify(plugins)},`

export const IN_MEMORY = 'in memory'
export const ON_SQLITE = 'on SQLite'
export const ON_REDIS = 'on Redis, the node alone'

const isNode = (commandLine: string) => commandLine.includes('dist/cli/bin.js') && !commandLine.includes('cluster.ts')

/** One contestant for each store, asked in a session. */
export function onEachStore({ file, request, configText }: Stored): Contestant[] {
  const plain = { 'transport-streamable': {} }
  const on = (name: string, plugins: object) =>
    oursWith(name, `${file}-${name.replaceAll(' ', '-')}`, configText({ ...plain, ...plugins }), request)
  const redis = on(ON_REDIS, { 'cluster-redis': {} })
  const shared = cluster(1, request)
  const behind = (contestant: Contestant): Contestant => ({
    ...contestant,
    command: scratch => [...shared.command(scratch).slice(0, 4), ...redis.command(scratch)],
  })
  return [
    on(IN_MEMORY, {}),
    on(ON_SQLITE, { 'store-sqlite': { file: `${file}.db` } }),
    { ...behind(redis), counts: isNode },
    behind({ ...redis, name: 'on Redis, with Redis itself' }),
  ].map(contestant => ({ ...inSession(contestant, request), node: findNode }))
}
