// Creates OpenTelemetry spans for requests, including requests to authorization servers. Spans contain no tokens or
// query strings.
import { AuthError } from './errors.ts'
import type { HttpAnswer, OAuthHttp } from './http.ts'
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
  request(request: ReplayableRequest, send: (carrying: ReplayableRequest) => Promise<Response>): Promise<Response>
  http(plain: OAuthHttp): OAuthHttp
}

const PLAIN: Tracing = { request: (request, send) => send(request), http: plain => plain }

/** Prevents a second `traceparent` by an instrumentation of `fetch`. */
const SUPPRESSED = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING')

const nameOf = (thrown: unknown): string => {
  if (AuthError.is(thrown)) return thrown.code
  return thrown instanceof Error ? thrown.name.slice(0, 64) : '_OTHER'
}

export function createTracing(api: OpenTelemetryApi | undefined): Tracing {
  if (!api) return PLAIN
  const { trace, context, propagation, SpanKind, SpanStatusCode } = api
  const tracer = trace.getTracer('mcp-host/client')

  function begin(name: string, method: string, { protocol, hostname, port, origin, pathname }: URL) {
    const attributes = {
      'http.request.method': method,
      'server.address': hostname,
      'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
      'url.full': origin + pathname,
    }
    return tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes })
  }

  async function within<Answer extends { readonly status: number }>(
    span: ApiSpan,
    work: (place: ApiContext) => Promise<Answer>,
  ): Promise<Answer> {
    const fail = (type: string) => {
      span.setAttribute('error.type', type)
      span.setStatus({ code: SpanStatusCode.ERROR })
    }
    const place = trace.setSpan(context.active(), span)
    try {
      const answer = await context.with(place, () => work(place))
      span.setAttribute('http.response.status_code', answer.status)
      if (answer.status >= 400) fail(String(answer.status))
      return answer
    } catch (thrown) {
      fail(nameOf(thrown))
      throw thrown
    } finally {
      span.end()
    }
  }

  const silently = <Result>(work: () => Result): Result =>
    context.with(context.active().setValue(SUPPRESSED, true), work)

  const step = (method: string, url: string, what: string, ask: () => Promise<HttpAnswer>): Promise<HttpAnswer> => {
    if (!URL.canParse(url)) return ask()
    return within(begin(`oauth ${what.replace(/^The /, '')}`, method, new URL(url)), () => silently(ask))
  }

  function carry(request: ReplayableRequest, place: ApiContext): ReplayableRequest {
    const carried: Record<string, string> = {}
    propagation.inject(place, carried)
    // Baggage belongs to the calling program.
    delete carried['baggage']
    const added = Object.entries(carried)
    const isNamed = added.some(([name]) => request.headers.has(name))
    return {
      ...request,
      send(fetcher, headers) {
        for (const [name, value] of isNamed ? [] : added) headers.set(name, value)
        return silently(() => request.send(fetcher, headers))
      },
    }
  }

  return {
    request: (request, send) =>
      within(begin(request.method, request.method, request.url), place => send(carry(request, place))),
    http: plain => ({
      ...plain,
      getJson: (url, about) => step('GET', url, about.what, () => plain.getJson(url, about)),
      post: (url, about) => step('POST', url, about.what, () => plain.post(url, about)),
    }),
  }
}
