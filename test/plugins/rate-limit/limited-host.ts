// A host with rate limits, whose callers say in headers who they are, and requests to it.
import { defineTool } from '../../../core/index.ts'
import { definePlugin } from '../../../core/internal.ts'
import type { RateLimitOptions } from '../../../plugins/rate-limit/index.ts'
import { legacy, modern, type RpcAnswer } from '../../support/rpc.ts'
import { type StartOptions, startHost, type TestConfig } from '../../support/start-host.ts'

const first = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value)

/** `X-User`, `X-Issuer` and `X-Client` are believed; a token of the user is another with each request. */
const who = definePlugin({
  provides: ['user'],
  setup(host) {
    host.authenticate((ctx, next) => {
      const [subject, issuer, clientId] = ['x-user', 'x-issuer', 'x-client'].map(name => first(ctx.req.headers[name]))
      if (subject !== undefined) {
        const named = { ...(issuer !== undefined && { issuer }), ...(clientId !== undefined && { clientId }) }
        ctx.state.user = { subject, ...named, scopes: [], roles: [], claims: { jti: Math.random() } }
      }
      return next()
    })
  },
})

const say = (name: string) => defineTool({ name, handler: () => 'said' })

export const TOOLS = [say('say'), say('search_web'), say('search_mail')]

export async function startLimited(
  options: RateLimitOptions,
  more: Partial<TestConfig> = {},
  settings: StartOptions = {},
) {
  const { toolsets = { all: TOOLS }, routes = { '/': { toolsets: 'all', stateless: true } }, plugins, ...rest } = more
  const all = { 'transport-streamable': {}, who: who(), 'rate-limit': options, ...plugins }
  const started = await startHost({ toolsets, routes, plugins: all, ...rest }, undefined, {
    ...settings,
    ...(settings.neighbours && { processes: 2 }),
  })
  const call = (headers: Readonly<Record<string, string>> = {}, name = 'say', path = '/'): Promise<RpcAnswer> =>
    modern(`${started.url}${path}`, 'tools/call', { name, arguments: {} }, { headers })
  const older = (headers: Readonly<Record<string, string>> = {}, name = 'say'): Promise<RpcAnswer> =>
    legacy(`${started.url}/`, 'tools/call', { name, arguments: {} }, { headers })
  return { ...started, call, older }
}

/** How many were answered with each status. */
export function statuses(answers: ReadonlyArray<{ readonly status: number }>): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** So many at once, each with its number. */
export const atOnce = <Answer>(count: number, send: (index: number) => Promise<Answer>): Promise<Answer[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => send(index)))
