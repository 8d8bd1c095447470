// The config's type: what an operator writes. config/host-schema.ts holds the same shape as JSON Schema.
// This is the one file of the kernel that knows the built-in plugins' options, and only their types.
import type { BuiltInOptions, BuiltInSections } from '../../plugins/index.ts'
import type { ConfiguredPlugin } from '../kernel/define-plugin.ts'
import type { AuthorizeRule } from '../kernel/route.ts'
import type { ConfigureSession, RunSession, ServerSettings } from '../mcp/configure-session.ts'
import type { Definition } from '../mcp/define.ts'

/** Milliseconds, or a number with its unit: `'250ms'`, `'30s'`, `'5m'`, `'2h'`, `'1d'`. */
export type Duration = string | number
/** Bytes, or a number with its unit: `'64kb'`, `'4mb'`, `'1gb'` (1 kb = 1,024 bytes). */
export type Size = string | number

export interface HttpSettings {
  /** Default `127.0.0.1`. */
  host?: string
  /** Default 3000; 0 takes a free one. */
  port?: number
  /** How clients reach this host; metadata, challenges and the guard use it. */
  publicUrl?: string
  /** Largest request body. Default `4mb`; more answers 413. */
  maxBodySize?: Size
  /** How long an idle connection is kept. Default `5s`. */
  keepAliveTimeout?: Duration
  /** How long receiving one request may take. Default `60s`; it never ends a call or a stream. */
  requestTimeout?: Duration
  /** How long a reader may leave what waits for it: all of it, or 64 kB, is to be taken by then. Default `30s`. */
  writeTimeout?: Duration
  /** Host names that may be asked for, beside `publicUrl`'s and, on a loopback bind, loopback names. */
  allowedHosts?: string[]
  /** Origins whose pages may call, beside `publicUrl`'s and, on a loopback bind, loopback origins. */
  allowedOrigins?: string[]
  /**
   * Which proxies stand in front, so that `X-Forwarded-For` and `X-Forwarded-Host` are believed as far as they wrote them:
   * how many (`true` is one), or their addresses and ranges (`10.0.0.0/8`, `loopback`, `linklocal`, `uniquelocal`).
   * Default false.
   */
  trustProxy?: boolean | number | string[]
}

/** A module path or glob relative to the config, definitions, or a list of these. */
export type ToolsetSource = string | Definition | ReadonlyArray<string | Definition>

type BuiltInOverrides = { [Name in keyof BuiltInOptions]?: Partial<BuiltInOptions[Name]> | ConfiguredPlugin | false }

/** The same for one route: options that are given replace the general ones, the others stay. */
export interface RoutePluginsSettings extends BuiltInOverrides {
  [name: string]: ConfiguredPlugin | false | object | undefined
}

export interface RouteSettings {
  /** Toolsets served here; `':name'` takes the toolset that the path's parameter names. */
  toolsets: string | string[]
  /** Toolsets served when the path's optional parameter is absent. */
  default?: string[]
  /** POST only, every request on its own. Default: the config's `stateless`. */
  stateless?: boolean
  /** Serves `subscriptions/listen` on a stateless route too. Default: on routes that keep sessions. */
  listen?: boolean
  /** Who may use the route: `true` for any user, the name of a policy, or `{ scope, role }`, all of which must be there. */
  authorize?: AuthorizeRule
  /**
   * Scopes that a client without a token is told to ask for, where `authorize` names none: the least that is of use here.
   * They are not enforced. Default: those that every item of the address needs.
   */
  challengeScope?: string | string[]
  /** The name of a CORS policy. */
  cors?: string
  /** Switches a plugin off, or changes its options, for this route alone. */
  plugins?: RoutePluginsSettings
}

type BuiltInPlugins = { [Name in keyof BuiltInOptions]?: BuiltInOptions[Name] | ConfiguredPlugin | false }

/** Built-in plugins by name; your own as configured values, or by package or file name with plain options. */
export interface PluginsSettings extends BuiltInPlugins {
  [name: string]: ConfiguredPlugin | false | object | undefined
}

export interface Config extends Partial<BuiltInSections> {
  server: ServerSettings
  http?: HttpSettings
  /** Every route serves request by request, without sessions. Default false. */
  stateless?: boolean
  /** The first signs, all verify; undefined entries are skipped. Default: one made at start, for this process. */
  secrets?: ReadonlyArray<string | undefined>
  tools?: {
    /** For `ctx.fetch`. Default `30s`. */
    fetchTimeout?: Duration
    /** For a whole call; a tool's own `timeout` wins. Default `'off'`. */
    callTimeout?: Duration | 'off'
    /** A handler that holds the event loop for longer is told of in the log. Default `200ms`. */
    stallWarning?: Duration | 'off'
  }
  sessions?: {
    /** A session that nothing used for so long ends. Default `2h`; an open GET is a use. */
    idleTimeout?: Duration
    /** Idle sessions kept, of all owners together; past it the owner of most loses its oldest. Default 10,000. */
    maxIdle?: number
    /** Sessions of one owner (a user, or an anonymous caller's address); past it `initialize` gets 429. Default: no bound. */
    maxPerOwner?: number
    /** Requests of one session that run at once; past it 429. One whose client has gone runs on. Default 32. */
    maxCallsPerSession?: number
    /** The same of all sessions of one owner. Default 256. */
    maxCallsPerOwner?: number
  }
  toolsets: Record<string, ToolsetSource>
  routes: Record<string, RouteSettings>
  plugins?: PluginsSettings
  configureSession?: ConfigureSession
  runSession?: RunSession
}

/**
 * Returns its argument: it is there for the types, which complete and check the config in an editor. `Sections` are the
 * top-level keys that plugins of your own declare.
 */
export const defineConfig = <Sections extends object = object>(config: Config & NoInfer<Sections>): Config & Sections =>
  config
