// A traced host in its own process, because the OpenTelemetry API uses process globals. The parent preloads an SDK. It sends
// `{ url, log }` when it listens, closes on any message, and then sends `{ log, records }`.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { context, propagation, trace } from '@opentelemetry/api'
import { createHost } from '../../core/create-host.ts'
import { definePrompt, defineResource, defineTool, HostError, ToolError } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import { createTestLog } from '../../core/testing/test-log.ts'

/** As an instrumentation of `fetch` does. */
const FETCHES = 'undici:request:create'
function instrument(message: unknown) {
  const { request } = message as { readonly request: { addHeader(name: string, value: string): void } }
  const headers: Record<string, string> = {}
  propagation.inject(context.active(), headers)
  for (const [name, value] of Object.entries(headers)) request.addHeader(name, value)
}

const text = { type: 'object', properties: { text: { type: 'string' }, url: { type: 'string' } } } as const

const toolset = [
  defineTool({ name: 'say', input: text, handler: () => 'said' }),
  defineTool({
    name: 'fail',
    handler() {
      throw new ToolError('no luck')
    },
  }),
  defineTool({
    name: 'break',
    handler() {
      throw new Error('a bug')
    },
  }),
  defineTool({
    name: 'wait',
    input: text,
    async handler({ url = '' }, ctx) {
      await ctx.fetch(url)
      await new Promise((_, reject) => ctx.signal.addEventListener('abort', reject))
    },
  }),
  defineTool({
    name: 'nest',
    input: text,
    handler: ({ url = '' }, ctx) =>
      trace.getTracer('of the tool').startActiveSpan('inner', async span => {
        await ctx.fetch(url, { headers: { 'x-own': 'yes' } })
        await ctx.fetch(new Request(url, { headers: { traceparent: 'of the handler' } }))
        subscribe(FETCHES, instrument)
        await ctx.fetch(url)
        unsubscribe(FETCHES, instrument)
        span.end()
        return propagation.getBaggage(context.active())?.getEntry('who')?.value ?? 'nobody'
      }),
  }),
  definePrompt({ name: 'greet', handler: () => 'hello' }),
  defineResource({ uriTemplate: 'note://{id}', name: 'note', handler: ({ id }) => `note ${id}` }),
]

/** Replaces an instrumentation of HTTP. */
const http = definePlugin({
  setup(host) {
    host.use((_, next) =>
      trace.getTracer('of http').startActiveSpan('POST /http', async span => {
        await next()
        span.end()
      }),
    )
  },
})

const refuse = definePlugin({
  setup(host) {
    host.onCall((call, next) => {
      // As plugins with upstream servers do.
      if (call.id === 'relayed') call.notes.upstream = { name: 'files', tool: 'read', milliseconds: 1.5 }
      if (call.params['name'] !== 'forbidden') return next()
      throw new HostError('forbidden', { detail: 'a detail with words of the client' })
    })
  },
})

const records: object[] = []
const watch = definePlugin({
  setup: host =>
    host.onFinish(({ call, requestId, traceId }) => void records.push({ id: call?.id, requestId, traceId })),
})
const log = createTestLog()
const host = await createHost(
  {
    server: { name: 'traced', version: '1.0.0' },
    http: { port: 0 },
    secrets: ['a secret for tests, long enough to be one'],
    toolsets: { all: toolset },
    routes: {
      '/mcp': { toolsets: 'all', plugins: { http: false } },
      '/http': { toolsets: 'all' },
      '/baggage': { toolsets: 'all', plugins: { http: false, tracing: { baggage: true } } },
      '/quiet': { toolsets: 'all', plugins: { http: false, tracing: false } },
    },
    // Last in the list; its span must be the outermost regardless of order.
    plugins: { 'transport-streamable': {}, http: http(), refuse: refuse(), watch: watch(), tracing: {} },
  },
  { log },
)
process.once('disconnect', () => process.exit(1))
process.once('message', async () => {
  await host.close({ grace: 1_000 })
  process.send?.({ log: log.lines, records }, () => process.exit(0))
})
await host.listen()
process.send?.({ url: host.url, log: log.lines })
