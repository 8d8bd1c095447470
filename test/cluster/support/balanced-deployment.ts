// A complete deployment on this machine: Redis, node processes, and nginx in front of them.
import { randomBytes } from 'node:crypto'
import type { Context } from 'mocha'
import { freePort } from '../../support/free-port.ts'
import { needsRedis, type RedisServer, type RedisServerSettings, startRedis } from '../../support/redis-server.ts'
import { type Nginx, needsNginx, startNginx } from './nginx.ts'
import { type NodeProcess, type NodeSettings, startNode } from './node-process.ts'

export interface BalancedSettings {
  /** A path from the repository's root; the module reads PORT and REDIS_URL. */
  readonly config: NodeSettings['config']
  /** Default 3. */
  readonly nodes?: number
  readonly redis?: RedisServerSettings
  /** Where a node finds Redis; default: where it is. */
  readonly redisUrl?: (redis: RedisServer, node: number) => Promise<string> | string
  readonly env?: Readonly<Record<string, string>>
}

export interface Balanced {
  /** Of nginx, without a trailing slash. */
  readonly url: string
  readonly nginx: Nginx
  readonly redis: RedisServer
  /** By their place behind nginx; a restarted one takes the place of the one before. Then those beside. */
  readonly nodes: readonly NodeProcess[]
  /** Starts a node in this place, on the port of the one before, which has ended. */
  restart(place: number): Promise<NodeProcess>
  /** Starts a node that nginx knows nothing of. */
  startBeside(): Promise<NodeProcess>
  /** `node 1: 34, node 2: 33, ...`: the requests that nginx gave them. */
  describeCounts(): string
  stop(): Promise<void>
}

export function needsDeployment(context: Context): void {
  needsRedis(context)
  needsNginx(context)
}

const running = new Set<Balanced>()

export async function startBalanced(settings: BalancedSettings): Promise<Balanced> {
  const { config, redisUrl = ({ url }: RedisServer) => url, env = {} } = settings
  const secret = randomBytes(32).toString('base64')
  const redis = await startRedis(settings.redis)
  const ports = await Promise.all(Array.from({ length: settings.nodes ?? 3 }, freePort))
  const nodes: NodeProcess[] = []
  let nginx: Nginx | undefined

  async function start(place: number, port: number) {
    const REDIS_URL = await redisUrl(redis, place)
    const node = await startNode({ config, port, env: { MCP_HOST_SECRETS: secret, REDIS_URL, ...env } })
    nodes[place] = node
    return node
  }

  async function stop() {
    await nginx?.stop()
    await Promise.all(nodes.map(node => node.kill()))
    await redis.remove()
  }

  try {
    // Each ends with the others, those too that were still starting when one could not.
    const starts = await Promise.allSettled(ports.map((port, place) => start(place, port)))
    for (const started of starts) if (started.status === 'rejected') throw started.reason
    nginx = await startNginx(ports)
  } catch (error) {
    await stop()
    throw error
  }
  const front = nginx
  const balanced: Balanced = {
    url: front.url,
    nginx: front,
    redis,
    nodes,
    restart: place => start(place, ports[place] ?? 0),
    startBeside: async () => start(nodes.length, await freePort()),
    describeCounts: () => [...front.counts().values()].map((count, at) => `node ${at + 1}: ${count}`).join(', '),
    async stop() {
      running.delete(balanced)
      await stop()
    },
  }
  running.add(balanced)
  return balanced
}

/** Ends every deployment that this file started: call it in `after`. */
export async function stopBalanced(): Promise<void> {
  await Promise.all([...running].map(balanced => balanced.stop()))
}
