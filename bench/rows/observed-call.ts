// What it costs to see every tools/call, one way to see after the other and all of them on a host that is protected too.
import { ours, peer } from '../contestants.ts'
import { BEARER, POLICY, protectedBy } from '../protection.ts'
import { callEcho } from '../requests.ts'
import { type Contestant, type Row, ratio } from '../row.ts'

const ACCESS_LOG = { 'access-log': { file: '/dev/null' } }
const METRICS = { metrics: { port: 0 } }
/** No SDK is started: nobody takes the spans. */
const TRACING = { tracing: {} }
const RATE_LIMIT = { 'rate-limit': { address: '1000000000/1h', user: '1000000000/1h' } }

const seenBy = (name: string, plugins: object): Contestant => ({
  ...ours(1, callEcho, { plugins: { 'transport-streamable': {}, ...plugins } }, name.replaceAll(' ', '-')),
  name: `ours, ${name}`,
})

export const row: Row = {
  name: 'tools/call, seen',
  contestants: [
    peer('Koa', 'koa.mjs', [], callEcho),
    ours(1, callEcho),
    seenBy('access log', ACCESS_LOG),
    seenBy('metrics', METRICS),
    seenBy('tracing without exporter', TRACING),
    seenBy('rate limit', RATE_LIMIT),
    protectedBy('ours, bearer token and 50 rules', { ...BEARER, ...POLICY }),
    protectedBy('ours, everything on', {
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
