// The kernel's part of the plugin API; the MCP part is in mcp-plugin-host.ts.
import type { Clock } from '../http/clock.ts'
import type { Path, Report } from '../http/errors.ts'
import type { ResolvedHttp } from '../http/guard.ts'
import type { CrossOrigin, Endpoint, EndpointSettings, HostMiddleware, MountedApp, MountSettings } from './endpoint.ts'
import type { Logger } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Route } from './route.ts'

/** The result of the readiness check. */
export interface Readiness {
  readonly ready: boolean
  readonly checks: Readonly<Record<string, boolean>>
  readonly reasons?: Readonly<Record<string, string>>
}

/**
 * Increments a counter that all processes share. The window of `window` milliseconds starts with the first count. Rejects with
 * the HostError `unavailable`.
 */
export type CountTogether = (
  counter: string,
  window: number,
  key: string,
) => Promise<{
  readonly used: number
  /** Milliseconds until the window ends. */
  readonly left: number
}>

export interface LockSettings {
  readonly file: string
  readonly isFrozen: boolean
}

/** The parts of the config that a plugin can read, and the host's purpose. */
export interface PluginConfig {
  /** Keys of 32 bytes for one use, derived from `secrets`. The first signs, all verify. */
  keys(use: string): readonly Buffer[]
  /** The keys that lead to the plugin's options in the config. */
  readonly at: Path
  /** The config folder, to which config paths are relative. */
  readonly directory: string
  /** The lock file of the config, which can be missing. `isFrozen`: only its contents can be served. */
  readonly lock: LockSettings
  /** The HTTP settings, in bytes and milliseconds. */
  readonly http: ResolvedHttp
  /** The random name of this node. */
  readonly node: string
  /** Number of processes that serve this config. A plugin with per-process state must refuse more than one. */
  readonly processes: number
  /**
   * `serve`: the host listens. `stdio`: one client. `test`: files and ports of the serving host stay untouched. `inspect`: like
   * `test`, and the host never starts.
   */
  readonly purpose: 'serve' | 'stdio' | 'test' | 'inspect'
  /** Name, version and title of the server; a reload can change them. */
  readonly server: { readonly name: string; readonly version: string; readonly title?: string | undefined }
}

/** The kernel's part of the plugin host. `setup` registers everything; nothing is opened before `onStart`. */
export interface KernelHost<Slots extends object = object, Served extends Route = Route> {
  readonly name: string
  readonly config: PluginConfig
  /** The routes of this plugin instance. */
  readonly routes: readonly Served[]
  readonly log: Logger
  /** Time and timers, which tests replace. */
  readonly clock: Clock
  /** Defines gauges, counters and histograms. */
  readonly metrics: Metrics

  /**
   * Outermost Koa middleware: `next()` never throws, and `ctx.status` is final after it. It applies to the plugin's routes and,
   * if the plugin is enabled for all routes, to requests outside of routes.
   */
  use(middleware: HostMiddleware): void
  /** Runs before authentication, for limits per IP address. */
  onRequest(middleware: HostMiddleware): void
  /**
   * Sets `ctx.state.user` for credentials that it recognises, throws `unauthorized` if they are wrong, and otherwise only calls
   * `next()`. Plugins run in the order of the config's `plugins`, until one sets a user. `challenge`: for credentials other than
   * bearer tokens, such as `ApiKey realm="acme"`. A user without `issuer` is copied, and gets one with the plugin's name.
   */
  authenticate(middleware: HostMiddleware, options?: { readonly challenge?: string }): void
  /** Decides whether the caller can use the route, and applies limits per user. */
  authorize(middleware: HostMiddleware): void
  /**
   * Serves an endpoint. An object is served at a fixed path, such as `/health`, where only `use` hooks apply. A function is called
   * for each route of the plugin; its endpoint is served at `<route><path>`, behind all hooks.
   */
  endpoint(path: string, endpoint: Endpoint | ((route: Served) => Endpoint | undefined), place?: EndpointSettings): void
  /** Mounts a Koa app at a fixed path and below. Only `use` hooks apply. A path conflict is a startup error. */
  mount(path: string, app: MountedApp, settings?: MountSettings): void
  /** Provides a service for the plugin's routes, in `setup` only. Throws if another plugin provides it there. */
  provide<Name extends keyof Slots>(slot: Name, service: Slots[Name]): void

  /** Reports a problem. Startup fails with all errors; warnings are logged. */
  readonly report: Report
  /** Runs after all plugins are set up and all definitions are added, also for `mcp-host check`. Must not open anything. */
  onReady(task: () => void | Promise<void>): void
  /** Runs before the host listens. A rejection stops startup. */
  onStart(task: () => void | Promise<void>): void
  /**
   * Applies new options without a restart, at each reload. `prepare` validates and returns a synchronous function that applies
   * them. Return undefined if a restart is required. Can throw a StartError.
   */
  onReload<Options extends object>(prepare: (options: Options) => (() => unknown) | undefined): void
  /** Runs when the host begins to close, to end open streams. */
  preClose(task: () => void): void
  /** Runs while the host closes, in reverse order of set-up. */
  onClose(task: () => void | Promise<void>): void
  /**
   * A readiness condition. The host is not ready if it returns false or a string, throws, or takes over 2 s. Health details show the
   * string.
   */
  readiness(name: string, check: () => boolean | string | Promise<boolean | string>): void
}

/** Members for built-in plugins. */
export interface InternalKernelHost<Slots extends object = object, Services = unknown, Served extends Route = Route>
  extends KernelHost<Slots, Served> {
  /** The services of the host. Throws before all plugins are set up. */
  readonly services: Services
  /** Calls `answer` (JSON result) in every process, and omits late results. Once per name, in `setup`. */
  inEveryProcess(name: string, answer: () => unknown): () => Promise<readonly unknown[]>
  /** Counters shared by all processes. Undefined without shared counters, or with one process. */
  readonly countTogether?: CountTogether | undefined
  /** The URL of a path. Without `http.publicUrl` it has no origin until the host listens. */
  url(path: string): string
  /** True: the keys are temporary and unknown to other nodes. */
  readonly ownKeys: boolean
  /** Sets the CORS policy of routes, after the Host and Origin guard. */
  cors(policyOf: (route: Served) => CrossOrigin | undefined): void
  /**
   * A value shared by plugins, created by the first call. `key`: a symbol or an object. `close` runs after these
   * plugins.
   */
  share<Value>(key: symbol | object, create: () => Value, close?: (value: Value) => void | Promise<void>): Value
  checkReadiness(): Promise<Readiness>
}
