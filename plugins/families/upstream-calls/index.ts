// Upstream servers and APIs: the fields of their calls in the records, metrics, and the states of servers.
import type { InternalHost } from '../../../core/internal.ts'
import { type Call, isObject } from '../../../core/plugin.ts'
import { InputRequired } from '../../../core/transport.ts'

export { problemsOf } from './check-values.ts'
export { closed, PREFIX, record, size, texts, toolOverride } from './options.ts'

const KEY = Symbol('calls to upstream servers and APIs')
const SERVERS = Symbol('states of upstream servers')

/** A difference between the lists of a server and its entry in the lock file. */
export interface Difference {
  /** Such as `tool search`, or `instructions`. */
  readonly label: string
  readonly kind: 'new' | 'changed' | 'removed'
  readonly isWithheld: boolean
  /** Returns the changed fields as accepted, and as the server lists them now (or the new item). Empty for removed items. */
  sides(): { readonly before?: unknown; readonly after?: unknown }
}

/** Codes of server warnings that disappear when the cause is fixed. */
export const ENDING_WARNINGS = ['MH2942', 'MH2944', 'MH2945', 'MH2949', 'MH2959'] as const

/** For operators only: reasons contain URLs and output of the server. Times are milliseconds since the epoch. */
export interface UpstreamState {
  readonly name: string
  readonly transport: 'http' | 'stdio'
  /** The URL without credentials and query, or the command without arguments. */
  readonly target: string
  readonly state: 'not connected' | 'connecting' | 'up' | 'needs login' | 'down' | 'crash loop'
  /** The start of the state. */
  readonly since: number
  readonly nextAttempt?: number
  /** The last error of the list connection. Excludes caller sessions. */
  readonly lastError?: { readonly at: number; readonly reason: string }
  readonly server?: string
  readonly revision?: string
  readonly era?: 'legacy' | 'modern'
  readonly tools: number
  readonly resources: number
  readonly prompts: number
  /** Withheld items, with the reasons. */
  readonly withheld: ReadonlyArray<readonly [string, string]>
  readonly differences: readonly Difference[]
  /** Warnings that still apply. */
  readonly warnings: ReadonlyArray<(typeof ENDING_WARNINGS)[number]>
  readonly sessions: number
  readonly activeCalls: number
  readonly queuedCalls: number
  readonly heldCalls: number
}

/** Functions that return the states of upstream servers, shared by the plugins of a host. */
export const upstreamStatesOf = ({ share }: Pick<InternalHost, 'share'>) =>
  share(SERVERS, () => new Set<() => readonly UpstreamState[]>())

function outcomeOf(result: object | undefined): string {
  if (result instanceof InputRequired) return 'input_required'
  return isObject(result) && result['isError'] === true ? 'tool_error' : 'ok'
}

/** Runs the request of a call to an upstream server or API, and records it. */
export type RecordUpstreamCall = <Result extends object | undefined>(
  call: Call | undefined,
  about: {
    readonly name: string
    readonly tool?: unknown
    /** Describes an error, or a result with `isError`, for the log: without arguments and content of the server. */
    readonly failureOf?: (failed: unknown) => string | undefined
  },
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
    return async (call, { name, tool, failureOf }, send) => {
      const startedAt = clock.monotonic()
      let outcome = 'error'
      let failure: string | undefined
      try {
        const result = await send()
        outcome = outcomeOf(result)
        if (outcome === 'tool_error') failure = failureOf?.(result)
        return result
      } catch (error) {
        failure = failureOf?.(error)
        throw error
      } finally {
        const milliseconds = clock.monotonic() - startedAt
        const ownName = typeof tool === 'string' ? tool : undefined
        if (call) call.notes.upstream = { name, tool: ownName, ...(failure !== undefined && { failure }), milliseconds }
        count(1, { upstream: name, outcome })
        measure(milliseconds / 1_000, { upstream: name })
      }
    }
  })
