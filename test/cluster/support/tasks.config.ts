// The config of nodes that run tasks of each other, whose tools write down in the file JOURNAL that they began and ended: what a
// killed process did can be read there.
import { appendFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { defineConfig, defineTool } from 'mcp-host'

const note = (what: string, key: string) => appendFileSync(String(process.env['JOURNAL']), `${what} ${key}\n`)

const input = {
  type: 'object',
  properties: { key: { type: 'string' }, time: { type: 'number' } },
  required: ['key', 'time'],
} as const

async function work({ key, time }: { readonly key: string; readonly time: number }, signal: AbortSignal) {
  note('began', key)
  await pause(time, undefined, { signal })
  note('ended', key)
  return `done ${key}`
}

const redis = process.env['REDIS_URL']

export default defineConfig({
  server: { name: 'test-host', version: '1.2.3' },
  http: { port: Number(process.env['PORT'] ?? 0), keepAliveTimeout: '10s' },
  ...(redis !== undefined && { redis: { url: redis, commandTimeout: '1s' } }),
  toolsets: {
    work: [
      defineTool({ name: 'once', task: 'optional', input, handler: (given, { signal }) => work(given, signal) }),
      defineTool({
        name: 'again',
        task: { use: 'optional', retry: 'safe' },
        input,
        handler: (given, { signal }) => work(given, signal),
      }),
    ],
  },
  routes: { '/': { toolsets: 'work', stateless: true, listen: true } },
  plugins: {
    'transport-streamable': {},
    ...(redis === undefined
      ? { 'store-sqlite': { file: String(process.env['STORE_FILE']) } }
      : { 'cluster-redis': {} }),
    tasks: { lease: '3s', pollInterval: '100ms', perUser: 2_000, perTool: 2_000, openPerUser: 2_000, concurrent: 40 },
  },
})
