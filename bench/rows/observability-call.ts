// Measures the cost of each observability plugin and the rate limit, and of all together on a protected host.
import { mcpHost, serverScript } from '../contestants.ts'
import { BEARER, POLICY, protectedHost } from '../protected-host.ts'
import { callEcho } from '../requests.ts'
import { type Contestant, type Row, ratio } from '../row.ts'

const ACCESS_LOG = { 'access-log': { file: '/dev/null' } }
const METRICS = { metrics: { port: 0 } }
/** Without an OpenTelemetry SDK, so spans are not exported. */
const TRACING = { tracing: {} }
const RATE_LIMIT = { 'rate-limit': { address: '1000000000/1h', user: '1000000000/1h' } }

const withPlugin = (name: string, plugins: object): Contestant => ({
  ...mcpHost(1, callEcho, { plugins: { 'transport-streamable': {}, ...plugins } }, name.replaceAll(' ', '-')),
  name: `ours, ${name}`,
})

export const row: Row = {
  name: 'tools/call, observability',
  contestants: [
    serverScript('Koa', 'koa.mjs', [], callEcho),
    mcpHost(1, callEcho),
    withPlugin('access log', ACCESS_LOG),
    withPlugin('metrics', METRICS),
    withPlugin('tracing without exporter', TRACING),
    withPlugin('rate limit', RATE_LIMIT),
    protectedHost('ours, bearer token and 50 rules', { ...BEARER, ...POLICY }),
    protectedHost('ours, everything on', {
      ...BEARER,
      ...POLICY,
      ...ACCESS_LOG,
      ...METRICS,
      ...TRACING,
      ...RATE_LIMIT,
    }),
  ],
  targets: [ratio('ours, everything on', 'Koa', '<=', 2)],
  quick: ['Koa', 'ours, everything on'],
}
