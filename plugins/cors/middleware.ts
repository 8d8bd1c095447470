// The one CORS preset of MCP: what a page may send to an endpoint and read of its answers, in every revision.
import koaCors from '@koa/cors'
import type { HostContext, HostMiddleware } from '../../core/index.ts'

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

/** Headers that a tool's input schema names (2026-07-28 `x-mcp-header`): only the request knows which. */
const PARAMETER_HEADER = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]+$/i

function askedParameters(ctx: HostContext): string[] {
  const asked = ctx.get('Access-Control-Request-Headers').split(',')
  return asked.map(name => name.trim()).filter(name => PARAMETER_HEADER.test(name))
}

export interface CorsFacts {
  readonly any: boolean
  readonly allows: (origin: string) => boolean
  readonly credentials: boolean
  /** Seconds. */
  readonly maxAge: number
  /** Request headers in addition to those of MCP. */
  readonly headers: readonly string[]
}

/** Answers preflights of allowed origins; those of others get no CORS header and go on, to be refused. */
export function createCorsMiddleware({ any, allows, credentials, maxAge, headers }: CorsFacts): HostMiddleware {
  const allowHeaders = [...REQUEST_HEADERS, ...headers]
  const answer = koaCors({
    // An empty origin ends @koa/cors's part: nothing is set but `Vary`.
    origin: any ? '*' : ctx => (allows(ctx.get('Origin')) ? ctx.get('Origin') : ''),
    allowMethods: METHODS,
    allowHeaders,
    exposeHeaders: EXPOSED_HEADERS,
    credentials,
    maxAge: String(maxAge),
    // The host's own writer of errors keeps the headers that are set.
    keepHeadersOnError: false,
    // A page of a listed origin may reach a host on its visitor's own network; not every page of the web.
    privateNetworkAccess: !any,
  })
  return async (ctx, next) => {
    await answer(ctx, next)
    if (ctx.method !== 'OPTIONS' || ctx.response.get('Access-Control-Allow-Headers') === '') return
    ctx.set('Access-Control-Allow-Headers', [...allowHeaders, ...askedParameters(ctx)].join(','))
  }
}
