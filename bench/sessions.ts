// Sessions of 2025-11-25 for the benchmark: opened as clients open them, and used.
import { ok } from 'node:assert/strict'
import { type BenchRequest, callEcho, UNIQUE_ID } from './requests.ts'
import type { Contestant } from './row.ts'

const REVISION = '2025-11-25'
const HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: 'bench', version: '1.0.0' } },
})

/** Opens a session and returns the headers that name it. */
export async function openSession(url: string): Promise<Readonly<Record<string, string>>> {
  const response = await fetch(url, { method: 'POST', headers: HEADERS, body: INITIALIZE })
  await response.text()
  const id = response.headers.get('mcp-session-id')
  ok(response.ok && id, `no session was opened: ${response.status}`)
  const headers = { ...HEADERS, 'MCP-Protocol-Version': REVISION, 'Mcp-Session-Id': id }
  const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
  await (await fetch(url, { method: 'POST', headers, body })).text()
  return headers
}

/** `tools/call` of `echo` as 2025-11-25 has it, to a server that keeps no session. */
export const statelessCall: BenchRequest = sessionCall({ ...HEADERS, 'MCP-Protocol-Version': REVISION })

/** The same server, asked in a session that is opened first: by default for `tools/call` of `echo`. */
export const inSession = (contestant: Contestant, request = callEcho): Contestant => ({
  ...contestant,
  request: async url => sessionCall(await openSession(url), request),
})

interface ModernParams {
  readonly _meta: { readonly progressToken?: string }
}

/** A request of 2026-07-28 as it is made in a session: by default `tools/call` of `echo`. */
export function sessionCall(headers: Readonly<Record<string, string>>, request = callEcho): BenchRequest {
  const { method, params } = JSON.parse(request.body) as { method: string; params: ModernParams }
  const { _meta, ...rest } = params
  const { progressToken } = _meta
  const own = { ...rest, ...(progressToken !== undefined && { _meta: { progressToken } }) }
  return { ...request, headers, body: JSON.stringify({ jsonrpc: '2.0', id: UNIQUE_ID, method, params: own }) }
}
