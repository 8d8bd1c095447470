// The kinds of failures under load. Each is repeated and repaired at its end.
import { setTimeout as wait } from 'node:timers/promises'
import { type CuttingProxy, startCuttingProxy } from '../../support/cutting-proxy.ts'
import type { RedisServer } from '../../support/redis-server.ts'
import type { SeededRandom } from '../../support/seeded-random.ts'
import type { Balanced } from '../support/balanced-deployment.ts'

export const KINDS = ['forget', 'kill', 'pause', 'roll', 'restart', 'cut'] as const
export type Kind = (typeof KINDS)[number]

export const DESCRIPTIONS: Readonly<Record<Kind, string>> = {
  kill: 'a random node is killed with SIGKILL, and replaced',
  roll: 'a random node is told to end (SIGTERM), drains, and is replaced',
  pause: 'Redis hangs for 1 to 4 seconds (SIGSTOP)',
  restart: 'Redis is killed and started again, with what it kept on disk',
  forget: 'Redis is killed and started again, with nothing',
  cut: 'the connection between one node and Redis is cut for up to 4 seconds',
}

/** Nodes behind nginx. */
export const BALANCED = 3

/** Stands between nodes and Redis. */
export interface Lines {
  urlFor(redis: RedisServer, place: number): Promise<string>
  /** Cuts the connection of a node, and each that it makes, for so many milliseconds. */
  cut(place: number, milliseconds: number): Promise<void>
  stop(): Promise<void>
}

export function createLines(): Lines {
  const proxies = new Map<number, CuttingProxy>()
  const down = new Set<number>()
  return {
    async urlFor({ url }, place) {
      const passing = () => () => (down.has(place) ? 0 : undefined)
      const proxy = proxies.get(place) ?? (await startCuttingProxy(url, { cutter: passing }))
      proxies.set(place, proxy)
      return proxy.url.replace('http:', 'redis:')
    },
    async cut(place, milliseconds) {
      // What was asked on a cut line may have been done: only its answer is lost.
      down.add(place)
      if (milliseconds % 2 === 0) proxies.get(place)?.cutAll()
      await wait(milliseconds)
      down.delete(place)
      proxies.get(place)?.cutAll()
    },
    async stop() {
      await Promise.all([...proxies.values()].map(proxy => proxy.stop()))
    },
  }
}

/** One fault, from its beginning to its repair. */
async function failOnce(kind: Kind, { redis, nodes, restart }: Balanced, lines: Lines, random: SeededRandom) {
  const place = random.below(BALANCED)
  if (kind === 'kill' || kind === 'roll') {
    if (kind === 'kill') await nodes[place]?.kill()
    else await nodes[place]?.stop()
    await restart(place)
  } else if (kind === 'pause') {
    redis.pause()
    await wait(1_000 + random.below(3_000))
    redis.resume()
  } else if (kind === 'cut') await lines.cut(place, random.below(4_000))
  else {
    await redis.kill()
    await wait(random.below(2_000))
    await redis.start()
  }
}

/** Counts in `done`, and resolves with how many faults there were. */
export async function failUntil(
  enough: () => boolean,
  kinds: readonly Kind[],
  balanced: Balanced,
  lines: Lines,
  random: SeededRandom,
  done: { faults: number },
) {
  while (!enough()) {
    await wait(1_000 + random.below(2_000))
    await failOnce(kinds[done.faults % kinds.length] as Kind, balanced, lines, random)
    done.faults++
  }
  return done.faults
}
