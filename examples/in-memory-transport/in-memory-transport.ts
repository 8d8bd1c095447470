// A transport for clients in the same process, over pairs of connected ends.
import type { User } from 'mcp-host'
import { definePlugin } from 'mcp-host/plugin'
import { createPair, type End } from './pair.ts'

/** The caller at the other end. The connecting program states the user; nothing is authenticated here. */
export interface Who {
  readonly user?: User
  /** The values of the route's parameters. */
  readonly params?: Readonly<Record<string, string>>
}

/** Creates a plugin for one host, and `connect` for clients once the host has started. */
export function createInMemoryTransport() {
  const routes = new Map<string, (who: Who) => End>()
  const plugin = definePlugin({
    provides: ['transport'],
    setup(host) {
      for (const route of host.routes.filter(({ stateless }) => !stateless)) {
        routes.set(route.path, who => {
          const [end, own] = createPair()
          const client = host.connect({ route, ...who }, own)
          own.onmessage = message => void client.receive(message)
          own.onclose = () => void client.close()
          return end
        })
      }
    },
  })
  return {
    plugin,
    /** Returns the client's end. Throws a HostError, `unauthorized` or `forbidden`, if `authorize` refuses the user. */
    connect(path: string, who: Who = {}): End {
      const connectTo = routes.get(path)
      if (connectTo) return connectTo(who)
      throw new Error(`no sessions are served at ${path}; available: ${[...routes.keys()].join(', ')}`)
    },
  }
}
