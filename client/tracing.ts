// Creates OpenTelemetry spans for requests, including requests to authorization servers. Spans contain no tokens or
// query strings.
import { AuthError } from './errors.ts'
import type { HttpResult, OAuthHttp } from './http.ts'
import type { ReplayableRequest } from './replay.ts'

interface ApiSpan {
  setAttribute(name: string, value: string | number): unknown
  setStatus(status: { code: number }): unknown
  end(): void
}

interface ApiContext {
  setValue(key: symbol, value: unknown): ApiContext
}

export interface OpenTelemetryApi {
  readonly trace: {
    getTracer(name: string): {
      startSpan(name: string, options: { kind: number; attributes: Record<string, string | number> }): ApiSpan
    }
    setSpan(context: ApiContext, span: ApiSpan): ApiContext
  }
  readonly context: {
    active(): ApiContext
    with<Result>(context: ApiContext, work: () => Result): Result
  }
  readonly propagation: { inject(context: ApiContext, carrier: object): void }
  readonly SpanKind: { readonly CLIENT: number }
  readonly SpanStatusCode: { readonly ERROR: number }
}

interface Tracing {
  request(request: ReplayableRequest, send: (traced: ReplayableRequest) => Promise<Response>): Promise<Response>
  http(http: OAuthHttp): OAuthHttp
}

const NOOP: Tracing = { request: (request, send) => send(request), http: base => base }

/** Prevents a second `traceparent` by an instrumentation of `fetch`. */
const SUPPRESSED = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING')

const errorType = (thrown: unknown): string => {
  if (AuthError.is(thrown)) return thrown.code
  return thrown instanceof Error ? thrown.name.slice(0, 64) : '_OTHER'
}

export function createTracing(api: OpenTelemetryApi | undefined): Tracing {
  if (!api) return NOOP
  const { trace, context, propagation, SpanKind, SpanStatusCode } = api
  const tracer = trace.getTracer('mcp-host/client')

  function startSpan(name: string, method: string, { protocol, hostname, port, origin, pathname }: URL) {
    const attributes = {
      'http.request.method': method,
      'server.address': hostname,
      'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
      'url.full': origin + pathname,
    }
    return tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes })
  }

  async function runInSpan<Answer extends { readonly status: number }>(
    span: ApiSpan,
    work: (active: ApiContext) => Promise<Answer>,
  ): Promise<Answer> {
    const fail = (type: string) => {
      span.setAttribute('error.type', type)
      span.setStatus({ code: SpanStatusCode.ERROR })
    }
    const active = trace.setSpan(context.active(), span)
    try {
      const answer = await context.with(active, () => work(active))
      span.setAttribute('http.response.status_code', answer.status)
      if (answer.status >= 400) fail(String(answer.status))
      return answer
    } catch (thrown) {
      fail(errorType(thrown))
      throw thrown
    } finally {
      span.end()
    }
  }

  const untraced = <Result>(work: () => Result): Result =>
    context.with(context.active().setValue(SUPPRESSED, true), work)

  const traced = (method: string, url: string, label: string, send: () => Promise<HttpResult>): Promise<HttpResult> => {
    if (!URL.canParse(url)) return send()
    return runInSpan(startSpan(`oauth ${label.replace(/^The /, '')}`, method, new URL(url)), () => untraced(send))
  }

  function injectHeaders(request: ReplayableRequest, active: ApiContext): ReplayableRequest {
    const carrier: Record<string, string> = {}
    propagation.inject(active, carrier)
    // Baggage belongs to the calling program.
    delete carrier['baggage']
    const added = Object.entries(carrier)
    const isPresent = added.some(([name]) => request.headers.has(name))
    return {
      ...request,
      send(fetcher, headers) {
        for (const [name, value] of isPresent ? [] : added) headers.set(name, value)
        return untraced(() => request.send(fetcher, headers))
      },
    }
  }

  return {
    request: (request, send) =>
      runInSpan(startSpan(request.method, request.method, request.url), active => send(injectHeaders(request, active))),
    http: base => ({
      ...base,
      getJson: (url, about) => traced('GET', url, about.label, () => base.getJson(url, about)),
      post: (url, about) => traced('POST', url, about.label, () => base.post(url, about)),
    }),
  }
}
