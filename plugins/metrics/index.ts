// The plugin `metrics`: Prometheus metrics on a separate port, or at a path with a token.
import type { IncomingMessage } from 'node:http'
import Negotiator from 'negotiator'
import { assertInstalled, isLoopback } from '../../core/auth.ts'
import { HostError } from '../../core/index.ts'
import { closed, count, definePlugin, flag, type InternalHost, words } from '../../core/internal.ts'
import { errorText, type HostContext, type OptionsOf, StartError } from '../../core/plugin.ts'
import { withTimeout } from '../../core/transport.ts'
import { checkPort, checkToken, createTokenCheck, LOOPBACK, portOptions } from '../families/separate-port/index.ts'
import { createRequestCounts } from './count-requests.ts'
import {
  collectProcessMetrics,
  type Exposition,
  expose,
  type Format,
  readProcessMetrics,
  shareResults,
  snapshotOf,
} from './exposition.ts'
import { startServer } from './metrics-server.ts'
import { createPluginMetrics } from './plugin-metrics.ts'
import type { Metric } from './series.ts'

/** Maximum time that a scrape waits for readiness conditions, milliseconds. Some conditions call other services. */
const READINESS_TIMEOUT = 1_000

const READY_METRIC = {
  name: 'mcp_host_ready',
  help: '1 if a readiness check succeeds, otherwise 0. accepting is 0 while the host drains.',
  type: 'gauge',
  aggregator: 'min',
} as const

/** A scrape returns the previous result if conditions hang. */
function createReadinessReader({ checkReadiness }: Pick<InternalHost, 'checkReadiness'>): () => Promise<Metric> {
  let last: Awaited<ReturnType<typeof checkReadiness>>['checks'] = {}
  const check = async () => {
    last = (await checkReadiness()).checks
  }
  return async () => {
    await withTimeout(check(), READINESS_TIMEOUT, () => undefined)
    const values = Object.entries(last).map(([name, holds]) => ({ labels: { check: name }, value: holds ? 1 : 0 }))
    return { ...READY_METRIC, values }
  }
}

const PORT = 9464

/** Reports settings that expose metrics to anyone. */
function checkExposure(host: InternalHost, { path, port, host: address, token }: FilledMetricsOptions) {
  const refuse = (key: string, text: string) =>
    host.report(new StartError('MH2601', text, { at: [...host.config.at, key] }))
  if (host.config.at[0] === 'routes') {
    const what = 'the metrics belong to the whole host: set options in `plugins`; a route can only set `metrics: false`'
    return host.report(new StartError('MH2601', what, { at: host.config.at }))
  }
  checkToken(host, 'MH2601', token)
  if (path === undefined && token === undefined && !isLoopback(address)) {
    const what = `anyone who can reach ${address} could read the metrics; set \`token\`, or \`host\` to 127.0.0.1`
    refuse('host', what)
  }
  if (path !== undefined && token === undefined) {
    refuse('path', 'anyone could read the metrics; set `token`, or omit `path` to use a separate port')
  }
  if (path !== undefined && (port !== PORT || address !== LOOPBACK)) {
    refuse('path', 'the metrics have either a path of the host or a separate port: set `path`, or `port` and `host`')
  }
}

/** Formats by media type; the first is the default. */
const FORMATS: Readonly<Record<string, Format>> = {
  'text/plain;version=0.0.4': 'text',
  'application/openmetrics-text;version=1.0.0': 'openmetrics',
}

function formatFor(req: IncomingMessage): Format {
  const [type = ''] = new Negotiator(req).mediaTypes(Object.keys(FORMATS))
  return FORMATS[type] ?? 'text'
}

async function setup(host: InternalHost, options: FilledMetricsOptions) {
  checkExposure(host, options)
  const { path, token } = options
  assertInstalled(['prom-client'], host.config)
  const { default: prometheus } = await import('prom-client')
  const counts = createRequestCounts(options.clients)
  host.onFinish(counts.observe)
  const reservedNames = new Set([...counts.read().map(({ name }) => name), READY_METRIC.name])
  const pluginMetrics = createPluginMetrics(host.log, reservedNames)
  host.metrics.readBy(pluginMetrics.registrar)

  const readReadiness = createReadinessReader(host)
  async function readAll(): Promise<Metric[]> {
    const own = [...counts.read(), ...pluginMetrics.read(), await readReadiness()]
    return options.process ? [...own, ...(await readProcessMetrics())] : own
  }
  const collect = host.inEveryProcess('metrics', async () => snapshotOf(await readAll()))
  const render = shareResults(async (format: Format) => expose(await collect(), format, prometheus.AggregatorRegistry))
  const scrape = (req: IncomingMessage): Promise<Exposition> => render(formatFor(req))

  if (options.process && host.config.purpose !== 'inspect') host.onStart(collectProcessMetrics)
  const mayRead = token === undefined ? undefined : createTokenCheck(token)
  if (path === undefined) return serveOnOwnPort(host, options, mayRead, scrape)
  const serveMetrics = async (ctx: HostContext) => {
    if (!mayRead?.(ctx.req.headers)) {
      const detail = 'the metrics need Authorization: Bearer <token>'
      throw new HostError('unauthorized', { detail, headers: { 'WWW-Authenticate': 'Bearer' } })
    }
    const { type, body } = await scrape(ctx.req)
    ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': type })
    ctx.body = body
  }
  host.endpoint(path, { methods: { GET: serveMetrics, HEAD: serveMetrics } })
}

/** `http.tls` protects the port of the host only. */
function warnOfPlainPort({ config: { at, http }, report }: InternalHost, address: string) {
  if (!http.tls || isLoopback(address)) return
  const what =
    `http.tls does not apply to this port: token and metrics cross the network unencrypted; ` +
    'set `host` to 127.0.0.1, or serve the metrics on the host itself with `path`'
  report(new StartError('MH2602', what, { at: [...at, 'host'] }), 'warning')
}

function serveOnOwnPort(
  host: InternalHost,
  { port, host: address }: FilledMetricsOptions,
  isAuthorized: ReturnType<typeof createTokenCheck> | undefined,
  scrape: (req: IncomingMessage) => Promise<Exposition>,
) {
  if (host.config.purpose === 'stdio') {
    const fix = 'metrics require a listening host: mcp-host start'
    return host.onStart(() =>
      host.log.info({ code: 'MH2603', fix }, 'Metrics are not served: each stdio client has its own process'),
    )
  }
  host.onReady(() => checkPort(host, { code: 'MH1301', port, host: address }))
  warnOfPlainPort(host, address)
  if (host.config.purpose !== 'serve') return
  let close: (() => void) | undefined
  host.onStart(async () => {
    const onError = (error: unknown) =>
      host.log.error({ code: 'MH2604', problem: errorText(error) }, 'the metrics could not be read')
    const events = {
      pipelined: (ip?: string) => host.log.debug({ ip }, 'closed a connection to the metrics that pipelined requests'),
      slowReaders: (readers: object) =>
        host.log.warn(
          { code: 'MH1309', ...readers },
          'closed connections to the metrics because their clients do not read',
        ),
    }
    const { server, url } = await startServer({
      at: host.config.at,
      port,
      host: address,
      isAuthorized,
      scrape,
      events,
      onError,
    })
    host.log.info({ code: 'MH2605', url }, 'serving metrics')
    close = () => {
      server.close()
      server.closeAllConnections()
    }
  })
  host.onClose(() => close?.())
}

const OPTIONS = closed(
  {
    ...portOptions(PORT, '`/metrics`', '`token`'),
    path: words('Path on the host, in place of a separate port. Requires `token`.', { pattern: '^/' }),
    token: words('Bearer token for access to the metrics: at least 16 characters.', { writeOnly: true }),
    clients: count('Maximum client names and versions with separate series. All others are `_OTHER`.', {
      minimum: 0,
      maximum: 10_000,
      default: 100,
    }),
    process: flag('Includes memory, CPU, event loop and garbage collection of the process.', { default: true }),
  },
  { description: 'Metrics for Prometheus, on a separate port or at a path of the host.' },
)

export interface MetricsOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledMetricsOptions extends OptionsOf<typeof OPTIONS, true> {}

export const metrics = definePlugin<MetricsOptions, FilledMetricsOptions>({
  options: OPTIONS,
  setup,
})
