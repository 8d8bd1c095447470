// Several hosts in one process that share one real Redis, and a client's session as any of them is asked for it.
import type { Config } from '../../../core/index.ts'
import { identifyByHeader } from '../../fixtures/identify-by-header.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import {
  openSession,
  postOpen,
  readWhole,
  type SessionClient,
  type SessionSettings,
  tell,
} from '../../support/session-client.ts'
import { type StartedHost, startHost, type TestConfig } from '../../support/start-host.ts'
import { exchange } from '../../support/stream-exchange.ts'

export interface Cluster {
  readonly redis: RedisServer
  readonly nodes: readonly StartedHost[]
}

export type NodeConfig = TestConfig & { readonly plugins?: Config['plugins'] }

/** Hosts of one config; `redisUrl` gives a node another way to Redis. */
export async function startNode(redis: { readonly url: string }, config: NodeConfig): Promise<StartedHost> {
  return startHost({
    redis: { url: redis.url, commandTimeout: '1s' },
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

export async function startCluster(
  size: number,
  config: NodeConfig | ((index: number) => NodeConfig),
  redis?: RedisServer,
): Promise<Cluster> {
  const server = redis ?? (await startRedis())
  const nodes: StartedHost[] = []
  for (let index = 0; index < size; index++) {
    nodes.push(await startNode(server, typeof config === 'function' ? config(index) : config))
  }
  return { redis: server, nodes }
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
    send: (body, more) => tell(url, body, { ...base, ...more }),
    request: (method, params, options) => readWhole(open(method, params, options)),
    call: (name, args = {}, options = {}) =>
      open('tools/call', { name, arguments: args, _meta: { progressToken: `progress of ${name}` } }, options),
    get: more => verb('GET', { Accept: 'text/event-stream', ...more }),
    end: more => readWhole(verb('DELETE', more)),
  }
}

/** A session opened at one node, and itself at every node. */
export async function openAtAll(
  { nodes }: Cluster,
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
