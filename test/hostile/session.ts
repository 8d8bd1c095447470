// Sessions of attackers, over any connection and with any identity.
import type { Connection } from './connection.ts'
import { initializeParams, message, requestBytes } from './requests.ts'
import type { Round } from './round.ts'
import type { Identity } from './target.ts'

export interface HostileSession {
  readonly id: string
  readonly path: string
  readonly who: Identity
  readonly revision: string
}

interface Opening {
  readonly path?: string
  readonly revision?: string
}

/** Opens a session on this connection; undefined where the host refuses it. */
export async function openSession(
  round: Round,
  connection: Connection,
  { path = '/', revision = '2025-11-25' }: Opening = {},
): Promise<HostileSession | undefined> {
  const { who } = connection
  const body = message({ id: 'init', method: 'initialize', params: initializeParams(revision) })
  const before = connection.answers.length
  connection.send(requestBytes(round.target, { path, who, body }))
  await round.answers(connection, before + 1)
  const id = connection.answers[before]?.headers.get('mcp-session-id')
  return id === undefined ? undefined : { id, path, who, revision }
}

/** The headers that name a session. */
export const sessionHeaders = ({ id, revision }: HostileSession) => ({
  'Mcp-Session-Id': id,
  'MCP-Protocol-Version': revision,
})

/** The bytes of a message in a session. */
export const inSession = (round: Round, session: HostileSession, body: string | Uint8Array) =>
  requestBytes(round.target, { path: session.path, who: session.who, headers: sessionHeaders(session), body })

/** The bytes of a GET or DELETE of a session. */
export const onSession = (round: Round, session: HostileSession, verb: 'GET' | 'DELETE', lastEventId?: string) =>
  requestBytes(round.target, {
    verb,
    path: session.path,
    who: session.who,
    headers: { ...sessionHeaders(session), ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }) },
  })
