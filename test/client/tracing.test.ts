// Tests the tracing spans of `createAuthFetch` and that they contain no secret.

import type { Span } from '@opentelemetry/api'
import * as api from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'
import { expect } from 'chai'
import { type ClientOAuthOptions, createAuthFetch } from '../../client/index.ts'
import { startOtlpReceiver } from '../support/otlp-receiver.ts'
import { authErrorOf } from './support/auth-error-of.ts'
import { startFakeServers, stopServers } from './support/fake-servers.ts'
import { startClient } from './support/start-client.ts'

afterEach(stopServers)

const [CLIENT, ERROR] = [3, 2]

/** As a program starts an SDK; ended again after each test. */
async function startTraced() {
  const receiver = await startOtlpReceiver()
  const exporter = new OTLPTraceExporter({ url: `${receiver.url}/v1/traces` })
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  provider.register()
  /** As a program with a span of its own. */
  async function within(work: () => Promise<unknown>): Promise<Span> {
    const span = api.trace.getTracer('program').startSpan('program')
    const baggage = api.propagation.createBaggage({ note: { value: 'of-the-program' } })
    await api.context.with(api.propagation.setBaggage(api.trace.setSpan(api.context.active(), span), baggage), work)
    span.end()
    return span
  }
  /** What was sent. */
  async function received() {
    await provider.shutdown()
    receiver.close()
    return receiver
  }
  return { within, received }
}

// They are the whole process's.
afterEach(() => {
  for (const part of [api.trace, api.context, api.propagation]) part.disable()
})

describe('Spans of createAuthFetch', () => {
  it('one per request, with the login steps as children and without secrets', async () => {
    const fake = await startFakeServers()
    const traced = await startTraced()
    const { authFetch, post } = startClient(fake, { openTelemetry: api })
    const span = await traced.within(() => post('/mcp?key=of-the-query'))
    await post()
    const token = await authFetch.session.token()
    const { spans, bodies } = await traced.received()

    const [first, second] = spans.filter(({ name }) => name === 'POST')
    expect(first).to.include({ kind: CLIENT, ...idsOf(span) })
    const { port } = new URL(fake.serverUrl)
    expect(first?.attributes).to.deep.equal({
      'http.request.method': 'POST',
      'server.address': new URL(fake.serverUrl).hostname,
      'server.port': Number(port),
      'url.full': fake.serverUrl,
      'http.response.status_code': 200,
    })
    const steps = spans.filter(({ parentSpanId }) => parentSpanId === first?.spanId)
    expect(steps.map(({ name }) => name)).to.include.members([
      'oauth resource metadata',
      'oauth authorization server metadata',
      'oauth registration endpoint',
      'oauth token endpoint',
    ])
    expect(new Set(steps.map(({ kind }) => kind))).to.deep.equal(new Set([CLIENT]))
    expect(second?.parentSpanId).to.equal(undefined)

    const told = bodies.join('\n')
    for (const secret of [...fake.secrets(), token ?? '', 'of-the-query']) expect(told).not.to.include(secret)
    const sent = fake.rs.requests.filter(({ path }) => path === '/mcp').map(({ headers }) => headers)
    const carried = spans
      .filter(({ name }) => name === 'POST')
      .map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`)
    // Refused, then let in; then at once.
    expect(sent.map(({ traceparent }) => traceparent)).to.deep.equal([carried[0], carried[0], carried[1]])
    expect(sent.filter(({ baggage }) => baggage !== undefined)).to.deep.equal([])
    expect(fake.as.requests.filter(({ headers }) => headers['traceparent'] !== undefined)).to.deep.equal([])
  })

  it('failures are errors, with the error code or status', async () => {
    const fake = await startFakeServers()
    const traced = await startTraced()
    const { post } = startClient(fake, { openTelemetry: api, interactive: 'never' })
    const { code } = await authErrorOf(() => post())
    const { spans } = await traced.received()
    const failed = spans.find(({ name }) => name === 'POST')
    expect(failed?.status.code).to.equal(ERROR)
    expect(failed?.attributes['error.type']).to.equal(code)
  })

  it('keep a traceparent of the caller, and suppress that of fetch instrumentation', async () => {
    const fake = await startFakeServers()
    const traced = await startTraced()
    const instrumented: typeof fetch = async (input, init) => {
      api.trace.getTracer('instrumentation').startSpan('of fetch').end()
      return fetch(input, init)
    }
    const { post } = startClient(fake, { openTelemetry: api, fetch: instrumented })
    await post(undefined, { headers: { traceparent: 'of the caller' } })
    const { spans } = await traced.received()
    const sent = fake.rs.requests.filter(({ path }) => path === '/mcp')
    expect(new Set(sent.map(({ headers }) => headers['traceparent']))).to.deep.equal(new Set(['of the caller']))
    expect(spans.filter(({ name }) => name === 'of fetch')).to.deep.equal([])
  })

  it('an invalid tracing API is rejected at construction', () => {
    const options = { serverUrl: 'https://example.com', interactive: 'never', openTelemetry: api.trace } as object
    expect(() => createAuthFetch(options as ClientOAuthOptions)).to.throw(/openTelemetry is .*@opentelemetry\/api/s)
  })
})

const idsOf = (span: Span) => ({ traceId: span.spanContext().traceId, parentSpanId: span.spanContext().spanId })
