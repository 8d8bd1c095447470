// Streamable HTTP: the endpoint of every route. Requests of 2026-07-28 are served one by one everywhere; older
// revisions on routes with `stateless: true`.
import { definePlugin, HANDSHAKE_REVISIONS, MODERN_REVISION } from '../../core/index.ts'
import { createPostHandler } from './serve.ts'

export type TransportStreamableOptions = Record<never, never>

export const transportStreamable = definePlugin<TransportStreamableOptions>({
  options: {
    type: 'object',
    description: 'Streamable HTTP: POST on each route.',
    additionalProperties: false,
    properties: {},
  },
  setup(host) {
    host.revisions(({ stateless }) => (stateless ? [MODERN_REVISION, ...HANDSHAKE_REVISIONS] : [MODERN_REVISION]))
    host.routeEndpoint('', route => ({ methods: { POST: createPostHandler(host, route) } }))
  },
})
