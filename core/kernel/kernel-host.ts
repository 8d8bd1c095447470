// The kernel's part of a plugin's host. The hook point decides when code runs (order.ts). The MCP part is in author-host.ts.
import type { Clock } from '../http/clock.ts'
import type { Path, Report } from '../http/errors.ts'
import type { ResolvedHttp } from '../http/http-settings.ts'
import type { CrossOrigin, Endpoint, EndpointPlace, HostMiddleware, MountedApp, MountSettings } from './endpoint.ts'
import type { Figures } from './figures.ts'
import type { Logger } from './log.ts'
import type { Route } from './route.ts'

/** The result of the readiness check. */
export interface Readiness {
  readonly ready: boolean
  readonly checks: Readonly<Record<string, boolean>>
  readonly reasons?: Readonly<Record<string, string>>
}

/**
 * Adds 1 to the counter of `key` that all processes share. A window of `window` milliseconds starts with its first count.
 * Rejects with the HostError `unavailable`.
 */
export type CountTogether = (
  counter: string,
  window: number,
  key: string,
) => Promise<{
  /** Including this one. */
  readonly used: number
  /** Milliseconds until the window ends. */
  readonly left: number
}>

/**
 * `setup` declares and fills slots. After all plugins are set up, the host builds its services, and `serving` tasks define
 * endpoints with them.
 */
export interface KernelHost<Slots extends object = object, Services = unknown, Served extends Route = Route> {
  /** The plugin's key in the config. */
  readonly name: string
  /** The config keys of this instance's options. */
  readonly at: Path
  readonly log: Logger
  /** Time and timers, which tests can replace. */
  readonly clock: Clock
  readonly http: ResolvedHttp
  /**
   * `serve`: the host listens. `stdio`: one client. `test`: files and ports of the serving host stay untouched. `inspect`: the
   * same, and the host never starts.
   */
  readonly purpose: 'serve' | 'stdio' | 'test' | 'inspect'
  /** Number of processes that serve this config. A plugin with state in one process refuses more. */
  readonly processes: number
  /** Calls `answer`, which returns JSON, in every process; those that are late are omitted. Once per name, in `setup`. */
  inEveryProcess(name: string, answer: () => unknown): () => Promise<readonly unknown[]>
  /** Undefined if the processes share no counters, or there is only one process. */
  readonly countTogether?: CountTogether | undefined
  /** Metrics: offer yours, or read all. */
  readonly figures: Figures
  /** The folder of the config; its relative paths start here. */
  readonly directory: string
  /** The routes of this plugin instance. */
  readonly routes: readonly Served[]
  /** The URL of a fixed path. Call it once the host listens. */
  url(path: string): string
  /** Keys for one use, derived from `secrets`: the first signs, all verify. */
  keys(use: string): readonly Buffer[]
  /** The keys are temporary, so no other node has them. */
  readonly ownKeys: boolean
  /** The random name of this node. */
  readonly node: string

  /**
   * Koa middleware, outermost: `next()` never throws, and `ctx.status` is final after it. It acts on the plugin's routes; if
   * the plugin is on for all routes, also on requests outside of routes.
   */
  use(middleware: HostMiddleware): void
  /** Opens routes to pages of other origins, after the Host and Origin guard. */
  crossOrigin(policyOf: (route: Served) => CrossOrigin | undefined): void
  /** Before authentication: limits per IP address. */
  edge(middleware: HostMiddleware): void
  /** Authentication: sets `ctx.state.user`. */
  identify(middleware: HostMiddleware): void
  /** Authorization of the route, and limits per user. */
  admit(middleware: HostMiddleware): void
  /** Serves a fixed path, such as `/health`. Only `use` hooks act there. */
  endpoint(path: string, endpoint: Endpoint, place?: EndpointPlace): void
  /**
   * Serves a Koa app or middleware at a fixed path and below, with koa-mount. Only `use` hooks act there. A path of a route or
   * of another plugin stops startup.
   */
  mount(path: string, app: MountedApp, settings?: MountSettings): void
  /** Serves `<route><suffix>` under each route of the plugin. */
  routeEndpoint(suffix: '' | `/${string}`, define: (route: Served) => Endpoint | undefined): void

  /** Fills a slot for the plugin's routes, in `setup` only. Throws if another plugin fills it there. */
  fill<Name extends keyof Slots>(slot: Name, service: Slots[Name]): void
  /** Runs after all plugins are set up and the services are built, in the order of set-up. */
  serving(task: (services: Services) => void | Promise<void>): void

  /**
   * A value that several plugins share; the first call creates it. `key` is a symbol or an object. `close` runs after they have
   * closed.
   */
  share<Value>(key: symbol | object, create: () => Value, close?: (value: Value) => void | Promise<void>): Value

  /** Reports a problem without stopping: startup fails with all of them. A warning is logged. */
  readonly report: Report
  /** Runs once everything is defined, also for `mcp-host check`. Must not open anything. */
  checking(task: () => void | Promise<void>): void
  /**
   * How the plugin takes new options without a restart. `prepare` gets the validated options and returns the function that
   * applies them at once, which can return texts about further changes; undefined requires a restart. Called at every reload.
   * Can throw a StartError.
   */
  reconfigure<Options extends object>(prepare: (options: Options) => (() => unknown) | undefined): void
  /** Runs before the host listens, in the order of set-up; a rejection stops startup. */
  starting(task: () => void | Promise<void>): void
  /** Runs when the host begins to close: ends endless streams. */
  draining(task: () => void): void
  /** Runs while the host closes, in reverse order of set-up. */
  closing(task: () => void | Promise<void>): void
  /**
   * A readiness condition. False, an error, a text or no answer within 2 s makes the host not ready; the text is shown in the
   * health details.
   */
  ready(name: string, check: () => boolean | string | Promise<boolean | string>): void
  /** Whether the host is ready, with each condition; `reasons` explains those that failed. */
  readiness(): Promise<Readiness>
}
