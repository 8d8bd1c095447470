// Types of plugin endpoints and their handler context.
import type Koa from 'koa'
import type { Middleware, ParameterizedContext } from 'koa'
import type { HostError } from '../http/errors.ts'
import type { Route } from './route.ts'
import type { User } from './user.ts'

export type Stage = 'guard' | 'authenticate' | 'authorize' | 'receive' | 'check' | 'queue' | 'handler' | 'respond'

/** Measures one request. Exists only while an observer creates it. A stage ends when the next one begins. */
export interface Timeline {
  mark(stage: Stage): void
  /** For one message of several in a request. */
  fork(): Timeline
  end(): void
}

/** The type of `ctx.state`; each field has one writer. */
export interface RequestState {
  /** The canonical path, same as `ctx.path`. Undefined if the request target contains no path. */
  path?: string | undefined
  /** Requested hosts, including forwarded ones of trusted proxies; undefined for a missing header. */
  hosts: ReadonlyArray<string | undefined>
  route?: Route
  params: Readonly<Record<string, string>>
  /** Set by the first authentication plugin that recognises the credentials. */
  user?: User
  /** Set for credentials that no authentication plugin has recognised. Creates the error for this case. */
  unrecognised?: () => HostError
  mounted?: Koa
  /** The error that was logged. Koa reports a broken connection twice. */
  reported?: unknown
  /** The error of the response, as observers receive it. */
  refusal?: HostError
  /** Set by transports: observers then receive message records and no record of the HTTP request. */
  hasRecords?: true
  timeline?: Timeline | undefined
}

/** The Koa context of handlers and middleware. */
export type HostContext = ParameterizedContext<RequestState> & {
  /** Parsed if the endpoint declares `body`. */
  readonly request: { readonly body?: unknown }
}
/** Koa middleware of this host. */
export type HostMiddleware = Middleware<RequestState>

type Handler = (ctx: HostContext) => void | Promise<void>

/** CORS handling of a route. */
export interface CrossOrigin {
  /** Additional origins that the host's guard allows on this route. */
  allows(origin: string): boolean
  /** Handles preflights and sets headers before all other steps, so that error responses also have them. */
  readonly middleware: HostMiddleware
}

export type BodyKind = 'json' | 'form' | 'text'

/** A path that a plugin serves. Other methods get 405. */
export interface Endpoint {
  /** HEAD must be listed, because a GET response can be a stream. */
  readonly methods: Readonly<Partial<Record<'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE', Handler>>>
  /** Skips the Host and Origin guard, CORS, authentication and `authorize`. */
  readonly public?: boolean
  /** Replaces the CORS policy of the route. */
  readonly cors?: HostMiddleware
  /**
   * Parses the body of POST and PUT into `ctx.request.body`, up to `http.maxBodySize`. Errors: 400, 413, 415. Transports read
   * `ctx.req` themselves.
   */
  readonly body?: BodyKind
  /**
   * Responds to browsers in place of 401, 405, 406 and a missing session id. The status is 200, except for 401. It sets
   * `ctx.body` and must not reveal anything to anonymous callers. Browsers at `/` without a route are redirected to it.
   */
  readonly page?: Handler
}

export type MountedApp = Koa | HostMiddleware
export type MountSettings = Pick<Endpoint, 'public' | 'cors'>

export interface EndpointSettings {
  /** Set if the path ends with this route's path. `ctx.state` then has its parameters; invalid ones get 404. */
  readonly route?: Route
  /** Used only if the path is free. */
  readonly fallback?: boolean
}
