// The order of a request's steps for each kind of endpoint. The pipeline is compiled from this table.

/** `R`: under a route. `P`: public. `F`: fixed path or mounted app. `N`: not found. Determined by the path. */
export type EndpointKind = 'R' | 'P' | 'F' | 'N'

export const ORDER = [
  // Koa middleware of plugins, which sees the final status.
  ['use', 'R P F N'],
  // Writes all error responses and sets their HTTP status.
  ['writeErrors', 'R P F N'],
  // Host and Origin guard (DNS rebinding). 403
  ['hostOrigin', 'R   F N'],
  // CORS of the route or endpoint; handles preflights.
  ['cors', 'R P F  '],
  // Plugins: limits per IP address, including requests that are refused later. 429
  ['onRequest', 'R     N'],
  // Content-Length. 413
  ['length', 'R P F N'],
  // No such path. 404
  ['address', 'R P F N'],
  // Plugins: authentication. 401
  ['authenticate', 'R      '],
  // Plugins: route authorization and limits per user. 401 403 429
  ['authorize', 'R      '],
  // Body parsing by koa-body; transports read bodies themselves. 400 413 415
  ['body', 'R P F  '],
  // The endpoint's methods, or the mounted app. 405
  ['verb', 'R P F  '],
] as const satisfies ReadonlyArray<readonly [string, string]>

export type Step = (typeof ORDER)[number][0]

export const stepsOf = (kind: EndpointKind): Step[] =>
  ORDER.filter(([, kinds]) => kinds.includes(kind)).map(([step]) => step)

export const HOOK_POINTS = ['use', 'onRequest', 'authorize'] as const satisfies readonly Step[]
export type HookPoint = (typeof HOOK_POINTS)[number]
