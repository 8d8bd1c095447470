// Newline-delimited JSON over stdin and stdout, for `mcp-host stdio`. Other commands ignore this plugin.
import { definePlugin, type InternalHost } from '../../core/internal.ts'
import { REVISIONS, transportOf } from '../../core/transport.ts'
import { addListen } from '../families/per-request/index.ts'
import type { StdioEnds } from './lines.ts'
import { type FilledTransportStdio, OPTIONS, type TransportStdioOptions, userOf } from './options.ts'
import { type ServedLine, serveLine } from './serve-line.ts'

export type { StdioEnds } from './lines.ts'
export type { TransportStdioOptions } from './options.ts'
export type { ServedLine } from './serve-line.ts'

type Params = Readonly<Record<string, string>>

interface Served {
  authorize(params: Params): void
  serve(params: Params, ends: StdioEnds): ServedLine
}

const define = (setUp: (host: InternalHost, options: FilledTransportStdio) => void) =>
  definePlugin<TransportStdioOptions, FilledTransportStdio>({
    options: OPTIONS,
    provides: ['transport'],
    setup(host, options) {
      host.revisions(() => REVISIONS)
      setUp(host, options)
    },
  })

/** The plugin in a config, which reads and writes nothing. */
export const transportStdio = define(() => undefined)

/** Creates the plugin for one host, and functions to connect a client after startup. */
export function createStdioTransport() {
  const served = new Map<string, Served>()
  const plugin = define((host, options) => {
    const { maxConcurrent } = options
    const user = userOf(options)
    addListen(host)
    for (const route of host.routes) {
      served.set(route.path, {
        authorize: params => host.services.authorize({ route, params, user }),
        serve: (params, ends) => serveLine(transportOf(host), { route, params, user, maxConcurrent }, ends),
      })
    }
  })
  function on(path: string): Served {
    const found = served.get(path)
    if (found) return found
    throw new Error(`transport-stdio is off on ${path}; it serves: ${[...served.keys()].join(', ') || 'no route'}`)
  }
  return {
    plugin,
    routes: (): readonly string[] => [...served.keys()],
    /** Checks access. Throws like `connect`, but does not connect. */
    authorize: (path: string, params: Params): void => on(path).authorize(params),
    /** Connects a client. Throws a HostError `unauthorized` or `forbidden`, or an Error if the plugin is off there. */
    connect: (path: string, params: Params, ends: StdioEnds): ServedLine => on(path).serve(params, ends),
  }
}
