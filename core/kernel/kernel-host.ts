// What the kernel gives every plugin. A plugin says *what* it does by the hook point it uses; *when* that happens is fixed
// by the order of a request (order.ts). What MCP adds is in core/mcp/author-host.ts.
import type { Clock } from '../http/clock.ts'
import type { Path, Report } from '../http/errors.ts'
import type { ResolvedHttp } from '../http/http-settings.ts'
import type { CrossOrigin, Endpoint, EndpointPlace, HostMiddleware, MountedApp, MountSettings } from './endpoint.ts'
import type { Figures } from './figures.ts'
import type { Logger } from './log.ts'
import type { Route } from './route.ts'

/** What is known of a host's readiness. */
export interface Readiness {
  readonly ready: boolean
  readonly checks: Readonly<Record<string, boolean>>
  readonly reasons?: Readonly<Record<string, string>>
}

/**
 * Adds one for `key` to a counter that all processes of this machine share. A window of `window` milliseconds begins with the
 * first count of a key. Rejects with the HostError `unavailable` if the counter cannot be reached.
 */
export type CountTogether = (
  counter: string,
  window: number,
  key: string,
) => Promise<{
  /** In the current window, this one included. */
  readonly used: number
  /** Milliseconds until the window ends. */
  readonly left: number
}>

/**
 * In two phases: `setup` declares and fills slots; once every plugin is set up, the host builds its services from what is
 * in the slots, and `serving` tasks define with them what is served.
 */
export interface KernelHost<Slots extends object = object, Services = unknown, Served extends Route = Route> {
  /** The plugin's key in the config. */
  readonly name: string
  /** The keys that lead to this instance's options in the config: where a mistake in them is. */
  readonly at: Path
  readonly log: Logger
  /** The time, and timers: read and set them here, so that tests can inject a clock. */
  readonly clock: Clock
  readonly http: ResolvedHttp
  /**
   * What the host is made for. `serve`: it listens. `stdio`: one client, and nothing listens. `test`: what belongs to the
   * serving host, its files and ports, stays untouched. `inspect`: the same, and no request comes; it may never start.
   */
  readonly purpose: 'serve' | 'stdio' | 'test' | 'inspect'
  /** How many processes serve this config behind one address; a plugin whose state is in one of them refuses more. */
  readonly processes: number
  /** Asks them all: `answer` runs in each, and gives JSON. Who does not answer in time is left out. Once for a name, in `setup`. */
  inEveryProcess(name: string, answer: () => unknown): () => Promise<readonly unknown[]>
  /** Undefined if the processes share no counters, or there is only one process. */
  readonly countTogether?: CountTogether | undefined
  /** What the host is measured by: offer yours, or read all. */
  readonly figures: Figures
  /** Where the config is: paths in it are relative to this. */
  readonly directory: string
  /** The routes that this instance of the plugin acts on. */
  readonly routes: readonly Served[]
  /** The URL of a fixed path, from `http.publicUrl` or the address that the host listens on; call it once it does. */
  url(path: string): string
  /** A key for one use, derived from the config's `secrets`: the first signs, all verify. */
  keys(use: string): readonly Buffer[]
  /** True where the keys that sign and seal were made by this process, so that no other node has them. */
  readonly ownKeys: boolean
  /** This node among those that share something: random, made with the host. */
  readonly node: string

  /**
   * Any Koa middleware, outermost: `await next()` never throws, and `ctx.status` is final after it. Acts on the addresses of
   * the plugin's routes; where the plugin is on for all routes, on everything that belongs to no route as well, 404 too.
   */
  use(middleware: HostMiddleware): void
  /** Opens routes to pages of other origins; acts before every other hook, and only the host's guard comes first. */
  crossOrigin(policyOf: (route: Served) => CrossOrigin | undefined): void
  /** Acts at the route's edge, before authentication: limits per address. */
  edge(middleware: HostMiddleware): void
  /** Finds out who calls: writes `ctx.state.user` or leaves it. */
  identify(middleware: HostMiddleware): void
  /** Decides whether this caller may use this route: `authorize`, limits per user. */
  admit(middleware: HostMiddleware): void
  /** Serves a fixed path, such as `/health`, or one with the parameters of a route. No hook but `use` acts there. */
  endpoint(path: string, endpoint: Endpoint, place?: EndpointPlace): void
  /**
   * Serves a Koa app, or middleware, at a fixed path and below it, with koa-mount; no hook but `use` acts there. Endpoints of
   * the same plugin have their addresses for themselves. A place that is a route's or another plugin's stops the start.
   */
  mount(path: string, app: MountedApp, settings?: MountSettings): void
  /** Serves `<route><suffix>` under each of the plugin's routes; `''` is the route itself. */
  routeEndpoint(suffix: '' | `/${string}`, define: (route: Served) => Endpoint | undefined): void

  /**
   * Puts a service into a slot, for the plugin's routes alone; elsewhere the slot keeps its default, or what another plugin
   * puts there. In `setup` only. Throws where another plugin has the slot on one of the routes.
   */
  fill<Name extends keyof Slots>(slot: Name, service: Slots[Name]): void
  /** Runs once every plugin is set up and the services are built, in the order of set-up: defines what needs them. */
  serving(task: (services: Services) => void | Promise<void>): void

  /**
   * What several plugins of this host share: made by the first that asks for it, and the same for the others. `key` is
   * theirs alone: a symbol or an object. `close` runs once all of them, set up after the first, have closed.
   */
  share<Value>(key: symbol | object, create: () => Value, close?: (value: Value) => void | Promise<void>): Value

  /**
   * Tells a mistake and goes on: the start stops with all that are wrong, each with the file and line of its `at`. A warning
   * (default: an error) is logged with them.
   */
  readonly report: Report
  /** Runs once everything is defined, for `mcp-host check` too: what is wrong with all of it together. Opens nothing. */
  checking(task: () => void | Promise<void>): void
  /**
   * Says how the plugin takes new options while the host runs; without it, new ones take effect at a restart. `prepare` gets
   * them checked and filled, as `setup` does, and gives what switches to them, at once, and may return texts that say what else
   * has changed; undefined: these need a restart. It is asked at every reload, and may throw a StartError.
   */
  reconfigure<Options extends object>(prepare: (options: Options) => (() => unknown) | undefined): void
  /** Runs before the host listens, in the order of set-up; a rejection stops the start. */
  starting(task: () => void | Promise<void>): void
  /** Runs when the host begins to close, before it waits for what runs: ends streams that would never end. */
  draining(task: () => void): void
  /** Runs while the host closes, last set up first. */
  closing(task: () => void | Promise<void>): void
  /**
   * A named condition for readiness: false, a throw, a text, or no answer within 2 s makes the host not ready. The text says
   * why, to whoever may see the details of the health page. Asked at each look, once for all who look at the same time.
   */
  ready(name: string, check: () => boolean | string | Promise<boolean | string>): void
  /** Whether the host is ready, and each named condition; `reasons` where one of those that do not hold says why. */
  readiness(): Promise<Readiness>
}
