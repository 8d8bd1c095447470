// Counts and measures requests that are over, from the records that observers are told (core/mcp/call-record.ts). Every label
// is of the config or of a list in the code, but for tools that are added at run time and what clients call themselves:
// of these the first so many have series of their own.
import type { CallRecord, Observer } from '../../core/index.ts'
import { createBoundedNames, OTHER } from './bounded.ts'
import { CALL_BUCKETS } from './buckets.ts'
import { type Count, createCounter, createHistogram, type Labels, type Measure, type Metric } from './series.ts'

/** Tools, prompts and resources that have series of their own. */
const MOST_ITEMS = 1_000

const ITEM_LABELS = {
  tools: 'gen_ai_tool_name',
  prompts: 'gen_ai_prompt_name',
  resources: 'mcp_resource_uri',
} as const

/** What a handler may ask its client. */
const KINDS: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
}

const createTables = () => ({
  durations: createHistogram(
    {
      name: 'mcp_server_operation_duration_seconds',
      help: 'How long calls took, from when they were read to their answer.',
    },
    CALL_BUCKETS,
  ),
  plain: createCounter({
    name: 'mcp_host_http_requests_total',
    help: 'HTTP requests that became no call: refused ones, notifications, streams, pages.',
  }),
  refusals: createCounter({
    name: 'mcp_host_refusals_total',
    help: 'Requests and calls that were refused or failed: what the client was told, and by whom.',
  }),
  bytesIn: createCounter({ name: 'mcp_host_request_bytes_total', help: 'Bytes of the bodies of requests.' }),
  bytesOut: createCounter({
    name: 'mcp_host_response_bytes_total',
    help: 'Bytes of answers; not of what streams sent before.',
  }),
  clients: createCounter({
    name: 'mcp_host_client_calls_total',
    help: 'Calls by what the client calls itself, the revision that it speaks, and the transport of its session.',
  }),
  questions: createCounter({
    name: 'mcp_host_client_questions_total',
    help: 'Calls whose handler asked the client something: sampling, elicitation, roots.',
  }),
})

type Tables = ReturnType<typeof createTables>

/** What a call counts in. */
interface CallSeries {
  readonly measure: Measure
  readonly bytes: Bytes
}

interface Bytes {
  readonly in: Count
  readonly out: Count
}

/** An error's kind; `tool_error` is what the conventions say for a result with `isError`. */
const errorTypeOf = ({ outcome, error }: CallRecord) => (outcome === 'tool_error' ? outcome : error?.kind)

function createBytes({ bytesIn, bytesOut }: Tables) {
  const byRoute = new Map<string | undefined, Bytes>()
  return (route: string | undefined): Bytes => {
    const known = byRoute.get(route)
    if (known) return known
    const bytes = { in: bytesIn.add(String(route), { route }), out: bytesOut.add(String(route), { route }) }
    byRoute.set(route, bytes)
    return bytes
  }
}

function createCallSeries({ durations }: Tables, bytesOn: (route: string | undefined) => Bytes) {
  const items = createBoundedNames(MOST_ITEMS)
  const known = new Map<string, CallSeries>()
  return (record: CallRecord): CallSeries => {
    const { route, method, item, revision, outcome } = record
    const errorType = errorTypeOf(record)
    const key = `${route}\n${method}\n${item?.name}\n${revision}\n${outcome}\n${errorType}`
    const found = known.get(key)
    if (found) return found
    const isNamed = item !== undefined && (item.name === OTHER || items.has(`${item.kind} ${item.name}`, true))
    const labels: Labels = {
      route,
      mcp_method_name: method,
      ...(item && { [ITEM_LABELS[item.kind]]: isNamed ? item.name : OTHER }),
      mcp_protocol_version: revision,
      outcome,
      error_type: errorType,
    }
    const shown = item && !isNamed ? `${route}\n${method}\n${OTHER}\n${revision}\n${outcome}\n${errorType}` : key
    const series = { measure: durations.find(shown) ?? durations.add(shown, labels), bytes: bytesOn(route) }
    // What is counted with others is looked up through them each time: else there were as many keys as names.
    if (shown === key) known.set(key, series)
    return series
  }
}

function createClientCounts({ clients, questions }: Tables, most: number) {
  const names = createBoundedNames(most)

  function shownNames({ client, outcome }: CallRecord): readonly [string | undefined, string | undefined] {
    if (!client) return [undefined, undefined]
    const { name, version } = client
    // Whoever only ever fails takes no place.
    const mayEnter = outcome === 'ok' || outcome === 'tool_error'
    return names.has(`${name}\n${version}`, mayEnter) ? [name, version] : [OTHER, OTHER]
  }

  return (record: CallRecord) => {
    const { revision, transport, asked } = record
    const [client, version] = shownNames(record)
    const key = `${client}\n${version}\n${revision}\n${transport}`
    const count = clients.find(key) ?? clients.add(key, { client, version, protocol_version: revision, transport })
    count.value++
    for (const method of asked) {
      const kind = KINDS[method] ?? OTHER
      const asking = `${client}\n${version}\n${kind}`
      const question = questions.find(asking) ?? questions.add(asking, { client, version, kind })
      question.value++
    }
  }
}

function countRefusal({ refusals }: Tables, record: CallRecord) {
  const { route, method, http, error, refusedBy } = record
  if (!error) return
  const key = `${route}\n${method}\n${http?.verb}\n${http?.status}\n${error.kind}\n${refusedBy}`
  const labels = {
    route,
    mcp_method_name: method,
    verb: http?.verb,
    status: http?.status,
    error_type: error.kind,
    refused_by: refusedBy,
  }
  const count = refusals.find(key) ?? refusals.add(key, labels)
  count.value++
}

function countPlain({ plain }: Tables, { route, http, outcome }: CallRecord) {
  const key = `${route}\n${http?.verb}\n${http?.status}\n${outcome}`
  const count = plain.find(key) ?? plain.add(key, { route, verb: http?.verb, status: http?.status, outcome })
  count.value++
}

/** `mostClients`: names and versions of clients that have series of their own. */
export function createRequestCounts(mostClients: number): { readonly observe: Observer; read(): Metric[] } {
  const tables = createTables()
  const bytesOn = createBytes(tables)
  const seriesOf = createCallSeries(tables, bytesOn)
  const countClient = createClientCounts(tables, mostClients)
  /** Requests whose body was counted: the calls of a batch came in one. */
  const counted = new WeakSet<object>()

  function observe(record: CallRecord) {
    const { call, outcome } = record
    if (call) {
      const { measure, bytes } = seriesOf(record)
      measure(record.milliseconds / 1_000)
      bytes.out.value += record.bytesOut ?? 0
      if (!counted.has(call.headers)) {
        counted.add(call.headers)
        bytes.in.value += record.bytesIn ?? 0
      }
      countClient(record)
    } else {
      countPlain(tables, record)
      const bytes = bytesOn(record.route)
      bytes.out.value += record.bytesOut ?? 0
      // What a refused request says of its length was not read.
      if (outcome === 'ok') bytes.in.value += record.bytesIn ?? 0
    }
    if (outcome === 'error' || outcome === 'refused') countRefusal(tables, record)
  }

  return { observe, read: () => Object.values(tables).map(table => table.read()) }
}
