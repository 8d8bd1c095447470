// An endpoint of a plugin, and the context of its handlers.
import type Koa from 'koa'
import type { Middleware, ParameterizedContext } from 'koa'
import type { HostError } from '../http/errors.ts'
import type { Route } from './route.ts'
import type { User } from './user.ts'

/** `ctx.state`; each field has one writer. */
export interface RequestState {
  /** The canonical path without a trailing slash; `ctx.path` is the same. Undefined if the request target has none. */
  path?: string | undefined
  /** Every requested host, also of trusted proxies; undefined for a missing header. */
  hosts: ReadonlyArray<string | undefined>
  /** Undefined at a fixed path. */
  route?: Route
  params: Readonly<Record<string, string>>
  /** Set by the auth plugin. */
  user?: User
  /** The error of the response, for observers. */
  refusal?: HostError
  /** Set by transports: observers get records of the request's messages, and none of the HTTP request. */
  hasRecords?: true
}

/** The Koa context that handlers and middleware are given. */
export type HostContext = ParameterizedContext<RequestState> & {
  /** Parsed if the endpoint declares `body`. */
  readonly request: { readonly body?: unknown }
}
/** Koa middleware of this host. */
export type HostMiddleware = Middleware<RequestState>

type Handler = (ctx: HostContext) => void | Promise<void>

/** Access for pages of other origins. */
export interface CrossOrigin {
  /** Further origins that the host's guard allows on this route. */
  allows(origin: string): boolean
  /** Responds to preflights and sets headers before any other step, so that errors have them, too. */
  readonly middleware: HostMiddleware
}

/** JSON, form fields (`application/x-www-form-urlencoded`) or text. */
export type BodyKind = 'json' | 'form' | 'text'

/** A path that a plugin serves; other methods get 405. */
export interface Endpoint {
  /** HEAD must be listed, because a GET can be a stream. */
  readonly methods: Readonly<Partial<Record<'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE', Handler>>>
  /** Served without Host and Origin guard, CORS, authentication and `authorize`. */
  readonly public?: boolean
  /** CORS of the endpoint, in place of its route's. */
  readonly cors?: HostMiddleware
  /**
   * Reads the body of POST and PUT into `ctx.request.body`, up to `http.maxBodySize`: a JSON object or list, form fields
   * (strings, or lists of them) or text. Errors: 400, 413, 415. Transports read `ctx.req` themselves.
   */
  readonly body?: BodyKind
  /**
   * Responds to browsers (GET or HEAD that accepts `text/html` and no event stream) in place of 405, 406 and a missing session
   * id, with status 200, and with 401. It sets `ctx.body` and must not reveal anything to anonymous callers.
   */
  readonly page?: (ctx: HostContext) => void
}

/** A Koa application or middleware for a fixed path. */
export type MountedApp = Koa | HostMiddleware
/** See Endpoint. */
export type MountSettings = Pick<Endpoint, 'public' | 'cors'>

/** Where an endpoint is served, besides its path. */
export interface EndpointPlace {
  /** The path ends with this route's path: `ctx.state` has its parameters, and invalid ones get 404. */
  readonly route?: Route
  /** Served if nothing else has the path. */
  readonly fallback?: boolean
}
