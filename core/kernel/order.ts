// The order of a request's steps for each kind of endpoint. The pipeline is compiled from this table.

/**
 * `R`: under a route. `P`: public. `F`: at a fixed path, also a mounted app. `N`: nothing is served. The path alone decides.
 */
export type EndpointKind = 'R' | 'P' | 'F' | 'N'

export const ORDER = [
  // Koa middleware of plugins, outermost: sees every final status.
  ['use', 'R P F N'],
  // The one writer of error answers, and the one place where their status is chosen.
  ['writeErrors', 'R P F N'],
  // Host and Origin, as proxies forward them: DNS rebinding, foreign pages. 403
  ['hostOrigin', 'R   F N'],
  // The route's CORS, or the endpoint's own; preflights end here.
  ['cors', 'R P F  '],
  // Plugins: limits per address, of what is refused behind them, too. 429
  ['edge', 'R     N'],
  // The declared length. 413
  ['length', 'R P F N'],
  // Nothing is served at this address. 404
  ['address', 'R P F N'],
  // Plugins: who calls. 401
  ['identify', 'R      '],
  // Plugins: may they use this route; limits per user. 401 403 429
  ['admit', 'R      '],
  // The body, by koa-body, where the endpoint asks for it: transports read theirs themselves. 400 413 415
  ['body', 'R P F  '],
  // The endpoint's methods, or the mounted app. 405
  ['verb', 'R P F  '],
] as const satisfies ReadonlyArray<readonly [string, string]>

export type Step = (typeof ORDER)[number][0]

export const stepsOf = (kind: EndpointKind): Step[] =>
  ORDER.filter(([, kinds]) => kinds.includes(kind)).map(([step]) => step)

export const HOOK_POINTS = ['use', 'edge', 'identify', 'admit'] as const satisfies readonly Step[]
export type HookPoint = (typeof HOOK_POINTS)[number]
