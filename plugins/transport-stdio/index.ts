// Newline-delimited JSON over stdin and stdout, for `mcp-host stdio`: one client per process. The config names the client's user,
// since no token can be requested; other commands ignore this plugin.
import { SCOPE } from '../../core/auth.ts'
import { type BuiltInOptions, definePlugin, type FilledOptions, type PluginHost, type User } from '../../core/index.ts'
import { MODERN_REVISION, REVISIONS, transportOf } from '../../core/transport.ts'
import { addListen } from '../families/per-request/index.ts'
import type { StdioEnds } from './lines.ts'
import { type ServedLine, serveLine } from './serve-line.ts'

export type { StdioEnds } from './lines.ts'
export type { ServedLine } from './serve-line.ts'

export type TransportStdioOptions = BuiltInOptions['transport-stdio']
type Filled = FilledOptions['transport-stdio']
type Params = Readonly<Record<string, string>>

/** A route for the user of the options. */
interface Served {
  admit(params: Params): void
  serve(params: Params, ends: StdioEnds): ServedLine
}

const texts = (description: string, items: object = {}) =>
  ({ type: 'array', items: { type: 'string', ...items }, default: [], description }) as const

const OPTIONS = {
  type: 'object',
  description: 'Newline-delimited JSON over stdin and stdout, for `mcp-host stdio`.',
  additionalProperties: false,
  properties: {
    user: {
      type: 'object',
      title: 'StdioUser',
      description: 'Who calls, as routes and tools see it. Default: nobody, as without a token.',
      additionalProperties: false,
      required: ['subject'],
      properties: {
        subject: { type: 'string', minLength: 1, description: 'The user, as `sub` of a token names it.' },
        issuer: { type: 'string', description: 'Who issued that name.' },
        clientId: { type: 'string', description: 'The program that acts for the user.' },
        scopes: texts('What it may do.', SCOPE),
        roles: texts('What it is.'),
        claims: { type: 'object', default: {}, description: 'What else a token would say.' },
      },
    },
    maxConcurrent: {
      type: 'integer',
      minimum: 1,
      default: 100,
      description: `Requests of ${MODERN_REVISION} that may run at once, open subscriptions counted. Those of a session: sessions.maxCallsPerSession.`,
    },
  },
} as const

function userOf({ user }: TransportStdioOptions): User | undefined {
  if (!user) return undefined
  const { subject, issuer, clientId, scopes = [], roles = [], claims = {} } = user
  return {
    subject,
    ...(issuer !== undefined && { issuer }),
    ...(clientId !== undefined && { clientId }),
    scopes: [...scopes],
    roles: [...roles],
    claims: { ...claims },
  }
}

const define = (setUp: (host: PluginHost, options: Filled) => void) =>
  definePlugin<TransportStdioOptions, Filled>({
    options: OPTIONS,
    provides: ['transport'],
    setup(host, options) {
      host.revisions(() => REVISIONS)
      setUp(host, options)
    },
  })

/** The plugin of a config: it reads and writes nothing. */
export const transportStdio = define(() => undefined)

/** Creates the plugin for one host, and functions to connect a client after startup. */
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
    /** The paths of its routes. */
    routes: (): readonly string[] => [...served.keys()],
    /** Throws like `connect`, without a connection. */
    admit: (path: string, params: Params): void => on(path).admit(params),
    /** Throws a HostError, `unauthorized` or `forbidden`, if the route refuses the user; an Error if the plugin is off there. */
    connect: (path: string, params: Params, ends: StdioEnds): ServedLine => on(path).serve(params, ends),
  }
}
