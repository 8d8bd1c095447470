// Servers of the revisions before 2026-07-28: they want a handshake first, or speak HTTP+SSE alone.
import { ask, open } from './ask.ts'

export interface OlderServer {
  readonly transport: 'Streamable HTTP' | 'HTTP+SSE'
  readonly revision: string | undefined
}

type Headers = Readonly<Record<string, string>>

const REVISION = '2025-11-25'

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: 'mcp-host doctor', version: '1' } },
})

/** Undefined where the address answers to none of them. */
export async function askForOlder(url: string, headers: Headers = {}): Promise<OlderServer | undefined> {
  const accept = { Accept: 'application/json, text/event-stream' }
  const answer = await ask(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...accept, ...headers },
    body: INITIALIZE,
  })
  const session = answer.headers['mcp-session-id']
  if (typeof session === 'string')
    await ask(url, { method: 'DELETE', headers: { 'Mcp-Session-Id': session, ...headers } })
  const type = answer.headers['content-type'] ?? ''
  if (answer.status === 200 && /^(?:application\/json|text\/event-stream)/.test(type)) {
    const { protocolVersion } = (answer.json?.['result'] ?? {}) as { protocolVersion?: unknown }
    const revision = typeof protocolVersion === 'string' ? protocolVersion : undefined
    return { transport: 'Streamable HTTP', revision }
  }
  const stream = await open(url, { headers: { Accept: 'text/event-stream', ...headers } })
  stream.destroy()
  const isStream = stream.statusCode === 200 && stream.headers['content-type']?.startsWith('text/event-stream')
  return isStream ? { transport: 'HTTP+SSE', revision: '2024-11-05' } : undefined
}
