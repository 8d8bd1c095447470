// A host process that kills itself (SIGKILL) before or after its store appends a given event.
// Argument: JSON of `CrashSettings`. It sends `{ url }` when it listens. Redis stores the streams of its tool `talk`.
import { createHost } from '../../core/create-host.ts'
import { defineTool } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import type { ConfiguredPlugin, Logger } from '../../core/plugin.ts'
import type { EventStore } from '../../core/sessions/event-store.ts'
import { EVENT_STORE_OPTIONS, eventStoreRedis } from '../../plugins/cluster-redis/index.ts'
import { REDIS_SECTIONS } from '../../plugins/families/redis/index.ts'

export interface CrashSettings {
  readonly redis: string
  /** The event of each stream at which the host dies, counted from 1; 0: it does not die. */
  readonly event: number
  readonly when: 'before it is stored' | 'before it is sent'
}

const { redis, event, when } = JSON.parse(process.argv[2] ?? '{}') as CrashSettings

/** No code runs after this call. */
const die = () => process.kill(process.pid, 'SIGKILL')

function dying(store: EventStore): EventStore {
  return {
    ...store,
    async append(...given) {
      const next = given[3] + 1
      if (next === event && when === 'before it is stored') die()
      const seq = await store.append(...given)
      if (next === event && when === 'before it is sent') die()
      return seq
    },
  }
}

/** The real plugin, with a store that kills the process. */
const crashing: ConfiguredPlugin = definePlugin({
  sections: REDIS_SECTIONS,
  options: EVENT_STORE_OPTIONS,
  setup(host, options) {
    const provide = (slot: 'eventStore', store: EventStore) => host.provide(slot, dying(store))
    const filling = Object.create(host, { provide: { value: provide } })
    return eventStoreRedis.plugin.setup(filling as typeof host, options)
  },
})()

const talk = defineTool({
  name: 'talk',
  input: { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] },
  async handler({ count }, { progress }) {
    for (let number = 1; number <= count; number++) await progress(number, count)
    return 'done'
  },
})

const ignore = () => undefined
const log: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => log }

const host = await createHost(
  {
    server: { name: 'crash', version: '1.0.0' },
    http: { port: 0 },
    secrets: ['a secret for tests, long enough to be one'],
    redis: { url: redis },
    toolsets: { talk: [talk] },
    routes: { '/': { toolsets: 'talk' } },
    plugins: { 'transport-streamable': {}, crashing },
  },
  { log },
)
// The parent process has ended.
process.once('disconnect', () => process.exit(1))
await host.listen()
process.send?.({ url: host.url })
