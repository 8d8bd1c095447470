// A Redis that loses acknowledged writes, as in a failover, and a connection that can be cut.
import { startCuttingProxy } from '../../support/cutting-proxy.ts'
import { type RedisServer, startRedis, stopRedis } from '../../support/redis-server.ts'
import { stopHosts } from '../../support/start-host.ts'

const stops: Array<() => Promise<unknown>> = []

/** Keeps what these patterns name as it is; what it gives makes it so again. */
export function keepKeys(redis: RedisServer, ...patterns: readonly string[]): () => void {
  const keys = patterns.flatMap(pattern => redis.cli('KEYS', pattern))
  for (const key of keys) redis.cli('COPY', key, `kept ${key}`)
  return () => {
    for (const key of keys) redis.cli('COPY', `kept ${key}`, key, 'REPLACE')
  }
}

/** The URL `cuttable` leads to Redis through a proxy. The proxy passes no data between `cut()` and `mend()`. */
export async function startLine(redis: RedisServer) {
  let isCut = false
  const line = await startCuttingProxy(redis.url, { cutter: () => () => (isCut ? 0 : undefined) })
  stops.push(line.stop)
  return {
    cuttable: { url: line.url.replace('http:', 'redis:') },
    cut() {
      isCut = true
      line.cutAll()
    },
    mend() {
      isCut = false
    },
  }
}

/** A Redis server with such a proxy. */
export async function startCuttable() {
  const redis = await startRedis()
  return { redis, ...(await startLine(redis)) }
}

/** For `afterEach`. */
export async function stopCuttable(): Promise<void> {
  await stopHosts()
  for (const stop of stops.splice(0)) await stop()
  await stopRedis()
}
