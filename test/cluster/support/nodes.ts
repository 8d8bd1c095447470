// Several hosts in one process that share one real Redis, or as the processes of one host share a file (test-store.ts), and a
// client's session as each of them is asked for it.
import type { Context } from 'mocha'
import type { Config } from '../../../core/index.ts'
import { identifyByHeader } from '../../fixtures/identify-by-header.ts'
import { eventually } from '../../support/eventually.ts'
import { needsRedis, type RedisServer, startRedis } from '../../support/redis-server.ts'
import {
  openSession,
  postMessage,
  postOpen,
  readWhole,
  type SessionClient,
  type SessionSettings,
} from '../../support/session-client.ts'
import { type StartedHost, startHost, type TestConfig } from '../../support/start-host.ts'
import { exchange } from '../../support/stream-exchange.ts'
import {
  createSharedStore,
  createStorePlugin,
  IN_MEMORY,
  newSchema,
  ON_POSTGRES,
  ON_SQLITE,
  storeFile,
} from '../../support/test-store.ts'
import { startNeighbours } from '../../support/worker-processes.ts'
import { recordNeighbour, recordRedis, type SentMessages } from './sent-messages.ts'
import { type Counts, countsInFile, countsInPostgres, countsInRedis, countsInStore } from './store-counts.ts'

export interface Cluster {
  /** Throws where the nodes share a file. */
  readonly redis: RedisServer
  readonly nodes: readonly StartedHost[]
  /** What the store has. */
  readonly counts: Counts
}

/** For `before` hooks: what the nodes of `startCluster` share must be there. */
export function needsStore(context: Context): void {
  if (!ON_SQLITE && !IN_MEMORY && !ON_POSTGRES) needsRedis(context)
}

export type NodeConfig = TestConfig & { readonly plugins?: Config['plugins'] }

/** Hosts of one config; `redisUrl` gives a node another way to Redis. */
export async function startNode(redis: { readonly url: string }, config: NodeConfig): Promise<StartedHost> {
  return startHost({
    redis: { url: redis.url, commandTimeout: '8s' },
    ...config,
    plugins: {
      'transport-streamable': {},
      'cluster-redis': {},
      health: {},
      who: identifyByHeader(),
      ...config.plugins,
    },
  })
}

/** The same as processes of one host, on one file or a store in memory: options of `cluster-redis` apply to the file. */
async function startOnHost(
  size: number,
  configOf: (index: number) => NodeConfig,
  sent: SentMessages | undefined,
): Promise<Cluster> {
  const file = storeFile()
  const store = createSharedStore()
  const nodes: StartedHost[] = []
  for (const [index, neighbours] of startNeighbours(size).entries()) {
    if (sent) recordNeighbour(neighbours, sent)
    const { plugins, ...config } = configOf(index)
    const { 'cluster-redis': own, ...others } = (plugins ?? {}) as Record<string, object>
    const full = {
      'transport-streamable': {},
      ...(ON_SQLITE ? { 'store-sqlite': { file, ...own } } : { stored: createStorePlugin(store, own) }),
      health: {},
      who: identifyByHeader(),
      ...others,
    }
    nodes.push(await startHost({ ...config, plugins: full } as TestConfig, undefined, { neighbours }))
  }
  return {
    get redis(): RedisServer {
      throw new Error('this test looks into Redis, and the nodes share a file')
    },
    nodes,
    counts: ON_SQLITE ? countsInFile(file) : countsInStore(store),
  }
}

/** The same with PostgreSQL: options of `cluster-redis` apply to store-postgres. */
async function startOnPostgres(size: number, configOf: (index: number) => NodeConfig): Promise<Cluster> {
  const database = newSchema()
  const nodes: StartedHost[] = []
  for (let index = 0; index < size; index++) {
    const { plugins, ...config } = configOf(index)
    const { 'cluster-redis': own, ...others } = (plugins ?? {}) as Record<string, object>
    const full = {
      ...{ 'transport-streamable': {}, 'store-postgres': { ...database, ...own }, health: {}, who: identifyByHeader() },
      ...others,
    }
    nodes.push(await startHost({ ...config, plugins: full } as TestConfig))
  }
  return {
    get redis(): RedisServer {
      throw new Error('this test looks into Redis, and the nodes share a PostgreSQL server')
    },
    nodes,
    counts: countsInPostgres(database),
  }
}

/** `sent`: has what the nodes send to each other. */
export async function startCluster(
  size: number,
  config: NodeConfig | ((index: number) => NodeConfig),
  redis?: RedisServer,
  sent?: SentMessages,
): Promise<Cluster> {
  if (ON_SQLITE || IN_MEMORY) return startOnHost(size, typeof config === 'function' ? config : () => config, sent)
  if (ON_POSTGRES) return startOnPostgres(size, typeof config === 'function' ? config : () => config)
  const server = redis ?? (await startRedis())
  const nodes: StartedHost[] = []
  for (let index = 0; index < size; index++) {
    const one = typeof config === 'function' ? config(index) : config
    const plugins = { ...one.plugins, ...(sent && { recording: recordRedis(sent) }) }
    nodes.push(await startNode(server, { ...one, plugins } as NodeConfig))
  }
  // A node also starts while Redis does not respond yet.
  for (const { url } of nodes) await eventually('a node that is ready', async () => (await fetch(`${url}/health`)).ok)
  return { redis: server, nodes, counts: countsInRedis(server) }
}

/** A client's session, as the node at this address is asked for it. */
export function at(url: string, session: SessionClient, headers: Readonly<Record<string, string>> = {}): SessionClient {
  const { protocolVersion } = session.initialized.message.result
  const base = { ...headers, 'Mcp-Session-Id': session.id, 'MCP-Protocol-Version': protocolVersion }
  let lastId = Math.floor(Math.random() * 1e9)
  const open: SessionClient['open'] = (method, params = {}, { id = ++lastId, headers: more } = {}) =>
    postOpen(url, { id, method, params }, { ...base, ...more })
  const verb = (method: string, more: Readonly<Record<string, string | undefined>> = {}) =>
    exchange(url, { method, headers: { ...base, ...more } as Record<string, string> })
  return {
    id: session.id,
    url,
    initialized: session.initialized,
    open,
    send: (body, more) => postMessage(url, body, { ...base, ...more }),
    request: (method, params, options) => readWhole(open(method, params, options)),
    call: (name, args = {}, options = {}) =>
      open('tools/call', { name, arguments: args, _meta: { progressToken: `progress of ${name}` } }, options),
    get: more => verb('GET', { Accept: 'text/event-stream', ...more }),
    end: more => readWhole(verb('DELETE', more)),
  }
}

/** A session opened at one node, and itself at every node. */
export async function openAtAll(
  { nodes }: Pick<Cluster, 'nodes'>,
  index = 0,
  settings: SessionSettings = {},
): Promise<readonly [SessionClient, ...SessionClient[]]> {
  const session = await openSession(`${nodes[index]?.url}/`, settings)
  const headers = (settings.headers ?? {}) as Record<string, string>
  return nodes.map(({ url }) => at(`${url}/`, session, headers)) as unknown as readonly [
    SessionClient,
    ...SessionClient[],
  ]
}
