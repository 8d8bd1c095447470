// The config of the nodes under chaos: a tool that streams, and resources whose changes the test announces.
import { setTimeout as wait } from 'node:timers/promises'
import { defineConfig, definePlugin, defineResource, defineTool } from 'mcp-host'
import { addressOf } from './load.ts'

const stream = defineTool({
  name: 'stream',
  input: {
    type: 'object',
    properties: { events: { type: 'integer' }, pace: { type: 'integer', description: 'Milliseconds' } },
    required: ['events', 'pace'],
  },
  async handler({ events, pace }, { progress, signal }) {
    for (let event = 1; event <= events; event++) {
      progress(event, events)
      await wait(pace, undefined, { signal })
    }
    return `done ${events}`
  },
})

const changes = defineResource({ name: 'changes', uriTemplate: 'load://changes/{number}', handler: () => 'text' })

const announcer = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(host) {
    host.serving(({ runtime }) => {
      process.on('message', ({ announce }: { announce: number }) => runtime.resourceUpdated(addressOf(announce)))
      process.channel?.unref()
    })
  },
})

export default defineConfig({
  server: { name: 'chaos', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 0), keepAliveTimeout: '10s' },
  redis: { url: String(process.env['REDIS_URL']) },
  sessions: { maxPerOwner: 1_000 },
  toolsets: { load: [stream, changes] },
  routes: { '/mcp': { toolsets: 'load' } },
  plugins: { 'transport-streamable': {}, 'cluster-redis': {}, announcer: announcer() },
})
