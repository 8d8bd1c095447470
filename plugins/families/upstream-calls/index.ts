// Calls to upstream servers and APIs: their fields in the records of calls, and their metrics.
import type { InternalHost } from '../../../core/internal.ts'
import { type Call, isObject } from '../../../core/plugin.ts'
import { InputRequired } from '../../../core/transport.ts'

export { problemsOf } from './check-values.ts'
export { choice, closed, count, duration, flag, PREFIX, record, size, text, texts, toolOverride } from './options.ts'

const KEY = Symbol('calls to upstream servers and APIs')

function outcomeOf(result: object | undefined): string {
  if (result instanceof InputRequired) return 'input_required'
  return isObject(result) && result['isError'] === true ? 'tool_error' : 'ok'
}

/** Runs the request of a call to an upstream server or API, and records it. */
export type RecordUpstreamCall = <Result extends object | undefined>(
  call: Call | undefined,
  about: { readonly name: string; readonly tool?: unknown },
  send: () => Promise<Result>,
) => Promise<Result>

/** All plugins of a host share the metrics. */
export const upstreamCallsOf = ({ share, metrics, clock }: InternalHost): RecordUpstreamCall =>
  share(KEY, () => {
    const count = metrics.counter({
      name: 'mcp_host_upstream_calls_total',
      help: 'Calls to upstream servers and APIs, by outcome.',
      labels: ['upstream', 'outcome'],
    })
    const measure = metrics.histogram({
      name: 'mcp_host_upstream_seconds',
      help: 'Duration of calls to upstream servers and APIs.',
      labels: ['upstream'],
    })
    return async (call, { name, tool }, send) => {
      const begun = clock.monotonic()
      let outcome = 'error'
      try {
        const result = await send()
        outcome = outcomeOf(result)
        return result
      } finally {
        const milliseconds = clock.monotonic() - begun
        if (call) call.notes.upstream = { name, tool: typeof tool === 'string' ? tool : undefined, milliseconds }
        count(1, { upstream: name, outcome })
        measure(milliseconds / 1_000, { upstream: name })
      }
    }
  })
