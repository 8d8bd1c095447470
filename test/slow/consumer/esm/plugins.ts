// Plugins as other packages write them, from every entry that is for authors.
import {
  authenticateBearer,
  authorizeRoute,
  type Call,
  definePlugin,
  type EventStore,
  readUser,
  type StoredEvent,
  type TokenPlace,
  type TokenVerdict,
} from 'mcp-host/plugin'
import { REDIS_SECTIONS, type RedisSections } from 'mcp-host/redis'
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

function createEvents(): EventStore {
  const streams = new Map<string, StoredEvent[]>()
  return {
    append(session, name, message, known) {
      const events = streams.get(session + name) ?? []
      streams.set(session + name, events)
      return events.push({ seq: known + 1, message })
    },
    after: (session, name, seq) => streams.get(session + name)?.filter(event => event.seq > seq),
    drop: (session, name = '') => void streams.delete(session + name),
  }
}

export const events = definePlugin<Record<never, never>, Record<never, never>, RedisSections>({
  options: NO_OPTIONS,
  sections: REDIS_SECTIONS,
  setup(host) {
    if (host.config.section('redis')?.url === undefined) host.provide('eventStore', createEvents())
  },
})

export const routeOf = (call: Call): string => call.offer.route.path

console.log(storeContract('eventStore', { shared: false, open: () => ({ nodes: [createEvents()] }) }).length > 0)
