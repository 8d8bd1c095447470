// An address that a plugin serves, and what its handlers and middleware are given of a request.
import type Koa from 'koa'
import type { Middleware, ParameterizedContext } from 'koa'
import type { HostError } from '../http/errors.ts'
import type { Route } from './route.ts'
import type { User } from './user.ts'

/** What the pipeline keeps in `ctx.state`; each field has one writer. */
export interface RequestState {
  /**
   * Written by the host before its match: the path in its one spelling, without a slash at its end. Everything is looked
   * up by it, and `ctx.path` says the same. Undefined only where the request names no path, and so nothing is served.
   */
  path?: string | undefined
  /** Every host that the request names, as trusted proxies forward it; undefined stands for a header that is not there. */
  hosts: ReadonlyArray<string | undefined>
  /** Written by the host before the first step, as `path` and `params` are; none at a fixed path. */
  route?: Route
  params: Readonly<Record<string, string>>
  /** Written by the plugin that identifies. */
  user?: User
  /** Written by whoever answers with an error of the host's: what observers are told of a request that became no Call. */
  refusal?: HostError
  /** Set by transports: observers get records of the request's messages, and none of the HTTP request. */
  hasRecords?: true
}

/** The Koa context that handlers and middleware are given. */
export type HostContext = ParameterizedContext<RequestState> & {
  /** Parsed, where the endpoint asks for its `body`. */
  readonly request: { readonly body?: unknown }
}
/** Koa middleware of this host. */
export type HostMiddleware = Middleware<RequestState>

type Handler = (ctx: HostContext) => void | Promise<void>

/** Which pages of other origins may use a route, and what tells their browsers so. */
export interface CrossOrigin {
  /** True for an Origin that the host's guard lets through on this route, beside those it knows. */
  allows(origin: string): boolean
  /** Answers preflights, and sets its headers before anything can refuse: every answer carries them, errors too. */
  readonly middleware: HostMiddleware
}

/** How an endpoint wants its body: parsed JSON, the fields of a form (`application/x-www-form-urlencoded`), or text. */
export type BodyKind = 'json' | 'form' | 'text'

/** An address served by a plugin; other verbs answer 405 with `Allow`. */
export interface Endpoint {
  /** HEAD is served where it is named, as a GET may be a stream; of what its handler answers the body stays away. */
  readonly methods: Readonly<Partial<Record<'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE', Handler>>>
  /** Served to anyone: outside Host and Origin guard, CORS, authentication and `authorize`. */
  readonly public?: boolean
  /** The endpoint's own CORS in the place of its route's: acts before everything but the guard. */
  readonly cors?: HostMiddleware
  /**
   * What a POST or PUT brings, read into `ctx.request.body`, at most `http.maxBodySize` of it: JSON (an object or a list),
   * the fields of a form (each a string, or a list of them where a name occurs again), or text. Refused with 413, 415 for
   * another Content-Type, and 400. Not for those who read `ctx.req` themselves, as transports do.
   */
  readonly body?: BodyKind
  /**
   * Answers a person who opens the address in a browser: a GET or HEAD that accepts `text/html` by name and no event stream.
   * In the place of 405, 406 and a missing session id, with the status 200, and of the body of 401, which keeps its status
   * and challenge. It sets `ctx.body`, and tells nothing that a caller without a token may not know.
   */
  readonly page?: (ctx: HostContext) => void
}

/** A Koa application, or middleware, to be served at a fixed path. */
export type MountedApp = Koa | HostMiddleware
/** As those of an endpoint. */
export type MountSettings = Pick<Endpoint, 'public' | 'cors'>

/** Where else an endpoint stands, beside its path. */
export interface EndpointPlace {
  /** The path ends as this route's does: `ctx.state` gets its parameters, and one that names nothing answers 404. */
  readonly route?: Route
  /** Served only where nothing else has the path; of several fallbacks the first. */
  readonly fallback?: boolean
}
