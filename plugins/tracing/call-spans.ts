// Call spans by the MCP conventions of OpenTelemetry, without client data except ids.
import { isIP } from 'node:net'
import type { Attributes, Context, Link, Span, TextMapGetter, Tracer } from '@opentelemetry/api'
import type { InternalHost } from '../../core/internal.ts'
import type { Call, CallRecord } from '../../core/plugin.ts'
import { plainText } from '../../core/transport.ts'
import type { OpenTelemetry } from './load-api.ts'

type CallStart = Omit<
  CallRecord,
  'call' | 'outcome' | 'error' | 'refusedBy' | 'milliseconds' | 'http' | 'bytesOut' | 'asked' | 'upstream'
> & {
  readonly call: Call
}

interface CallSpans {
  /** Returns the context with the call's span; undefined without an SDK. */
  startSpan(start: CallStart): Context | undefined
  end(record: CallRecord): void
  /** Returns the trace id, also for spans that are not sampled. */
  traceIdOf(call: Call): string | undefined
}

/** Maximum characters of a context value (W3C Baggage). */
const MAX_VALUE = 8_192

/** Reads propagation fields from untrusted data. */
const FIELD_GETTER: TextMapGetter<object> = {
  get(carrier, key) {
    const value: unknown = Object.hasOwn(carrier, key) ? Reflect.get(carrier, key) : undefined
    return typeof value === 'string' && value.length <= MAX_VALUE ? value : undefined
  },
  keys: carrier => Object.keys(carrier),
}

const spanName = ({ method = '_OTHER', item }: CallStart): string =>
  item === undefined || item.kind === 'resources' ? method : `${method} ${item.name}`

function startAttributes({ method = '_OTHER', item, revision, route, ip }: CallStart): Attributes {
  const isNetwork = isIP(ip) !== 0
  return {
    'mcp.method.name': method,
    'mcp.protocol.version': revision,
    'gen_ai.operation.name': method === 'tools/call' ? 'execute_tool' : undefined,
    'gen_ai.tool.name': item?.kind === 'tools' ? item.name : undefined,
    'gen_ai.prompt.name': item?.kind === 'prompts' ? item.name : undefined,
    'mcp.resource.uri': item?.kind === 'resources' ? item.name : undefined,
    'network.transport': isNetwork ? 'tcp' : 'pipe',
    'network.protocol.name': isNetwork ? 'http' : undefined,
    'mcp_host.route': route,
  }
}

const MAX_ID = 64

/** Returns more expensive attributes, for sampled spans only. */
const idAttributes = ({ session, requestId, call: { id } }: CallStart): Attributes => ({
  'mcp.session.id': session,
  'mcp_host.request_id': requestId,
  'jsonrpc.request.id': id === undefined ? undefined : plainText(String(id), MAX_ID),
})

function endAttributes({ outcome, error, refusedBy, upstream }: CallRecord): Attributes {
  const code = error && String(error.code)
  const isFailed = error !== undefined && (error.code === -32603 || (error.code >= -32099 && error.code <= -32000))
  return {
    'error.type': outcome === 'tool_error' ? outcome : isFailed ? code : undefined,
    'rpc.response.status_code': code,
    'mcp_host.outcome': outcome,
    'mcp_host.error': error?.kind,
    'mcp_host.refused_by': refusedBy,
    'mcp_host.upstream': upstream?.name,
    'mcp_host.upstream_tool': upstream?.tool,
    'mcp_host.upstream_ms': upstream?.milliseconds,
  }
}

function createParents({ trace, propagation, context, isSpanContextValid }: OpenTelemetry, baggage: boolean) {
  const validSpan = (place: Context) => {
    const found = trace.getSpanContext(place)
    return found && isSpanContextValid(found) ? found : undefined
  }

  /** Returns the active HTTP span, otherwise the context in the request headers. */
  function transportContext(call: Call): Context {
    const active = context.active()
    return validSpan(active) ? active : propagation.extract(active, call.headers, FIELD_GETTER)
  }

  /** Returns the parent: the context in the message (SEP-414), because an HTTP request can contain several messages. */
  function findParent(call: Call): { readonly parent: Context; readonly links: Link[] } {
    const transport = transportContext(call)
    const message = propagation.extract(trace.deleteSpan(transport), call.meta, FIELD_GETTER)
    const outer = validSpan(transport)
    const caller = validSpan(message)
    const outerSpan = trace.getSpan(transport)
    if (!caller) return { parent: outer && outerSpan ? trace.setSpan(message, outerSpan) : message, links: [] }
    const isSame = outer?.spanId === caller.spanId && outer.traceId === caller.traceId
    return { parent: message, links: outer && !isSame ? [{ context: outer }] : [] }
  }

  /** Removes baggage of the caller, which must not reach services that a tool calls. */
  const withoutBaggage = (place: Context) =>
    baggage || propagation.getBaggage(place) === undefined ? place : propagation.deleteBaggage(place)

  return { placeOf: findParent, withoutBaggage }
}

export function createCallSpans(
  api: OpenTelemetry,
  getTracer: () => Tracer | undefined,
  { log, baggage }: Pick<InternalHost, 'log'> & { readonly baggage: boolean },
): CallSpans {
  const { trace, isSpanContextValid, SpanKind, SpanStatusCode } = api
  const spans = new WeakMap<Call, Span>()
  let failing = false

  const { placeOf, withoutBaggage } = createParents(api, baggage)

  function createSpan(start: CallStart, tracer: Tracer): Context {
    const { parent: place, links } = placeOf(start.call)
    const parent = withoutBaggage(place)
    const options = { kind: SpanKind.SERVER, startTime: start.at, attributes: startAttributes(start), links }
    const span = tracer.startSpan(spanName(start), options, parent)
    if (span.isRecording()) span.setAttributes(idAttributes(start))
    spans.set(start.call, span)
    return trace.setSpan(parent, span)
  }

  return {
    startSpan(start) {
      const tracer = getTracer()
      if (!tracer) return undefined
      try {
        return createSpan(start, tracer)
      } catch (err) {
        // A failing sampler or propagator must not fail calls.
        if (!failing) log.error({ code: 'MH2620', err }, 'cannot start a span: calls continue without one')
        failing = true
        return undefined
      }
    },
    end(record) {
      const span = record.call && spans.get(record.call)
      if (!span?.isRecording()) return
      const attributes = endAttributes(record)
      span.setAttributes(attributes)
      if (attributes['error.type'] !== undefined) {
        span.setStatus({ code: SpanStatusCode.ERROR, message: record.error?.kind ?? record.outcome })
      }
      span.end(record.at + record.milliseconds)
    },
    traceIdOf(call) {
      const found = spans.get(call)?.spanContext()
      return found && isSpanContextValid(found) ? found.traceId : undefined
    },
  }
}
