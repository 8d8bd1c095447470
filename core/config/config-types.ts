// The config in types, generated from host-schema.ts by `npm run schema`: never edited by hand, change that.
import type { Duration, Size } from '../mcp/units.ts'
import type {
  ConfigureSession,
  PluginsSettings,
  RoutePluginsSettings,
  RunSession,
  Secrets,
  ServerSettings,
  ToolsetSource,
} from './config-parts.ts'
import type { SecretSource } from './secret-source.ts'
import type { RedisSentinel, RedisTls } from './shared-shapes.ts'

export interface Config {
  /** Who this server says it is. */
  server: ServerSettings
  /** Where and how this host listens. */
  http?: HttpSettings
  /** Every route serves request by request, without sessions. Default `false`. */
  stateless?: boolean
  /** The first signs, all verify. Default: one made at start, for this process. */
  secrets?: Secrets
  /** Limits for every tool. */
  tools?: ToolLimits
  /** Sessions of clients that open them: revisions before 2026-07-28. */
  sessions?: SessionLimits
  /** How Redis is reached, for every plugin that keeps things there; each may say otherwise for itself. */
  redis?: RedisSettings
  /** Named groups of tools, resources and prompts; routes say which they serve. */
  toolsets: Record<string, ToolsetSource>
  /** Paths, and what is served there. ':name?' is an optional parameter. */
  routes: Record<string, RouteSettings>
  /** Plugins by name, each with its options; false: off. */
  plugins?: PluginsSettings
  /** Changes what one caller sees. */
  configureSession?: ConfigureSession
  /** Acts before and after a session. */
  runSession?: RunSession
}

/** Where and how this host listens. */
export interface HttpSettings {
  /** Address to listen on. Default `127.0.0.1`. */
  host?: string
  /** Port to listen on; 0 selects a free port. Default `3000`. */
  port?: number
  /** Connections that can wait to be accepted. The system limit (net.core.somaxconn) also applies. Default `4096`. */
  backlog?: number
  /** Serves HTTPS. Files are relative to the config, and read again on reload (SIGHUP). */
  tls?: HttpTls
  /** How clients reach this host; metadata, challenges and the guard use it. */
  publicUrl?: string
  /** Maximum request body: bytes, or a number with b, kb, mb or gb. A larger body gets 413. Default `4mb`. */
  maxBodySize?: Size
  /** How long an idle connection is kept. Default `5s`. */
  keepAliveTimeout?: Duration
  /** How long receiving one request can take. It does not limit calls and streams. Default `60s`. */
  requestTimeout?: Duration
  /** How long a client can take to read a response, or the events that are queued for it. Default `30s`. */
  writeTimeout?: Duration
  /** Accepted host names, in addition to publicUrl's and, on a loopback bind, loopback names. Default `[]`. */
  allowedHosts?: string[]
  /** Accepted origins of web pages, in addition to publicUrl's and, on a loopback bind, loopback origins. Default `[]`. */
  allowedOrigins?: string[]
  /** Trusted proxies in front of the host, whose X-Forwarded-For and X-Forwarded-Host are used. Default `false`. */
  trustProxy?: boolean | number | string[]
}

/** Serves HTTPS. Files are relative to the config, and read again on reload (SIGHUP). */
export interface HttpTls {
  /** The certificate, then its intermediates: PEM, or the path of a PEM file. */
  cert: string
  /** Its key: PEM, or the path of a PEM file. */
  key: string
  /** Of a key that is encrypted. */
  passphrase?: string
  /** The oldest version that is spoken. Default `TLSv1.2`. */
  minVersion?: 'TLSv1.2' | 'TLSv1.3'
  /** How long a handshake may take. Default `10s`. */
  handshakeTimeout?: Duration
}

/** Limits for every tool. */
export interface ToolLimits {
  /** For ctx.fetch. Default `30s`. */
  fetchTimeout?: Duration
  /** Limit for a whole call, except while it waits for its client. A tool's own timeout takes precedence. Default `off`. */
  callTimeout?: 'off' | Duration
  /** Globs over names of tools ('heavy_*'), and limits of each tool that fits. The narrower of all holds. */
  limits?: Record<string, LimitsOfTools>
}

/** Limits of each of these tools. */
export interface LimitsOfTools {
  /** How long one call can take, including its time in the queue. */
  timeout?: Duration
  /** How many calls run at a time in one process; more wait. */
  concurrency?: number
  /** Runs the tool in a worker process, with limits. */
  isolate?:
    | true
    | {
        /** Maximum memory: heap and buffers. */
        memory?: Size
        /** Maximum CPU time of one call. */
        cpuTime?: Duration
        /** Maximum number of processes, and of concurrent calls. */
        processes?: number
      }
}

/** Sessions of clients that open them: revisions before 2026-07-28. */
export interface SessionLimits {
  /** An unused session ends after this time. An open GET counts as use. Default `2h`. */
  idleTimeout?: Duration
  /** Idle sessions kept, of all owners together; past it the owner of most loses its oldest. Default `10000`. */
  maxIdle?: number
  /** Maximum sessions of one user, or of one address for anonymous callers. Beyond it, initialize gets 429. Default `5000`. */
  maxPerOwner?: number
  /** Requests of one session that run at once, also those whose client has gone; more are answered 429. Default `32`. */
  maxCallsPerSession?: number
  /** The same of all sessions of one user, or of one address for anonymous callers. Default `256`. */
  maxCallsPerOwner?: number
}

/** How Redis is reached, for every plugin that keeps things there; each may say otherwise for itself. */
export interface RedisSettings {
  /** Where Redis is: redis://host:6379, or rediss:// for TLS; may name user, password and database. */
  url?: string
  /** The ACL user, where the URL names none. */
  username?: string
  /** Its password, where the URL has none; in code also a function that gives it for each connection. */
  password?: SecretSource
  /** For rediss:// alone. */
  tls?: RedisTls
  /** What every key starts with; hosts that share only a Redis have one each. Default: 'mcp-host:'. */
  keyPrefix?: string
  /** How long Redis may take to answer; then what waits for it is refused, or goes on without. Default: '5s'. */
  commandTimeout?: Duration
  /** URLs of some nodes of a Redis Cluster, in the place of `url`. */
  cluster?: string[]
  /** Sentinels that name the primary, in the place of `url`. */
  sentinel?: RedisSentinel
}

/** What is served at this path. */
export interface RouteSettings {
  /** Toolsets served here. { param, of } takes the toolset that the path's parameter names; ':name' takes any but internal ones. */
  toolsets:
    | string
    | string[]
    | {
        /** A parameter of the path. */
        param: string
        /** Toolsets that the parameter can name. */
        of: string[]
      }
  /** Toolsets served when the path's optional parameter is absent. */
  default?: string[]
  /** POST only, every request on its own. Default: the config's stateless. */
  stateless?: boolean
  /** Serves subscriptions/listen on a stateless route too. Default: on routes that keep sessions. */
  listen?: boolean
  /** Who may use the route: true for any user, the name of a policy, or an object of scopes and roles. */
  authorize?:
    | true
    | string
    | {
        scope?: string | string[]
        role?: string | string[]
      }
  /** Scopes that a client without a token is told to ask for, where authorize names none. Not enforced. */
  challengeScope?: string | string[]
  /** The name of a CORS policy. */
  cors?: string
  /** tools/list shows find_tools and call_tool in the place of tools. */
  search?: SearchSettings
  /** Plugins switched off, or options changed, for this route alone. */
  plugins?: RoutePluginsSettings
}

/** tools/list shows find_tools and call_tool in the place of tools. */
export interface SearchSettings {
  /** Tools that stay in tools/list. Default `[]`. */
  pinned?: string[]
}

/** Config with its defaults filled in. */
export interface FilledConfig extends Config {
  http: FilledHttpSettings
  stateless: boolean
  tools: FilledToolLimits
  sessions: FilledSessionLimits
  routes: Record<string, FilledRouteSettings>
}

/** HttpSettings with its defaults filled in. */
export interface FilledHttpSettings extends HttpSettings {
  host: string
  port: number
  backlog: number
  tls?: FilledHttpTls
  maxBodySize: Size
  keepAliveTimeout: Duration
  requestTimeout: Duration
  writeTimeout: Duration
  allowedHosts: string[]
  allowedOrigins: string[]
  trustProxy: boolean | number | string[]
}

/** HttpTls with its defaults filled in. */
export interface FilledHttpTls extends HttpTls {
  minVersion: 'TLSv1.2' | 'TLSv1.3'
  handshakeTimeout: Duration
}

/** ToolLimits with its defaults filled in. */
export interface FilledToolLimits extends ToolLimits {
  fetchTimeout: Duration
  callTimeout: 'off' | Duration
}

/** SessionLimits with its defaults filled in. */
export interface FilledSessionLimits extends SessionLimits {
  idleTimeout: Duration
  maxIdle: number
  maxPerOwner: number
  maxCallsPerSession: number
  maxCallsPerOwner: number
}

/** RouteSettings with its defaults filled in. */
export interface FilledRouteSettings extends RouteSettings {
  search?: FilledSearchSettings
}

/** SearchSettings with its defaults filled in. */
export interface FilledSearchSettings extends SearchSettings {
  pinned: string[]
}
