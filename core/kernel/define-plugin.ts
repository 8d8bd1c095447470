// The contract between a plugin and the host: everything that a plugin may do, in one interface.
// A plugin says *what* it does by the hook point it uses; *when* that happens is fixed by the host (core/kernel/pipeline.ts).
import type { Middleware, ParameterizedContext } from 'koa'
import type { RedisSettings } from '../config/define-config.ts'
import type { Call, CallRequest, Next, OpenSession, RequestFacts } from '../mcp/call.ts'
import type { CatalogItem } from '../mcp/catalog.ts'
import type { Definition, RuntimeHost, User } from '../mcp/define.ts'
import type { JsonSchema, Revision } from '../mcp/protocol.ts'
import type { ChangeFeed } from '../sessions/change-feed.ts'
import type { SessionRegistry } from '../sessions/registry.ts'
import type { SessionStreams } from '../sessions/session-streams.ts'
import type { ResolvedHttp } from './http-settings.ts'
import type { Logger } from './log.ts'
import type { Slots } from './slots.ts'

/** What the pipeline keeps in `ctx.state`; each field has one writer. */
export interface RequestState {
  /**
   * Written by the host before its match: the path in its one spelling, without a slash at its end. Everything is looked
   * up by it, and `ctx.path` says the same. Undefined only where the request names no path, and so nothing is served.
   */
  path?: string | undefined
  /** Written by the host's match. */
  route?: Route
  params: Readonly<Record<string, string>>
  /** Written by the plugin that identifies. */
  user?: User
}

export type HostContext = ParameterizedContext<RequestState>
export type HostMiddleware = Middleware<RequestState>

/** A configured path and what is served there. */
export interface Route {
  /** As configured, such as `/t/:category?`. */
  readonly path: string
  readonly stateless: boolean
  /** Whether `subscriptions/listen` is served. */
  readonly listen: boolean
  /** As configured; an auth plugin enforces it. */
  readonly authorize: AuthorizeRule | undefined
  /** What a client is told to ask for where `authorize` names no scope; empty: what all items of the address need. */
  readonly challengeScopes: readonly string[]
  /** The name of a CORS policy. */
  readonly cors: string | undefined
  /** Every toolset that the route can serve. */
  readonly toolsets: readonly string[]
  /** The protocol revisions that its transports serve, newest first; complete once every plugin is set up. */
  readonly revisions: readonly Revision[]
  /** The URL of this route for these parameters, from `http.publicUrl` or the address it listens on. */
  url(params?: Readonly<Record<string, string>>): string
}

export type AuthorizeRule = true | string | { scope?: string | string[]; role?: string | string[] }

type Handler = (ctx: HostContext) => void | Promise<void>

/** Which pages of other origins may use a route, and what tells their browsers so. */
export interface CrossOrigin {
  /** True for an Origin that the host's guard lets through on this route, beside those it knows. */
  allows(origin: string): boolean
  /** Answers preflights, and sets its headers before anything can refuse: every answer carries them, errors too. */
  readonly middleware: HostMiddleware
}

/** An address served by a plugin; other verbs answer 405 with `Allow`. */
export interface Endpoint {
  readonly methods: Readonly<Partial<Record<'GET' | 'POST' | 'PUT' | 'DELETE', Handler>>>
  /** Served to anyone: outside Host and Origin guard, CORS, authentication and `authorize`. */
  readonly public?: boolean
  /** The endpoint's own CORS in the place of its route's: acts before everything but the guard. */
  readonly cors?: HostMiddleware
}

export interface EndpointPlace {
  /** The path ends as this route's does: `ctx.state` gets its parameters, and one that names nothing answers 404. */
  readonly route?: Route
  /** Served only where nothing else has the path; of several fallbacks the first. */
  readonly fallback?: boolean
}

/** What is known of a host's readiness. */
export interface Readiness {
  readonly ready: boolean
  readonly checks: Readonly<Record<string, boolean>>
  readonly reasons?: Readonly<Record<string, string>>
}

/** What `host` offers in `setup`. */
export interface PluginHost {
  /** The plugin's key in the config. */
  readonly name: string
  readonly log: Logger
  readonly server: { readonly name: string; readonly version: string }
  readonly http: ResolvedHttp
  /** How many processes serve this config behind one address; a plugin whose state is in one of them refuses more. */
  readonly processes: number
  /** Where the config is: paths in it are relative to this. */
  readonly directory: string
  /** The config's `redis`, for plugins that keep things there. */
  readonly redis: RedisSettings | undefined
  /** The URL of a fixed path, from `http.publicUrl` or the address that the host listens on; call it once it does. */
  url(path: string): string
  /** The routes that this instance of the plugin acts on. */
  readonly routes: readonly Route[]
  readonly runtime: RuntimeHost

  /** Refuses a request before it is matched to a user: after the host's own Host and Origin guard. */
  guard(middleware: HostMiddleware): void
  /** Opens routes to pages of other origins; acts before every other hook, and only the host's guard comes first. */
  crossOrigin(policyOf: (route: Route) => CrossOrigin | undefined): void
  /** Acts at the route's edge, before authentication: limits per address. */
  edge(middleware: HostMiddleware): void
  /** Finds out who calls: writes `ctx.state.user` or leaves it. */
  identify(middleware: HostMiddleware): void
  /** Decides whether this caller may use this route: `authorize`, limits per user. */
  admit(middleware: HostMiddleware): void
  /** Wraps every Call, as Koa middleware wraps a request. The first to be set up is outermost. */
  around(wrap: (call: Call, next: Next) => Promise<object>): void

  /** Serves a fixed path, such as `/health`, or one with the parameters of a route. No hook acts there. */
  endpoint(path: string, endpoint: Endpoint, place?: EndpointPlace): void
  /** Serves `<route><suffix>` under each of the plugin's routes; `''` is the route itself. */
  routeEndpoint(suffix: '' | `/${string}`, define: (route: Route) => Endpoint | undefined): void
  /** Names the protocol revisions that a transport serves on a route, for the start-up page. */
  revisions(list: (route: Route) => readonly Revision[]): void
  /** Answers a JSON-RPC method. Throws when the host or another plugin already does. */
  method(name: string, answer: (call: Call) => object | Promise<object>): void
  /** Contributes definitions to each of the plugin's routes. */
  contribute(definitions: readonly Definition[]): void
  /** What the addresses of a route can serve by the config, each item once. Complete from a starting task on. */
  itemsOf(route: Route): readonly CatalogItem[]
  /** For `scope` of a challenge where nothing else names one: the least that is of use at an address; may be empty. */
  leastScopes(route: Route, params: Readonly<Record<string, string>>): readonly string[]
  /** Tells the host that what is listed can differ from caller to caller, so no list is `public`. */
  variesByCaller(): void

  /**
   * Replaces a service. Throws when another plugin did. The same plugin may, once for each set of options: it passes
   * on what is not about its own routes to the service it found with `slot`.
   */
  fill<Name extends keyof Slots>(slot: Name, service: Slots[Name]): void
  /** The service in a slot: what a plugin filled in, else the default. Others may fill it until the starting tasks run. */
  slot<Name extends keyof Slots>(slot: Name): Slots[Name]

  /** Runs before the host listens, in the order of set-up; a rejection stops the start. */
  starting(task: () => void | Promise<void>): void
  /** Runs while the host closes, last set up first. */
  closing(task: () => void | Promise<void>): void
  /**
   * A named condition for readiness: false, a throw, or a text makes the host not ready. The text says why, to whoever may
   * see the health page.
   */
  ready(name: string, check: () => boolean | string | Promise<boolean | string>): void
  /** Whether the host is ready, and each named condition; `reasons` where one of those that do not hold says why. */
  readiness(): Promise<Readiness>

  /** Runs when the host begins to close, before it waits for what runs: ends streams that would never end. */
  draining(task: () => void): void
  /** For transports: the sessions of this node. */
  readonly sessions: SessionRegistry
  /** For transports: the streams of sessions, which a client can come back to. */
  readonly streams: SessionStreams
  /** This node among those that share sessions: random, made with the host. */
  readonly node: string
  /** True where the keys that sign and seal were made by this process, so that no other node has them. */
  readonly ownKeys: boolean
  /** Hears of changes; for `subscriptions/listen`. */
  readonly changes: ChangeFeed
  /** For transports: what a request's caller sees, after `configureSession`. */
  openSession(request: RequestFacts): Promise<OpenSession>
  /** For transports: a Call for one JSON-RPC message. */
  createCall(request: CallRequest): Call
  /** For transports: runs a Call through every `around` to its answer. */
  answer(call: Call): Promise<object>
  /**
   * For transports: counts a request in flight until the returned function is called. `cancel` is called when the host
   * closes and its grace period is over: answer the request with `nodeLost()`, then abort it. Throws `unavailable` from
   * then on; until then a host that drains answers what comes.
   */
  inFlight(cancel: (reason: Error) => void): () => void
  /** A key for one use, derived from the config's `secrets`: the first signs, all verify. */
  keys(use: string): readonly Buffer[]
}

/** Not spread over a union: the values of an enum belong to one schema. */
type Primitive<T> = [T] extends [string]
  ? { type: 'string'; enum?: readonly T[]; default?: T; pattern?: string; format?: string; writeOnly?: true }
  : [T] extends [number]
    ? { type: 'integer' | 'number'; minimum?: number; maximum?: number; default?: T }
    : [T] extends [boolean]
      ? { type: 'boolean'; default?: boolean }
      : never

/** The schema of one option: primitives are held to their type, everything else is a JSON Schema. */
type OptionSchema<T> = (
  | (string extends T ? (number extends T ? JsonSchema : Primitive<string>) : never)
  | ([T] extends [string | number | boolean] ? ([T] extends [boolean] ? Primitive<boolean> : Primitive<T>) : JsonSchema)
) & { description?: string }

/**
 * The JSON Schema of a plugin's options: one entry an option, none missing and none more. `writeOnly: true` marks a
 * secret: it is never shown, and loses the line break that a file ends with.
 */
export interface OptionsSchema<Options, Filled extends Options = Options> {
  type: 'object'
  description?: string
  additionalProperties: false
  properties: { [K in keyof Options]-?: OptionSchema<NonNullable<Options[K]>> & Standard<Options, Filled, K> }
  required?: readonly (keyof Options & string)[]
  /** What `$ref: '#/$defs/<name>'` names. */
  $defs?: Readonly<Record<string, JsonSchema>>
}

/** An option that may be left out and is yet there for `setup` has a default. */
type Standard<Options, Filled extends Options, K extends keyof Options> =
  Pick<Options, K> extends Required<Pick<Options, K>>
    ? unknown
    : Pick<Filled, K> extends Required<Pick<Options, K>>
      ? { default: unknown }
      : unknown

/** `Filled` are the options as `setup` gets them: those that have a default are there. */
export interface Plugin<Options extends object, Filled extends Options = Options> {
  /** Its schema; defaults written there, nested ones too, are filled in before `setup`. */
  options: OptionsSchema<Options, Filled>
  /** Capabilities that another plugin must provide, such as `'user'`; fixes the order of set-up. */
  needs?: readonly string[]
  /** Capabilities that this plugin provides to others. */
  provides?: readonly string[]
  setup(host: PluginHost, options: Filled): void | Promise<void>
}

const CONFIGURED = Symbol.for('mcp-host.configured-plugin')

/** A plugin with its options: a value of the config's `plugins`. */
export interface ConfiguredPlugin {
  readonly [CONFIGURED]: true
  readonly plugin: Plugin<object>
  readonly options: object
}

export const isConfiguredPlugin = (value: unknown): value is ConfiguredPlugin =>
  typeof value === 'object' && value !== null && CONFIGURED in value

/** Calling a plugin configures it; the plugin's own description is readable beside that. */
export type PluginFactory<Options extends object, Filled extends Options = Options> = ((
  options?: Options,
) => ConfiguredPlugin) & { readonly plugin: Plugin<Options, Filled> }

/** Makes a plugin of its options' schema and its set-up. */
export function definePlugin<Options extends object, Filled extends Options = Options>(
  plugin: Plugin<Options, Filled>,
): PluginFactory<Options, Filled> {
  const configure = (options?: Options): ConfiguredPlugin => ({
    [CONFIGURED]: true,
    plugin: plugin as unknown as Plugin<object>,
    options: options ?? {},
  })
  return Object.assign(configure, { plugin })
}
