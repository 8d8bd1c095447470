// Named CORS policies for routes with `cors`. The headers of MCP are always allowed and exposed.
import koaCors from '@koa/cors'
import {
  type CrossOrigin,
  closed,
  definePlugin,
  didYouMean,
  duration,
  flag,
  type InternalHost,
  list,
  mapOf,
  words,
} from '../../core/internal.ts'
import { type HostContext, type HostMiddleware, type OptionsOf, parseDuration, StartError } from '../../core/plugin.ts'

const ANY = '*'
/** Matches origins. Browser extensions and apps have their own schemes. */
const ORIGIN_PATTERN = '^(\\*|[A-Za-z][A-Za-z0-9+.-]*://[^/?#@*\\s]+)$'

/** A token of HTTP (RFC 9110 section 5.6.2). */
const HEADER_PATTERN = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"

function canonicalOrigin(origin: string): string {
  const parsed = URL.canParse(origin) ? new URL(origin).origin : 'null'
  return parsed === 'null' ? origin.toLowerCase() : parsed
}

function compilePolicy(name: string, policy: FilledCorsOptions['policies'][string], host: InternalHost): CrossOrigin {
  const { origins, credentials, maxAge, headers = [] } = policy
  const at = [...host.config.at, 'policies', name]
  const allowsAny = origins.includes(ANY)
  if (allowsAny && origins.length > 1) {
    host.report(new StartError('MH2740', '"*" cannot be combined with other origins', { at: [...at, 'origins'] }))
  }
  if (allowsAny && credentials) {
    const why = 'credentials need a list of origins; with "*" any page could use them'
    host.report(new StartError('MH2741', why, { at: [...at, 'credentials'] }))
  }
  if (credentials && headers.includes(ANY)) {
    const why = 'with credentials, browsers read "*" as a literal header name; list the names'
    host.report(new StartError('MH2741', why, { at: [...at, 'headers'] }))
  }
  const allowed = new Set(origins.map(canonicalOrigin))
  const allows = (origin: string) => allowsAny || allowed.has(origin)
  return {
    allows,
    middleware: createCorsMiddleware({
      any: allowsAny,
      allows,
      credentials,
      maxAge: Math.floor(parseDuration(maxAge) / 1000),
      headers,
    }),
  }
}

const unknownPolicy = (path: string, name: string, known: Iterable<string>) =>
  new StartError('MH2742', `there is no policy "${name}"; ${didYouMean(name, known)}`, { at: ['routes', path, 'cors'] })

/** During a reload, problems were already reported. */
const throwError = (error: StartError): never => {
  throw error
}

function compilePolicies(
  { policies = {} }: FilledCorsOptions,
  host: InternalHost,
  report: (error: StartError) => void,
): Map<string, CrossOrigin> {
  const compiled = new Map(Object.entries(policies).map(([name, policy]) => [name, compilePolicy(name, policy, host)]))
  for (const { path, cors } of host.routes) {
    if (cors !== undefined && !compiled.has(cors)) report(unknownPolicy(path, cors, compiled.keys()))
  }
  return compiled
}

function warnOfUnused(compiled: ReadonlyMap<string, CrossOrigin>, host: InternalHost) {
  const used = new Set(host.routes.map(({ cors }) => cors))
  for (const name of compiled.keys()) {
    if (used.has(name)) continue
    const why = `no route uses this policy; set \`cors: '${name}'\` on a route`
    host.report(new StartError('MH2743', why, { at: [...host.config.at, 'policies', name] }), 'warning')
  }
}

function warnOfOpenRoutes(compiled: ReadonlyMap<string, CrossOrigin>, host: InternalHost) {
  for (const { path, cors, authorize } of host.routes) {
    if (cors === undefined || authorize !== undefined || !compiled.get(cors)?.allows('null')) continue
    const fix = `list the origins of plugins.${host.name}.policies.${cors}, or set authorize on the route`
    host.log.warn(
      { code: 'MH2744', route: path, fix },
      'any website can call this route from the browser of its visitors',
    )
  }
}

const OPTIONS = closed(
  {
    policies: mapOf(
      closed(
        {
          origins: list(
            words('An origin: scheme, host and port.', {
              pattern: ORIGIN_PATTERN,
              patternErrorMessage: "an origin such as 'https://app.acme.example', or only '*'",
            }),
            "Allowed origins: https://app.acme.example, vscode-webview://... '*' as the only entry allows any.",
            { minItems: 1, examples: [['https://app.acme.example']] },
          ),
          credentials: flag("Allows cookies. Not needed for bearer tokens, and not possible with '*'.", {
            default: false,
          }),
          headers: list(
            words('The name of a request header.', { pattern: HEADER_PATTERN }),
            'Additional request headers that pages can send, such as X-Tenant-Id.',
            { default: [], examples: [['X-Tenant-Id']] },
          ),
          maxAge: duration('Cache time of preflight responses in browsers.', { default: '10m' }),
        },
        { title: 'CorsPolicy', description: 'A CORS policy.', required: ['origins'] },
      ),
      'Policies by name. Routes select one with cors.',
      { examples: [{ browser: { origins: ['https://app.acme.example'] } }] },
    ),
  },
  { description: 'CORS policies for routes.', required: ['policies'] },
)

export interface CorsOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledCorsOptions extends OptionsOf<typeof OPTIONS, true> {}

export const cors = definePlugin<CorsOptions, FilledCorsOptions>({
  options: OPTIONS,
  provides: ['cors'],
  setup(host, options) {
    let compiled = compilePolicies(options, host, host.report)
    warnOfOpenRoutes(compiled, host)
    warnOfUnused(compiled, host)
    host.cors(({ cors }) => {
      if (cors === undefined) return undefined
      const policy = () => compiled.get(cors)
      return {
        allows: origin => policy()?.allows(origin) ?? false,
        middleware: (ctx, next) => policy()?.middleware(ctx, next),
      }
    })
    host.onReload<FilledCorsOptions>(changed => {
      const next = compilePolicies(changed, host, throwError)
      return () => {
        compiled = next
      }
    })
  },
})

const METHODS = ['GET', 'POST', 'DELETE', 'OPTIONS']
const REQUEST_HEADERS = [
  'Content-Type',
  'Accept',
  'Authorization',
  'DPoP',
  'Mcp-Session-Id',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Last-Event-ID',
  // W3C Trace Context and Baggage.
  'traceparent',
  'tracestate',
  'baggage',
]
const EXPOSED_HEADERS = [
  'Mcp-Session-Id',
  'WWW-Authenticate',
  'DPoP-Nonce',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'MCP-Protocol-Version',
]

const PARAMETER_HEADER = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]+$/i

function requestedParamHeaders(ctx: HostContext): string[] {
  const requested = ctx.get('Access-Control-Request-Headers').split(',')
  return requested.map(name => name.trim()).filter(name => PARAMETER_HEADER.test(name))
}

interface MiddlewareSettings {
  readonly any: boolean
  readonly allows: (origin: string) => boolean
  readonly credentials: boolean
  /** Seconds for which browsers cache a preflight. */
  readonly maxAge: number
  readonly headers: readonly string[]
}

/** Responds to preflights of allowed origins; others get no CORS headers. */
function createCorsMiddleware({ any, allows, credentials, maxAge, headers }: MiddlewareSettings): HostMiddleware {
  const allowHeaders = [...REQUEST_HEADERS, ...headers]
  const handle = koaCors({
    // With an empty origin, @koa/cors sets `Vary` only.
    origin: any ? '*' : ctx => (allows(ctx.get('Origin')) ? ctx.get('Origin') : ''),
    allowMethods: METHODS,
    allowHeaders,
    exposeHeaders: EXPOSED_HEADERS,
    credentials,
    maxAge: String(maxAge),
    // The error writer of the host keeps headers.
    keepHeadersOnError: false,
    // Pages of a listed origin can reach a host on a private network.
    privateNetworkAccess: !any,
  })
  return async (ctx, next) => {
    await handle(ctx, next)
    if (ctx.method !== 'OPTIONS' || ctx.response.get('Access-Control-Allow-Headers') === '') return
    ctx.set('Access-Control-Allow-Headers', [...allowHeaders, ...requestedParamHeaders(ctx)].join(','))
  }
}
