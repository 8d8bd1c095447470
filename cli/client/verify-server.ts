// Whether what answers at an address is an MCP server. A token says nothing about that: one is given for a whole origin,
// and many servers refuse every path alike before they look at it.
import { readBody } from '../../client/read-body.ts'

/** `refused`: it lets nobody through, with this token neither; `unsure`: it could not say now. */
export type Verdict =
  | { readonly kind: 'mcp' }
  | { readonly kind: 'refused' | 'unsure' | 'other'; readonly status: number }

const MAX_LOOK = 64 * 1_024
/** Milliseconds. */
const PATIENCE = 15_000

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'mcp-host login', version: '1' } },
})
const ACCEPT = 'application/json, text/event-stream'

const isStream = ({ headers }: Response) => headers.get('content-type')?.startsWith('text/event-stream') ?? false

/** Any JSON-RPC message, an error too: nothing else speaks it. */
async function isJsonRpc(response: Response): Promise<boolean> {
  const { bytes } = await readBody(response, MAX_LOOK)
  try {
    const message: unknown = JSON.parse(new TextDecoder().decode(bytes))
    const [first] = Array.isArray(message) ? message : [message]
    return typeof first === 'object' && first !== null && (first as { jsonrpc?: unknown }).jsonrpc === '2.0'
  } catch {
    return false
  }
}

/** Ends the session that the question opened, where it opened one. */
async function endSession(url: string, ask: typeof fetch, opened: Response, signal: AbortSignal): Promise<void> {
  const id = opened.headers.get('mcp-session-id')
  if (id === null) return
  const response = await ask(url, { method: 'DELETE', headers: { 'mcp-session-id': id }, signal }).catch(
    () => undefined,
  )
  await response?.body?.cancel()
}

/** Asks as a client would, by `initialize`; an older server by its stream. `ask` carries the token, where there is one. */
export async function verifyServer(url: string, ask: typeof fetch, signal: AbortSignal): Promise<Verdict> {
  const both = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)])
  const headers = { 'content-type': 'application/json', accept: ACCEPT }
  const posted = await ask(url, { method: 'POST', headers, body: INITIALIZE, redirect: 'manual', signal: both })
  const { status } = posted
  if (isStream(posted)) {
    await posted.body?.cancel()
    await endSession(url, ask, posted, both)
    return { kind: 'mcp' }
  }
  if (await isJsonRpc(posted)) {
    await endSession(url, ask, posted, both)
    return { kind: 'mcp' }
  }
  if (status === 401 || status === 403) return { kind: 'refused', status }
  if (status >= 500 || status === 408 || status === 429) return { kind: 'unsure', status }
  const streamed = await ask(url, { headers: { accept: 'text/event-stream' }, redirect: 'manual', signal: both })
  await streamed.body?.cancel()
  return streamed.ok && isStream(streamed) ? { kind: 'mcp' } : { kind: 'other', status }
}
