// The order of a request, as a table: a row a step, a column a kind of endpoint. The pipeline (core/kernel/pipeline.ts)
// compiles what acts at each endpoint from it: a cell changed here changes what happens, and it is decided nowhere else.

/**
 * `R`: under a route. `P`: public, under a route or not. `F`: at a fixed path, a mounted app too. `N`: nothing is served
 * there. Which one it is comes from the path alone, looked up before the first step; the look-up refuses nothing.
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

/** The steps of an endpoint, in their order. */
export const stepsOf = (kind: EndpointKind): Step[] =>
  ORDER.filter(([, kinds]) => kinds.includes(kind)).map(([step]) => step)

/** The steps that are plugins' middleware. */
export const HOOK_POINTS = ['use', 'edge', 'identify', 'admit'] as const satisfies readonly Step[]
export type HookPoint = (typeof HOOK_POINTS)[number]
