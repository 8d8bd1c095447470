// Records the messages between the nodes of a test, for Redis or for the hub of the host.
import { definePlugin } from '../../../core/internal.ts'
import { REDIS_SECTIONS, type RedisSections, redisConnection } from '../../../plugins/families/redis/index.ts'
import type { TestNeighbour } from '../../support/worker-processes.ts'

export class SentMessages {
  readonly #texts: string[] = []

  add(text: string): void {
    this.#texts.push(text)
  }

  /** Those of a type, as they were sent. */
  of(type: string): readonly string[] {
    return this.#texts.filter(text => JSON.parse(text).type === type)
  }
}

export function recordNeighbour(neighbour: TestNeighbour, sent: SentMessages): void {
  const open = neighbour.bus.bind(neighbour)
  neighbour.bus = node => {
    const bus = open(node)
    const { send } = bus
    return Object.assign(bus, {
      send(to: string, text: string, share: string) {
        sent.add(text)
        return send(to, text, share)
      },
    })
  }
}

/** A plugin that records what its host's connection brings to the inboxes of others. */
export const recordRedis = (sent: SentMessages) =>
  definePlugin<Record<never, never>, RedisSections>({
    sections: REDIS_SECTIONS,
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup(host) {
      const connection = redisConnection(host)
      const evaluate = connection.evaluate.bind(connection)
      connection.evaluate = (script, keys, args, timeout) => {
        if (keys.some(key => key.includes(':inbox:'))) sent.add(args[0] ?? '')
        return evaluate(script, keys, args, timeout)
      }
    },
  })()
