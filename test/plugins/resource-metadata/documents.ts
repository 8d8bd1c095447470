// What the tests of resource metadata share: a config, documents as clients fetch them, and where challenges point.
import type { ProtectedResource } from '../../../core/auth.ts'
import type { Config } from '../../../core/index.ts'
import { definePlugin, type InternalHost, type Services } from '../../../core/internal.ts'
import { authorizeRoute, type Route } from '../../../core/plugin.ts'
import type { ResourceMetadataOptions } from '../../../plugins/resource-metadata/index.ts'
import { hello } from '../../fixtures/plugins.ts'

export const WELL_KNOWN = '/.well-known/oauth-protected-resource'
export const LOGIN = 'https://login.acme.example'

/** Lets nobody in: every request to a route that asks for a user gets its challenge. */
export const lock = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  provides: ['user', 'authorize'],
  setup: host => host.authorize(authorizeRoute(host)),
})

/** Hands out what fills the slot `protectedResource`, as an auth plugin sees it. */
export function readSlot() {
  let seen: { readonly host: InternalHost; readonly services: Services } | undefined
  const found = () => {
    if (!seen) throw new Error('the plugin is not set up')
    return seen
  }
  const plugin = definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup(host) {
      host.onReady(() => {
        const services = host.services
        seen = { host, services }
      })
    },
  })
  return {
    plugin: plugin(),
    resource(path = '/'): ProtectedResource {
      return found().services.slot('protectedResource', this.route(path))
    },
    route(path: string): Route {
      const route = found().host.routes.find(other => other.path === path)
      if (!route) throw new Error(`there is no route ${path}`)
      return route
    },
  }
}

export const protectedBy = (
  metadata: Partial<ResourceMetadataOptions>,
  { plugins, ...more }: Partial<Config> = {},
) => ({
  toolsets: { clock: [hello], calculator: [hello] },
  routes: {
    '/': { toolsets: 'clock', authorize: true as const },
    '/admin': { toolsets: 'clock', authorize: true as const },
    '/t/:category?': { toolsets: ':category', default: ['clock'], authorize: true as const },
  },
  ...more,
  plugins: {
    'transport-streamable': {},
    lock: lock(),
    'resource-metadata': { authorizationServers: [LOGIN], ...metadata },
    ...plugins,
  },
})

export async function fetchDocument(url: string): Promise<Record<string, unknown>> {
  const answer = await fetch(url)
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`)
  return (await answer.json()) as Record<string, unknown>
}

/** The URL that a refused request is told. */
export async function challengedUrl(url: string): Promise<string | undefined> {
  const answer = await fetch(url, { method: 'POST' })
  return /resource_metadata="([^"]*)"/.exec(answer.headers.get('www-authenticate') ?? '')?.[1]
}
