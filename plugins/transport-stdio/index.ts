// Newline-delimited JSON over stdin and stdout: one client a process, which `mcp-host stdio` hands over once its host has
// started. Named in a config it says who that client is; with any other verb it does nothing.
import { definePlugin, type PluginHost } from '../../core/index.ts'
import { REVISIONS, transportOf } from '../../core/transport.ts'
import { addListen } from '../families/per-request/index.ts'
import { type ServedLine, serveLine } from './line.ts'
import { type FilledTransportStdio, OPTIONS, type TransportStdioOptions, userOf } from './options.ts'
import type { StdioEnds } from './streams.ts'

export type { ServedLine } from './line.ts'
export type { TransportStdioOptions } from './options.ts'
export type { StdioEnds } from './streams.ts'

type Params = Readonly<Record<string, string>>

/** A route, to whoever the options say is at the other end. */
interface Served {
  admit(params: Params): void
  serve(params: Params, ends: StdioEnds): ServedLine
}

const define = (setUp: (host: PluginHost, options: FilledTransportStdio) => void) =>
  definePlugin<TransportStdioOptions, FilledTransportStdio>({
    options: OPTIONS,
    provides: ['transport'],
    setup(host, options) {
      host.revisions(() => REVISIONS)
      setUp(host, options)
    },
  })

/** What a config names: nothing is read or written before somebody hands a line over. */
export const transportStdio = define(() => undefined)

/** The plugin for one host, and the way to hand it a line once that host has started. */
export function createStdioTransport() {
  const served = new Map<string, Served>()
  const plugin = define((host, options) => {
    host.serving(services => {
      const transport = transportOf(host, services)
      const { maxConcurrent } = options
      const user = userOf(options)
      addListen(host, services)
      for (const route of host.routes) {
        served.set(route.path, {
          admit: params => transport.admit({ route, params, user }),
          serve: (params, ends) => serveLine(transport, { route, params, user, maxConcurrent }, ends),
        })
      }
    })
  })
  function on(path: string): Served {
    const found = served.get(path)
    if (found) return found
    throw new Error(`transport-stdio is off on ${path}; it serves: ${[...served.keys()].join(', ') || 'no route'}`)
  }
  return {
    plugin,
    /** The paths of the routes that it serves. */
    routes: (): readonly string[] => [...served.keys()],
    /** Throws what `connect` would; nobody is served. */
    admit: (path: string, params: Params): void => on(path).admit(params),
    /** Throws a HostError, `unauthorized` or `forbidden`, as the route's `authorize` does; an Error where it is not on. */
    connect: (path: string, params: Params, ends: StdioEnds): ServedLine => on(path).serve(params, ends),
  }
}
