// What the tests of CORS share: an origin, requests as its pages send them, and a plugin that believes bearer tokens.
import { definePlugin } from '../../../core/internal.ts'
import { authorizeRoute } from '../../../core/plugin.ts'

export const APP = 'https://app.acme.example'

/** What a browser asks before a request that is not simple. */
export function preflight(url: string, headers: Record<string, string> = {}): Promise<Response> {
  const asked = { Origin: APP, 'Access-Control-Request-Method': 'POST', ...headers }
  return fetch(url, { method: 'OPTIONS', headers: asked })
}

/** The CORS headers of an answer, by lower-case name. */
export const corsHeaders = (headers: Headers): Record<string, string> =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')))

/** The names in a header that lists names. */
export const names = (value: string | null): string[] => (value ?? '').split(',').map(name => name.trim().toLowerCase())

/** `Authorization: Bearer ann` is the user ann, without any scope. */
export const believeBearer = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  provides: ['user', 'authorize'],
  setup(host) {
    host.authenticate((ctx, next) => {
      const [, subject] = /^Bearer (\w+)$/.exec(ctx.get('Authorization')) ?? []
      if (subject !== undefined) ctx.state.user = { subject, scopes: [], roles: [], claims: {} }
      return next()
    })
    host.authorize(authorizeRoute(host))
  },
})
