// Protocol extensions that plugins add to their routes (2026-07-28 basic/versioning, "Extensions").

import { attributeError } from '../../http/describe-thrown.ts'
import { HostError, StartError } from '../../http/errors.ts'
import { getOrCreate } from '../../http/get-or-create.ts'
import type { Call } from '../calls/call.ts'
import { isObject, RESULT_TYPE, RESULT_TYPES, type TypedResult } from '../wire/message.ts'
import { type JsonObject, LISTEN_FILTERS } from '../wire/protocol.ts'

/** The accepted part of a `subscriptions/listen` filter. */
export interface Honoured {
  readonly acknowledged: unknown
  /** Begins after the acknowledgement. `notify` adds the subscription id. Returns an unsubscribe function. */
  begin(notify: (method: string, params: Record<string, unknown>) => void): () => void
}

/** Reads a `subscriptions/listen` filter. Undefined: not accepted. Throws `invalidParams` if malformed. */
type ListenFilter = (wanted: unknown, call: Call) => Honoured | undefined | Promise<Honoured | undefined>

type MethodHandler = (call: Call) => object | Promise<object>

/** A protocol extension, as plugins add it. */
export interface Extension {
  /** `capabilities.extensions` for clients of every version. Default: `{}`. */
  readonly settings?: JsonObject
  readonly methods?: Readonly<Record<string, MethodHandler>>
  /** The parameter that the `Mcp-Name` header repeats, by method. */
  readonly nameHeaders?: Readonly<Record<string, string>>
  /** Additional values of `resultType`, by method. */
  readonly results?: Readonly<Record<string, readonly string[]>>
  readonly listenFilters?: Readonly<Record<string, ListenFilter>>
  /** False: open to every client. Default: clients that do not declare the extension get -32021. */
  readonly clientMustDeclare?: boolean
}

/** A registered protocol extension. */
export interface AddedExtension {
  readonly id: string
  /** Returns the extension's settings in a client's capabilities. Undefined: not declared. */
  settingsOf(call: Pick<Call, 'client'>): JsonObject | undefined
  /** Creates a result of a type in `results`. Clients without the extension get -32021. */
  result(type: string, fields: Readonly<Record<string, unknown>>): TypedResult
}

export interface RouteExtensions {
  readonly settings: Readonly<Record<string, JsonObject>>
  readonly nameHeaders: ReadonlyMap<string, string>
  readonly listenFilters: ReadonlyMap<string, ListenFilter>
}

export interface ExtensionRegistration {
  readonly plugin: string
  readonly id: string
  readonly extension: Extension
  readonly routes: readonly object[]
}

/** A key of `_meta` with a prefix (2026-07-28 basic, "_meta"). */
const ID = /^[a-z](?:[a-z\d-]*[a-z\d])?(?:\.[a-z](?:[a-z\d-]*[a-z\d])?)*\/[a-z\d](?:[\w.-]*[a-z\d])?$/i

export class KnownExtension implements AddedExtension {
  readonly id: string
  readonly #plugin: string
  readonly #extension: Extension
  readonly #routes: ReadonlySet<object>

  constructor({ plugin, id, extension, routes }: ExtensionRegistration) {
    this.#plugin = plugin
    this.id = id
    this.#extension = extension
    this.#routes = new Set(routes)
  }

  settingsOf({ client }: Pick<Call, 'client'>): JsonObject | undefined {
    const extensions: unknown = client.capabilities.extensions
    const settings = isObject(extensions) && Object.hasOwn(extensions, this.id) ? extensions[this.id] : undefined
    return isObject(settings) ? settings : undefined
  }

  result(type: string, fields: Readonly<Record<string, unknown>>): TypedResult {
    return { ...fields, [RESULT_TYPE]: { name: type, check: (call: Call) => this.#checkResult(call, type) } }
  }

  get methods(): ReadonlyArray<{ readonly name: string; readonly handle: MethodHandler }> {
    return Object.entries(this.#extension.methods ?? {}).map(([name, handle]) => ({
      name,
      handle: call => {
        this.requireExtension(call)
        return handle(call)
      },
    }))
  }

  requireExtension(call: Call, what = call.method): void {
    if (this.#extension.clientMustDeclare !== false && !this.settingsOf(call)) throw this.#missing(what)
  }

  #checkResult(call: Call, type: string) {
    const { results = {} } = this.#extension
    const known = Object.hasOwn(results, call.method) ? results[call.method] : undefined
    if (!this.#routes.has(call.offer.route) || !known?.includes(type)) {
      const error = new Error(`${this.id} has no result "${type}" for ${call.method} on ${call.offer.route.path}`)
      attributeError(error, this.#plugin)
      throw error
    }
    if (call.rules.handshake || !this.settingsOf(call)) {
      const revision = call.rules.handshake ? ', in a protocol version without a handshake' : ''
      throw this.#missing(`the result "${type}"`, revision)
    }
  }

  #missing(what: string, revision = ''): HostError {
    return new HostError('missingCapability', {
      detail: `${what} is for clients that declare the extension ${this.id}${revision}`,
      data: { requiredCapabilities: { extensions: { [this.id]: {} } } },
    })
  }
}

export interface RouteParts {
  readonly settings: Record<string, JsonObject>
  readonly nameHeaders: Map<string, string>
  readonly listenFilters: Map<string, ListenFilter>
  readonly results: Set<string>
}

function faultOf({ id, extension }: ExtensionRegistration, parts: RouteParts): string | undefined {
  const { methods = {}, nameHeaders = {}, results = {}, listenFilters = {} } = extension
  const stray = Object.keys(nameHeaders).find(method => !Object.hasOwn(methods, method))
  const filter = Object.keys(listenFilters).find(name => LISTEN_FILTERS.has(name) || parts.listenFilters.has(name))
  const pairs = Object.entries(results).flatMap(([method, types]) => types.map(type => [method, type] as const))
  const taken = pairs.find(([method, type]) => RESULT_TYPES.has(type) || parts.results.has(`${method} ${type}`))
  if (!ID.test(id)) return 'the id must be a reversed domain name, a slash and a name, such as "com.example/tasks"'
  if (Object.hasOwn(parts.settings, id)) return 'it is already added to this route'
  if (stray !== undefined) return `nameHeaders names "${stray}", which is not one of its methods`
  if (filter !== undefined) return `the filter "${filter}" of subscriptions/listen is already used on this route`
  if (taken) return `the result "${taken[1]}" of ${taken[0]} is already used on this route`
  return undefined
}

export function createExtensions() {
  const owners = new Map<string, string>()
  const byRoute = new Map<object, RouteParts>()
  const resultMethods: Array<ExtensionRegistration & { readonly method: string }> = []

  const create = (): RouteParts => ({
    settings: {},
    nameHeaders: new Map(),
    listenFilters: new Map(),
    results: new Set(),
  })
  const on = (route: object) => getOrCreate(byRoute, route, create)

  return {
    on,
    resultMethods,
    add(registration: ExtensionRegistration) {
      const { plugin, id, extension, routes } = registration
      const owner = owners.get(id) ?? plugin
      const refuse = (fault: string) =>
        new StartError('MH1508', `plugins.${plugin}: extension "${id}": ${fault}`, { exitCode: 2 })
      if (owner !== plugin) throw refuse(`plugins.${owner} already adds an extension with this id`)
      owners.set(id, plugin)
      const known = new KnownExtension(registration)
      for (const method of Object.keys(extension.results ?? {})) resultMethods.push({ ...registration, method })
      for (const route of routes) {
        const fault = faultOf(registration, on(route))
        if (fault !== undefined) throw refuse(fault)
        addParts(known, extension, on(route))
      }
      return known
    },
  }
}

function addParts(known: KnownExtension, extension: Extension, parts: RouteParts) {
  const { settings = {}, nameHeaders = {}, results = {}, listenFilters = {} } = extension
  parts.settings[known.id] = settings
  for (const [method, parameter] of Object.entries(nameHeaders)) parts.nameHeaders.set(method, parameter)
  for (const [method, types] of Object.entries(results))
    for (const type of types) parts.results.add(`${method} ${type}`)
  for (const [name, filter] of Object.entries(listenFilters)) {
    parts.listenFilters.set(name, (wanted, call) => {
      known.requireExtension(call, `the filter "${name}" of subscriptions/listen`)
      return filter(wanted, call)
    })
  }
}
