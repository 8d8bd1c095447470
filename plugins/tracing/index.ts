// The plugin `tracing`: an OpenTelemetry span per call, exported by the operator's SDK.
import { channel } from 'node:diagnostics_channel'
import type { Tracer } from '@opentelemetry/api'
import { closed, definePlugin, flag } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { withTimeout } from '../../core/transport.ts'
import { createCallSpans } from './call-spans.ts'
import { loadApi, type OpenTelemetry } from './load-api.ts'
import { createFailureReporter } from './report-failures.ts'

const NAME = 'mcp-host'

/** Timeout of the flush at shutdown, milliseconds. */
const MAX_FLUSH = 5_000

/** Describes the registered SDK, as far as the API exposes it. */
function createSdk({ trace }: OpenTelemetry) {
  /** A placeholder until an SDK is registered. */
  interface Proxy {
    getDelegate(): object
    getDelegateTracer(name: string): Tracer | undefined
  }
  const proxy = (): Proxy | undefined => {
    const provider: object = trace.getTracerProvider()
    return 'getDelegateTracer' in provider ? (provider as Proxy) : undefined
  }
  let tracer: Tracer | undefined
  return {
    tracer() {
      const found = proxy()
      tracer ??= found ? found.getDelegateTracer(NAME) : trace.getTracer(NAME)
      return tracer
    },
    async flush() {
      const provider: { forceFlush?(): Promise<void> } = proxy()?.getDelegate() ?? trace.getTracerProvider()
      if (provider.forceFlush) await withTimeout(provider.forceFlush(), MAX_FLUSH, () => undefined)
    },
  }
}

const FAILURES = Symbol('a failed operation of OpenTelemetry')

/** Instrumentations of `fetch` use it to add headers to requests. */
const fetches = channel('undici:request:create')

const OPTIONS = closed(
  {
    baggage: flag('Passes the `baggage` of the caller on to tools and to the services that they call.', {
      default: false,
    }),
  },
  { description: 'One OpenTelemetry span per call.' },
)

export interface TracingOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledTracingOptions extends OptionsOf<typeof OPTIONS, true> {}

export const tracing = definePlugin<TracingOptions, FilledTracingOptions>({
  options: OPTIONS,
  setup(host, { baggage }) {
    const api = loadApi(host.config.directory)
    const { context, propagation } = api
    const sdk = createSdk(api)
    // Registered first, so that it closes last.
    const failures = host.share(
      FAILURES,
      () => createFailureReporter(api, host.log),
      reporter => reporter.end(),
    )
    const spans = createCallSpans(api, sdk.tracer, { log: host.log, baggage })
    host.provide('tracer', {
      run(start, answer) {
        const spanContext = spans.startSpan(start)
        return spanContext ? context.with(spanContext, answer, undefined, start) : answer(start)
      },
      headersFor() {
        const headers: Record<string, string> = {}
        if (!fetches.hasSubscribers) propagation.inject(context.active(), headers)
        // The program's own baggage must not reach services that a tool calls.
        if (!baggage) delete headers['baggage']
        return headers
      },
      traceIdOf: spans.traceIdOf,
    })
    host.onFinish(spans.end)
    host.onStart(() => {
      if (host.config.purpose === 'inspect') return
      failures.start()
      if (sdk.tracer()) return
      const fix =
        'start an SDK before the host, such as with node --import ./start-tracing.mjs: docs/plugins/tracing.md'
      host.log.info({ code: 'MH2621', fix }, 'No OpenTelemetry SDK is registered: spans are discarded')
    })
    host.onClose(sdk.flush)
  },
})
