// Plugins as other packages write them, from every entry that is for authors.
import {
  authenticateBearer,
  authorizeRoute,
  type Call,
  definePlugin,
  readUser,
  type TokenPlace,
  type TokenVerdict,
} from 'mcp-host/plugin'
import { REDIS_SECTIONS, type RedisSections } from 'mcp-host/redis'
import { createMemoryStore, type Store } from 'mcp-host/store'
import { storeContract } from 'mcp-host/testing'

const NO_OPTIONS = { type: 'object', additionalProperties: false, properties: {} } as const

const verify = (token: string, { route }: TokenPlace): TokenVerdict => {
  const user = readUser({ sub: token, scope: route.path }, 'https://login.example')
  return user ? { user } : { refused: 'nobody' }
}

export const login = definePlugin<Record<never, never>>({
  options: NO_OPTIONS,
  provides: ['user', 'authorize'],
  setup(host) {
    host.authenticate(authenticateBearer(host, verify))
    host.authorize(authorizeRoute(host))
  },
})

const createStore = (): Store => createMemoryStore()

export const memory = definePlugin<Record<never, never>, Record<never, never>, RedisSections>({
  options: NO_OPTIONS,
  sections: REDIS_SECTIONS,
  setup(host) {
    if (host.config.section('redis')?.url === undefined) host.provide('store', createStore())
  },
})

export const routeOf = (call: Call): string => call.offer.route.path

console.log(storeContract('store', { shared: false, open: () => ({ nodes: [createStore()] }) }).length > 0)
