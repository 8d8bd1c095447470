// The config of the attacked host, which `mcp-host start` runs in a separate process. It serves an example of
// everything, and a plugin reports held objects and blocked event loop turns over IPC.
import { channel } from 'node:diagnostics_channel'
import { readdirSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { type Config, defineConfig, defineTool } from '../../core/index.ts'
import { definePlugin, type InternalHost, type Services } from '../../core/internal.ts'
import type { AttackedSettings, Holding, Question, Report } from './attacked-settings.ts'
import { SETTINGS } from './attacked-settings.ts'
import { guardedFor, policedFor, toolsFor } from './attacked-tools.ts'
import { plant } from './injected-faults.ts'
import { probeLoop } from './loop-probe.ts'

const settings = JSON.parse(process.env[SETTINGS] ?? '{}') as AttackedSettings
const { issuer, audience, markers, plants, plain } = settings
const tell = (report: Report) => void process.send?.(report)

const counts = { runs: 0, calls: 0 }
const servers = new Set<Server>()

interface Exchange {
  readonly server: Server
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

const SMALL = 'less than 10 kB'
const large = new Map<ServerResponse, string>()

const sizeOf = ({ headers }: IncomingMessage) => {
  const length = Number(headers['content-length'] ?? 0)
  return length < 10_000 ? SMALL : `${Math.round(length / 1_000)} kB`
}

async function countSockets(): Promise<number> {
  const counted = [...servers].map(
    server => new Promise<number>(resolve => server.getConnections((_error, count) => resolve(count ?? 0))),
  )
  return (await Promise.all(counted)).reduce((sum, count) => sum + count, 0)
}

/** Open files and sockets; -1 where the system does not say. */
function countDescriptors(): number {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return -1
  }
}

let peakRss = 0
const notePeak = () => {
  peakRss = Math.max(peakRss, process.memoryUsage.rss())
}
setInterval(notePeak, 100).unref()

async function measure({ sessions, changesOn }: Services, routes: InternalHost['routes']): Promise<Holding> {
  const { heapUsed, external, rss } = process.memoryUsage()
  notePeak()
  return {
    sessions: sessions.count,
    subscribers: [...new Set(routes.map(changesOn))].reduce((sum, { size }) => sum + size, 0),
    ...counts,
    sockets: await countSockets(),
    descriptors: countDescriptors(),
    timers: process.getActiveResourcesInfo().filter(kind => kind === 'Timeout').length,
    heap: heapUsed + external,
    rss,
    peakRss,
  }
}

const report = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(host) {
    const probe = probeLoop(
      stall => tell({ kind: 'stall', stall }),
      () => [...large.values()],
    )
    channel('http.server.request.start').subscribe(message => {
      const { server, request, response } = message as Exchange
      servers.add(server)
      const size = sizeOf(request)
      probe.note(`${request.method} of ${size}`)
      if (size === SMALL) return
      // A large body is parsed in a later turn than the one that it begins in.
      large.set(response, `${size} under way`)
      response.once('close', () => setTimeout(() => large.delete(response), 100))
    })
    host.onCall(async (call, next) => {
      counts.calls++
      const { name } = call.params
      probe.note(typeof name === 'string' ? name.slice(0, 30) : call.method)
      try {
        return await next()
      } finally {
        counts.calls--
      }
    })
    host.onReady(() => {
      const services = host.services
      process.on('message', async (question: Question) => {
        if (question.ask === 'longest') return tell({ kind: 'longest', ran: probe.longest() })
        if (question.collect) for (let round = 0; round < 3; round++) probe.without(() => globalThis.gc?.())
        tell({ kind: 'holding', holding: await measure(services, host.routes) })
      })
    })
    // Told to stop, it is to end by itself.
    process.channel?.unref()
    // Whoever attacks is gone.
    process.once('disconnect', () => process.exit(1))
  },
})

// Two routes of one list, of which one serves more than the other: what is built for the one must not be the other's.
const shared = ['open']
const contributed = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(host) {
    const { guarded } = markers
    host.toolset([defineTool({ name: 'contributed', description: guarded, handler: () => guarded })])
  },
})

const hooks: Pick<Config, 'configureSession' | 'runSession'> = {
  async configureSession(_request, session) {
    await Promise.resolve()
    session.server = { ...session.server, title: 'attacked' }
  },
  async runSession(_request, _session, run) {
    counts.runs++
    try {
      await run()
    } finally {
      counts.runs--
    }
  },
}

export default defineConfig({
  server: { name: 'attacked', version: '1.0.0', instructions: 'Attack me.' },
  http: { port: 0, requestTimeout: '4s', keepAliveTimeout: '10s', allowedOrigins: ['https://app.example'] },
  secrets: ['a secret for tests, long enough to be one'],
  sessions: { idleTimeout: '5s', maxIdle: 1_000 },
  tools: { callTimeout: '5s' },
  toolsets: { ...toolsFor(markers), vault: guardedFor(markers), policed: policedFor(markers) },
  routes: {
    '/': { toolsets: ['open', 'changing'] },
    '/policed': { toolsets: ['open', 'policed'], cors: 'browser' },
    '/guarded': { toolsets: ['open', 'vault'], authorize: { scope: 'mcp.admin' } },
    '/guarded/stateless': {
      toolsets: ['vault'],
      authorize: { scope: 'mcp.admin' },
      stateless: true,
      plugins: { 'transport-sse': false },
    },
    '/stateless': {
      toolsets: ['open', 'policed'],
      stateless: true,
      listen: true,
      plugins: { 'transport-sse': false },
    },
    '/t/:category?': { toolsets: ':category', default: shared },
    '/t/vault': { toolsets: ['vault'], authorize: { scope: 'mcp.admin' } },
    '/u/:category?': {
      toolsets: ':category',
      default: shared,
      authorize: { scope: 'mcp.admin' },
      plugins: { contributed: contributed() },
    },
  },
  plugins: {
    'transport-streamable': {},
    'transport-sse': {},
    'auth-jwt': { authority: issuer, audience },
    'resource-metadata': { authorizationServers: [issuer], scopesSupported: ['mcp.basic', 'mcp.admin'] },
    'tool-policy': {
      policies: { admin: { scope: 'mcp.admin' } },
      rules: { 'purge*': 'admin', 'prompt:secret*': 'admin', 'resource:secret://*': 'admin' },
    },
    cors: { policies: { browser: { origins: ['https://page.example'] } } },
    health: {},
    report: report(),
    planted: plant(settings, plants),
  },
  ...(plain ? {} : hooks),
})
