// Tests that routes that share config objects keep separate settings.
import { expect } from 'chai'
import { defineTool, type RouteSettings } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import { authorizeRoute } from '../../core/plugin.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const secret = defineTool({ name: 'secret', handler: () => 'secret' })
const clock = defineTool({ name: 'clock', handler: () => 'now' })

/** Takes a request's word for who sends it, and keeps `authorize`. */
const sign = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  provides: ['user', 'authorize'],
  setup(host) {
    host.authenticate((ctx, next) => {
      const subject = ctx.get('X-User')
      if (subject !== '') ctx.state.user = { subject, scopes: [], roles: [], claims: {} }
      return next()
    })
    host.authorize(authorizeRoute(host))
  },
})

/** Contributes a tool to the routes it acts on. */
const keeper = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup: host => host.toolset([secret]),
})

const list = ['clock']
const shared = { toolsets: ':set', default: list } as const
const alike: RouteSettings = { toolsets: list }

afterEach(stopHosts)

/** Each route's path, and whether what it serves is kept. */
const PAIRS: ReadonlyArray<readonly [string, Record<string, RouteSettings>, string, string]> = [
  [
    'one default array',
    {
      '/open/:set?': { ...shared, plugins: { keeper: false } },
      '/kept/:set?': { ...shared, authorize: true },
    },
    '/open',
    '/kept',
  ],
  [
    'one toolsets array',
    { '/open': { ...alike, plugins: { keeper: false } }, '/kept': { ...alike, authorize: true } },
    '/open',
    '/kept',
  ],
]

describe('open and guarded routes that share', () => {
  for (const [what, routes, open, kept] of PAIRS) {
    for (const first of [open, kept]) {
      it(`${what} stay separate, first request to ${first}`, async () => {
        const { url } = await startHost({
          toolsets: { clock: [clock] },
          routes,
          plugins: { 'transport-streamable': {}, keeper: keeper(), sign: sign() },
        })
        const signed = { headers: { 'X-User': 'ada' } }
        await modern(url + first, 'tools/list', {}, signed)
        const listed = async (path: string) => {
          const { result } = (await modern(url + path, 'tools/list', {}, path === kept ? signed : {})).message
          return { names: result.tools.map(({ name }: { name: string }) => name), scope: result.cacheScope }
        }
        expect(await listed(open)).to.deep.equal({ names: ['clock'], scope: 'public' })
        expect(await listed(kept)).to.deep.equal({ names: ['clock', 'secret'], scope: 'private' })
        const called = await modern(url + open, 'tools/call', { name: 'secret' })
        expect(called.message.error?.code).to.equal(-32602)
      })
    }
  }
})
