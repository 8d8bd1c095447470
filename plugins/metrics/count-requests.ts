// Counts and measures requests that are over, from the records that observers are told (core/mcp/call-record.ts). Every label
// is of the config or of a list in the code, but for tools that are added at run time and what clients call themselves:
// of these the first so many have series of their own.
import type { CallRecord, Observer } from '../../core/index.ts'
import { REVISIONS, rulesOf } from '../../core/transport.ts'
import { createBoundedNames, OTHER } from './bounded.ts'
import { CALL_BUCKETS } from './buckets.ts'
import { type Count, createCounter, createHistogram, type Measure, type Metric } from './series.ts'

/** Tools, prompts and resources that have series of their own. */
const MOST_ITEMS = 1_000

const ITEM_LABELS = {
  tools: 'gen_ai_tool_name',
  prompts: 'gen_ai_prompt_name',
  resources: 'mcp_resource_uri',
} as const

/** Revisions in which a request may bring several calls. */
const BATCHING: ReadonlySet<string | undefined> = new Set(REVISIONS.filter(revision => rulesOf(revision).batches))

/** What a handler may ask its client. */
const KINDS: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
}

/** Outcomes of a call that the host let through to its handler's end. */
const WELL: ReadonlySet<string> = new Set(['ok', 'tool_error', 'input_required'])

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

/** By several texts, one after the other: constant ones are found sooner than a text that is joined of them. */
type By<Value> = Map<string | undefined, Value>

function below<Value>(outer: By<By<Value>>, key: string | undefined): By<Value> {
  const known = outer.get(key)
  if (known) return known
  const inner = new Map()
  outer.set(key, inner)
  return inner
}

function createCallSeries({ durations }: Tables, bytesOn: (route: string | undefined) => Bytes) {
  const items = createBoundedNames(MOST_ITEMS)
  const known: By<By<By<By<By<By<CallSeries>>>>>> = new Map()

  function add(record: CallRecord, name: string | undefined): CallSeries {
    const { route, method, item, revision, outcome } = record
    const labels = {
      route,
      mcp_method_name: method,
      ...(item && { [ITEM_LABELS[item.kind]]: name }),
      mcp_protocol_version: revision,
      outcome,
      error_type: errorTypeOf(record),
    }
    return { measure: durations.add(JSON.stringify(labels), labels), bytes: bytesOn(route) }
  }

  return (record: CallRecord): CallSeries => {
    const { route, method, item, revision, outcome } = record
    const kind = item?.kind
    const isNamed = item === undefined || item.name === OTHER || items.has(item.name) || items.enter(item.name)
    const name = isNamed ? item?.name : OTHER
    const byName = below(below(below(below(known, route), method), revision), kind)
    const byWhat = below(byName, name)
    const what = errorTypeOf(record) ?? outcome
    const found = byWhat.get(what)
    if (found) return found
    const series = add(record, name)
    byWhat.set(what, series)
    return series
  }
}

function createClientCounts({ clients, questions }: Tables, most: number) {
  const names = createBoundedNames(most)
  const known: By<By<By<By<Count>>>> = new Map()

  function countOf(
    client: string | undefined,
    version: string | undefined,
    { revision, transport }: CallRecord,
  ): Count {
    const byTransport = below(below(below(known, client), version), revision)
    const found = byTransport.get(transport)
    if (found) return found
    const labels = { client, version, protocol_version: revision, transport }
    const count = clients.add(JSON.stringify(labels), labels)
    byTransport.set(transport, count)
    return count
  }

  /** Whoever only ever fails takes no place; who is nobody, and may call itself anything, takes none of those kept for users. */
  const enter = (key: string, { call, outcome }: CallRecord) =>
    WELL.has(outcome) && names.enter(key, call?.user === undefined)

  function shownNames(record: CallRecord): readonly [string | undefined, string | undefined] {
    const { client } = record
    if (!client) return [undefined, undefined]
    const { name, version } = client
    const key = `${name}\n${version}`
    return names.has(key) || enter(key, record) ? [name, version] : [OTHER, OTHER]
  }

  return (record: CallRecord) => {
    const { asked, revision } = record
    const [client, version] = shownNames(record)
    countOf(client, version, record).value++
    for (const method of asked) {
      const kind = KINDS[method] ?? OTHER
      const key = `${client}\n${version}\n${revision}\n${kind}`
      const labels = { client, version, protocol_version: revision, kind }
      const question = questions.find(key) ?? questions.add(key, labels)
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
  /** Requests whose body was counted. */
  const counted = new WeakSet<object>()

  /** The calls of a batch came in one body. */
  function isCounted({ headers }: { readonly headers: object }, revision: string | undefined) {
    if (!BATCHING.has(revision)) return false
    const known = counted.has(headers)
    counted.add(headers)
    return known
  }

  function observe(record: CallRecord) {
    const { call, outcome } = record
    if (call) {
      const { measure, bytes } = seriesOf(record)
      measure(record.milliseconds / 1_000)
      bytes.out.value += record.bytesOut ?? 0
      if (!isCounted(call, record.revision)) bytes.in.value += record.bytesIn ?? 0
      countClient(record)
    } else {
      if (record.http) countPlain(tables, record)
      const bytes = bytesOn(record.route)
      bytes.out.value += record.bytesOut ?? 0
      // Who was refused had no use of what came.
      if (outcome === 'ok') bytes.in.value += record.bytesIn ?? 0
    }
    if (outcome === 'error' || outcome === 'refused') countRefusal(tables, record)
  }

  return { observe, read: () => Object.values(tables).map(table => table.read()) }
}
