// A metrics page whose figures a test moves, as the plugin `metrics` names them, on a server that may be away.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

const CALL_LABELS = ['route', 'mcp_method_name', 'gen_ai_tool_name', 'mcp_protocol_version', 'outcome', 'error_type']

export function createFigures() {
  const registry = new Registry()
  const registers = [registry]
  const gauge = (name: string, labelNames: string[] = []) => new Gauge({ name, help: 'help', labelNames, registers })
  const counter = (name: string, labelNames: string[]) => new Counter({ name, help: 'help', labelNames, registers })
  const calls = new Histogram({
    name: 'mcp_server_operation_duration_seconds',
    help: 'How long "calls"\\took,\nin seconds.',
    labelNames: CALL_LABELS,
    buckets: [0.01, 0.1, 1, 10],
    registers,
  })
  const clients = counter('mcp_host_client_calls_total', ['client', 'version', 'protocol_version', 'transport'])
  return {
    registry,
    calls,
    clients,
    questions: counter('mcp_host_client_questions_total', ['client', 'version', 'protocol_version', 'kind']),
    refusals: counter('mcp_host_refusals_total', ['route', 'error_type', 'refused_by']),
    plain: counter('mcp_host_http_requests_total', ['route', 'verb', 'status', 'outcome']),
    sessions: gauge('mcp_host_sessions', ['route', 'protocol_version', 'transport']),
    inFlight: gauge('mcp_host_requests_in_flight'),
    streams: gauge('mcp_host_streams'),
    waiting: gauge('mcp_host_waiting_bytes'),
    redisUp: gauge('mcp_host_redis_up', ['redis']),
    memory: gauge('process_resident_memory_bytes'),
    lag: gauge('nodejs_eventloop_lag_p99_seconds'),
    started: gauge('process_start_time_seconds'),
    /** Calls of a tool that took so many seconds each. */
    call(tool: string, seconds: number, count = 1, outcome = 'ok') {
      const labels = { route: '/mcp', mcp_method_name: 'tools/call', gen_ai_tool_name: tool, outcome }
      for (let index = 0; index < count; index++)
        calls.observe({ ...labels, mcp_protocol_version: '2026-07-28' }, seconds)
    },
  }
}

export type FakeFigures = ReturnType<typeof createFigures>

export interface FakePage {
  /** Of /metrics; all else is the MCP endpoint. */
  readonly url: string
  readonly origin: string
  figures: FakeFigures
  /** The status, and the text where it is not the page's own. */
  answer: { status: number; text?: string }
  /** The status of all else. */
  mcp: { status: number }
  /** What callers said of themselves, in order. */
  readonly authorizations: (string | undefined)[]
  close(): Promise<void>
}

export async function startFakePage(): Promise<FakePage> {
  const fake = { figures: createFigures(), answer: { status: 200 } as FakePage['answer'], mcp: { status: 405 } }
  const authorizations: (string | undefined)[] = []
  const server: Server = createServer(async (req, res) => {
    if (req.url !== '/metrics') {
      if (fake.mcp.status !== 405) return res.writeHead(fake.mcp.status).end()
      res.writeHead(405, { 'Content-Type': 'application/json' })
      return res.end('{"jsonrpc":"2.0","error":{"code":-32000,"message":"method not allowed"},"id":null}')
    }
    authorizations.push(req.headers.authorization)
    const { status, text = await fake.figures.registry.metrics() } = fake.answer
    res.writeHead(status, { 'Content-Type': 'text/plain', Location: 'http://127.0.0.1:1/' })
    res.end(text)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(fake, {
    url: `${origin}/metrics`,
    origin,
    authorizations,
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  })
}
