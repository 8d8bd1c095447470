// Counts and measures finished requests. Label values are limited; further names are counted together.
import { KeyedLru } from '../../core/internal.ts'
import type { CallRecord, Observer } from '../../core/plugin.ts'
import { REVISIONS, rulesOf } from '../../core/transport.ts'
import { type Add, CALL_BUCKETS, type Metric, OTHER, Series } from './series.ts'

const MAX_ITEMS = 1_000

const ITEM_LABELS = {
  tools: 'gen_ai_tool_name',
  prompts: 'gen_ai_prompt_name',
  resources: 'mcp_resource_uri',
} as const

/** Protocol versions in which one HTTP request can have several calls. */
const BATCHED: ReadonlySet<string | undefined> = new Set(REVISIONS.filter(revision => rulesOf(revision).batches))

const KINDS: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
}

const COMPLETED: ReadonlySet<string> = new Set(['ok', 'tool_error', 'input_required'])

const createSeries = () => ({
  durations: new Series(
    {
      name: 'mcp_server_operation_duration_seconds',
      help: 'Duration of calls, from the received request to the response.',
    },
    CALL_BUCKETS,
  ),
  httpRequests: new Series({
    name: 'mcp_host_http_requests_total',
    help: 'HTTP requests that are not calls: refused requests, notifications, streams, pages.',
  }),
  refusals: new Series({
    name: 'mcp_host_refusals_total',
    help: 'Refused or failed requests and calls, by error and plugin.',
  }),
  bytesIn: new Series({ name: 'mcp_host_request_bytes_total', help: 'Bytes of request bodies.' }),
  bytesOut: new Series({
    name: 'mcp_host_response_bytes_total',
    help: 'Bytes of responses, without earlier stream messages.',
  }),
  clients: new Series({
    name: 'mcp_host_client_calls_total',
    help: 'Calls by client name and version, protocol version and transport.',
  }),
  requests: new Series({
    name: 'mcp_host_client_questions_total',
    help: 'Calls with requests to the client: sampling, elicitation, roots.',
  }),
})

type AllSeries = ReturnType<typeof createSeries>

function createDurationCounter({ durations }: AllSeries): (record: CallRecord) => Add {
  const names = new Set<string>()
  return record => {
    const { route, method, item, revision, outcome, error } = record
    let name = item?.name
    if (name !== undefined && name !== OTHER && !names.has(name)) {
      if (names.size < MAX_ITEMS) names.add(name)
      else name = OTHER
    }
    // By the conventions, the type of a result with `isError` is `tool_error`.
    const errorType = outcome === 'tool_error' ? outcome : error?.kind
    return durations.row([route, method, item?.kind, name, revision, outcome, errorType], () => ({
      route,
      mcp_method_name: method,
      ...(item && { [ITEM_LABELS[item.kind]]: name }),
      mcp_protocol_version: revision,
      outcome,
      error_type: errorType,
    }))
  }
}

/** `max`: clients with series of their own; callers without a user take at most half of them. */
function createClientCounts({ clients, requests }: AllSeries, max: number): (record: CallRecord) => void {
  const names = new KeyedLru<true>()
  let anonymous = 0

  /** True unless a client has only failed: such a client has no series. */
  function hasOwnSeries(keys: readonly string[], { call, outcome }: CallRecord): boolean {
    if (names.get(keys)) return true
    const isAnonymous = call?.user === undefined
    if (!COMPLETED.has(outcome) || names.size >= max || (isAnonymous && anonymous >= Math.ceil(max / 2))) return false
    names.add(keys, true)
    if (isAnonymous) anonymous++
    return true
  }

  return record => {
    const { asked, revision: protocol_version, transport } = record
    const info = record.client
    const isOther = info && !hasOwnSeries([info.name, info.version], record)
    const client = isOther ? OTHER : info?.name
    const version = isOther ? OTHER : info?.version
    const labels = () => ({ client, version, protocol_version, transport })
    clients.row([client, version, protocol_version, transport], labels)(1)
    for (const method of asked) requests.with({ client, version, protocol_version, kind: KINDS[method] ?? OTHER })(1)
  }
}

function countRefusal({ refusals }: AllSeries, { route, method, http, error, refusedBy }: CallRecord) {
  if (!error) return
  refusals.with({
    route,
    mcp_method_name: method,
    verb: http?.verb,
    status: http?.status,
    error_type: error.kind,
    refused_by: refusedBy,
  })(1)
}

export function createRequestCounts(max: number): { readonly observe: Observer; read(): Metric[] } {
  const series = createSeries()
  const durationOf = createDurationCounter(series)
  const countClientCall = createClientCounts(series, max)
  /** Headers of batches whose body was already counted, because their calls share it. */
  const counted = new WeakSet<object>()

  function checkCounted({ headers }: { readonly headers: object }, revision: string | undefined) {
    if (!BATCHED.has(revision)) return false
    const wasCounted = counted.has(headers)
    counted.add(headers)
    return wasCounted
  }

  function observe(record: CallRecord) {
    const { call, outcome, route, http } = record
    series.bytesOut.row([route], () => ({ route }))(record.bytesOut ?? 0)
    const bytesIn = series.bytesIn.row([route], () => ({ route }))
    if (call) {
      durationOf(record)(record.milliseconds / 1_000)
      if (!checkCounted(call, record.revision)) bytesIn(record.bytesIn ?? 0)
      countClientCall(record)
    } else {
      if (http) series.httpRequests.with({ route, verb: http.verb, status: http.status, outcome })(1)
      // The body of a refused request was not processed.
      if (outcome === 'ok') bytesIn(record.bytesIn ?? 0)
    }
    if (outcome === 'error' || outcome === 'refused') countRefusal(series, record)
  }

  return { observe, read: () => Object.values(series).map(one => one.read()) }
}
