// Whether what answers at an address is an MCP server. A token says nothing about that: one is given for a whole origin,
// and many servers refuse every path alike before they look at it.
import { readBody } from '../../client/http.ts'
import { isObject } from '../../core/mcp/is-object.ts'
import { META } from '../../core/mcp/protocol.ts'
import { MODERN_REVISION } from '../../core/mcp/revisions.ts'

/** `refused`: it lets nobody through, with this token neither; `unsure`: it could not say now. */
export type Verdict =
  | { readonly kind: 'mcp' }
  | { readonly kind: 'refused' | 'unsure' | 'other'; readonly status: number }

const MAX_LOOK = 64 * 1_024
/** Milliseconds. */
const PATIENCE = 15_000

/** The id of our question. */
const QUESTION = 1

const CLIENT = { name: 'mcp-host login', version: '1' }

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: QUESTION,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: CLIENT },
})
/** Of 2026-07-28: a server that speaks it must not count us among the clients that need an older one. */
const DISCOVER = JSON.stringify({
  jsonrpc: '2.0',
  id: QUESTION,
  method: 'server/discover',
  params: {
    _meta: {
      [META.protocolVersion]: MODERN_REVISION,
      [META.clientInfo]: CLIENT,
      [META.clientCapabilities]: {},
    },
  },
})
const ACCEPT = 'application/json, text/event-stream'

const isStream = ({ headers }: Response) => headers.get('content-type')?.startsWith('text/event-stream') ?? false

/**
 * Whether the answer is one to our question: a result, or an error with our id. Any path of a server may refuse in
 * JSON-RPC, without an id; of those only a session that is lost (404, -32001) says that there are sessions.
 */
function readAnswer(status: number, text: string): 'answer' | 'error' | 'other' {
  try {
    const parsed: unknown = JSON.parse(text)
    const message: unknown = Array.isArray(parsed) ? parsed[0] : parsed
    if (!isObject(message) || message['jsonrpc'] !== '2.0') return 'other'
    const { id, result, error } = message
    if (result !== undefined) return 'answer'
    if (!isObject(error)) return 'other'
    return id === QUESTION || (status === 404 && error['code'] === -32_001) ? 'answer' : 'error'
  } catch {
    return 'other'
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

/** Whether it answers as a server of 2026-07-28 does. */
async function isModern(url: string, ask: typeof fetch, signal: AbortSignal): Promise<boolean> {
  const headers = {
    'content-type': 'application/json',
    accept: ACCEPT,
    'mcp-protocol-version': MODERN_REVISION,
    'mcp-method': 'server/discover',
  }
  const response = await ask(url, { method: 'POST', headers, body: DISCOVER, redirect: 'manual', signal })
  if (isStream(response) || response.status !== 200) {
    await response.body?.cancel()
    return false
  }
  const { bytes } = await readBody(response, MAX_LOOK)
  return readAnswer(response.status, new TextDecoder().decode(bytes)) === 'answer'
}

/**
 * Asks as a client would, by `server/discover`; an older server by `initialize`, or by its stream. `ask` carries the token,
 * where there is one.
 */
export async function verifyServer(url: string, ask: typeof fetch, signal: AbortSignal): Promise<Verdict> {
  const both = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)])
  if (await isModern(url, ask, both)) return { kind: 'mcp' }
  const headers = { 'content-type': 'application/json', accept: ACCEPT }
  const posted = await ask(url, { method: 'POST', headers, body: INITIALIZE, redirect: 'manual', signal: both })
  const { status } = posted
  if (isStream(posted)) {
    await posted.body?.cancel()
    await endSession(url, ask, posted, both)
    return { kind: 'mcp' }
  }
  const { bytes } = await readBody(posted, MAX_LOOK)
  const answer = readAnswer(status, new TextDecoder().decode(bytes))
  if (answer === 'answer') {
    await endSession(url, ask, posted, both)
    return { kind: 'mcp' }
  }
  if (status === 401 || status === 403) return { kind: 'refused', status }
  if (status >= 500 || status === 408 || status === 429) return { kind: 'unsure', status }
  const streamed = await ask(url, { headers: { accept: 'text/event-stream' }, redirect: 'manual', signal: both })
  await streamed.body?.cancel()
  if (streamed.ok && isStream(streamed)) return { kind: 'mcp' }
  // Something speaks JSON-RPC here and did not like the question: no reason to undo a login.
  const isThere = answer === 'error' && status !== 404 && status !== 405
  return { kind: isThere ? 'unsure' : 'other', status }
}
