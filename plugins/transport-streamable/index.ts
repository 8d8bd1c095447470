// The Streamable HTTP transport, with sessions for older protocol versions unless the route is `stateless`.
import { closed, definePlugin } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { REVISIONS, transportOf } from '../../core/transport.ts'
import { addListen } from '../families/per-request/index.ts'
import { createEndpointPage } from './endpoint-page.ts'
import { createPostHandler } from './post-handler.ts'
import { createSessionGetHandlers } from './session-get.ts'

const OPTIONS = closed({}, { description: 'Streamable HTTP: POST on each route.' })

export interface TransportStreamableOptions extends OptionsOf<typeof OPTIONS> {}

export const transportStreamable = definePlugin<TransportStreamableOptions>({
  options: OPTIONS,
  provides: ['transport'],
  setup(host) {
    host.revisions(() => REVISIONS)
    addListen(host)
    host.endpoint('', route => {
      const transport = transportOf(host)
      const post = createPostHandler(transport, route)
      const page = createEndpointPage(transport, route)
      if (route.stateless) return { methods: { POST: post }, page }
      const { get, end } = createSessionGetHandlers(transport, route)
      return { methods: { GET: get, POST: post, DELETE: end }, page }
    })
  },
})
