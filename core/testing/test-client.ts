// Wraps the official client for tests, with test responses.
import { EventEmitter, once } from 'node:events'
import type { Client, Transport } from '@modelcontextprotocol/client'
import type { TestUser } from '../access/claims.ts'
import { assertInstalled } from '../http/optional-packages.ts'
import type {
  CallToolResult,
  GetPromptResult,
  Implementation,
  JsonObject,
  ReadResourceResult,
} from '../mcp/wire/protocol.ts'
import { isHandshakeRevision, MODERN_REVISION, type Revision } from '../mcp/wire/revisions.ts'
import { type Answers, type Ask, createResponder } from './answers.ts'

/** Settings of a test client. */
export interface ClientSettings {
  /** Default: the path of the first route. */
  route?: string
  /** Default: the newest. */
  revision?: Revision
  /** Uses HTTP+SSE at `<route>/sse`, for versions with `initialize`. */
  sse?: boolean
  /** Sends a token of this user. Default: none. */
  user?: TestUser
  token?: string
  headers?: Readonly<Record<string, string>>
  /** Responses to client requests. Without them, the client declares no such capabilities. */
  answers?: Answers
}

export type Listed = { readonly name: string; readonly description?: string } & JsonObject

interface Notified {
  readonly method: string
  readonly params: JsonObject
}

/** Requests reject with the error `code` or HTTP `status`; for a missing scope with `requiredScope`. */
export interface TestClient extends AsyncDisposable {
  readonly url: string
  readonly revision: string
  readonly sessionId: string | undefined
  readonly server: Implementation | undefined
  readonly instructions: string | undefined
  listTools(): Promise<Listed[]>
  listResources(): Promise<Listed[]>
  listPrompts(): Promise<Listed[]>
  callTool(
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options?: { signal?: AbortSignal },
  ): Promise<{ result: CallToolResult; structured: unknown; text: string; isError: boolean }>
  readResource(uri: string): Promise<{ result: ReadResourceResult; text: string }>
  getPrompt(name: string, args?: Readonly<Record<string, string>>): Promise<{ result: GetPromptResult; text: string }>
  request(method: string, params?: JsonObject): Promise<JsonObject>
  watch(uri: string): Promise<void>
  readonly asks: readonly Ask[]
  readonly notifications: readonly Notified[]
  /** Waits for the next notification of this method. Rejects after `timeout` ms, default 5,000. */
  notified(method: string, timeout?: number): Promise<Notified>
  close(): Promise<void>
}

export const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} }, roots: {} }

const ANY = {
  '~standard': { version: 1, vendor: 'mcp-host', validate: (value: unknown) => ({ value: value as JsonObject }) },
} as const

type Sdk = typeof import('@modelcontextprotocol/client')

function createInbox() {
  const notifications: Notified[] = []
  const taken = new Set<Notified>()
  const arrivals = new EventEmitter()
  return {
    notifications,
    put(one: Notified) {
      notifications.push(one)
      arrivals.emit('notification')
    },
    async notified(method: string, timeout = 5_000): Promise<Notified> {
      const signal = AbortSignal.timeout(timeout)
      for (;;) {
        const found = notifications.find(one => one.method === method && !taken.has(one))
        if (found) {
          taken.add(found)
          return found
        }
        await once(arrivals, 'notification', { signal }).catch(() => {
          const came = notifications.map(one => one.method).join(', ') || 'none'
          throw new Error(`no ${method} within ${timeout} ms; notifications so far: ${came}`)
        })
      }
    },
  }
}

function makeClient(sdk: Sdk, revision: Revision, answers: Answers | undefined) {
  const handshake = isHandshakeRevision(revision)
  const client = new sdk.Client(
    { name: 'test-client', version: '1.0.0' },
    {
      capabilities: answers === undefined ? {} : CAPABILITIES,
      versionNegotiation: { mode: handshake ? 'legacy' : { pin: revision } },
      ...(handshake && { supportedProtocolVersions: [revision] }),
    },
  )
  const inbox = createInbox()
  client.fallbackNotificationHandler = async ({ method, params = {} }) => inbox.put({ method, params })
  const responder = createResponder(answers)
  const missing: unknown[] = []
  const respond = (method: string, params: unknown) =>
    responder.answer(method, params).catch((error: unknown) => {
      missing.push(error)
      throw error
    })
  if (answers !== undefined) {
    for (const method of ['elicitation/create', 'sampling/createMessage', 'roots/list'] as const) {
      client.setRequestHandler(method, ({ params = {} }) => respond(method, params) as Promise<never>)
    }
  }
  async function settle<Result>(request: Promise<Result>): Promise<Result> {
    const [outcome] = await Promise.allSettled([request])
    if (missing.length > 0) throw missing.splice(0)[0]
    if (outcome.status === 'rejected') throw withStatus(outcome.reason)
    return outcome.value
  }
  return { client, inbox, responder, settle }
}

/** The official client omits the status of a missing scope (RFC 6750 section 3.1). */
function withStatus(error: unknown): unknown {
  const isScope = error instanceof Error && 'requiredScope' in error && !('status' in error)
  return isScope ? Object.assign(error, { status: 403 }) : error
}

/** Without sessions, list changes require `subscriptions/listen`. */
async function listenToLists(client: Client): Promise<void> {
  const { tools, prompts, resources } = client.getServerCapabilities() ?? {}
  const filter = {
    ...(tools?.listChanged && { toolsListChanged: true }),
    ...(prompts?.listChanged && { promptsListChanged: true }),
    ...(resources?.listChanged && { resourcesListChanged: true }),
  }
  if (Object.keys(filter).length > 0) await client.listen(filter)
}

/** Rejects like the official client, and with a StartError if it is not installed. */
export async function openClient(at: URL, settings: ClientSettings, bearer: string | undefined): Promise<TestClient> {
  assertInstalled(['@modelcontextprotocol/client'], { what: 'a client of mcp-host/testing' })
  const sdk = await import('@modelcontextprotocol/client')
  const { revision = MODERN_REVISION, sse = false, answers } = settings
  const { client, inbox, responder, settle } = makeClient(sdk, revision, answers)
  const headers = { ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }), ...settings.headers }
  const http = sse ? undefined : new sdk.StreamableHTTPClientTransport(at, { requestInit: { headers } })
  const transport =
    http ?? new sdk.SSEClientTransport(new URL(`${at.href.replace(/\/$/, '')}/sse`), { requestInit: { headers } })
  try {
    await client.connect(transport as Transport)
    if (!isHandshakeRevision(revision)) await listenToLists(client)
  } catch (error) {
    await client.close().catch(() => undefined)
    throw withStatus(error)
  }
  let closing: Promise<void> | undefined
  async function end() {
    await http?.terminateSession().catch(() => undefined)
    await client.close()
  }
  function close() {
    closing ??= end()
    return closing
  }
  const fresh = { cacheMode: 'refresh' } as const
  return {
    url: at.href,
    revision: client.getNegotiatedProtocolVersion() ?? revision,
    sessionId: http?.sessionId,
    server: client.getServerVersion() as Implementation | undefined,
    instructions: client.getInstructions(),
    listTools: async () => (await client.listTools({}, fresh)).tools as unknown as Listed[],
    listResources: async () => (await client.listResources({}, fresh)).resources as unknown as Listed[],
    listPrompts: async () => (await client.listPrompts({}, fresh)).prompts as unknown as Listed[],
    callTool: async (name, args = {}, { signal } = {}) =>
      toolOutcome((await settle(client.callTool({ name, arguments: args }, signal && { signal }))) as CallToolResult),
    async readResource(uri) {
      const result = (await settle(client.readResource({ uri }, fresh))) as ReadResourceResult
      return { result, text: resourceText(result) }
    },
    async getPrompt(name, args = {}) {
      const result = (await settle(client.getPrompt({ name, arguments: { ...args } }))) as GetPromptResult
      return { result, text: promptText(result) }
    },
    request: (method, params = {}) => settle(client.request({ method, params }, ANY) as Promise<JsonObject>),
    async watch(uri) {
      if (isHandshakeRevision(revision)) await client.subscribeResource({ uri })
      else await client.listen({ resourceSubscriptions: [uri] })
    },
    asks: responder.asks,
    notifications: inbox.notifications,
    notified: inbox.notified,
    close,
    [Symbol.asyncDispose]: close,
  }
}

export function toolOutcome(result: CallToolResult) {
  const text = result.content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n')
  return { result, structured: result.structuredContent, text, isError: result.isError === true }
}

export const resourceText = ({ contents }: ReadResourceResult): string =>
  contents.flatMap(one => ('text' in one ? [one.text] : [])).join('\n')

export const promptText = ({ messages }: GetPromptResult): string =>
  messages.flatMap(({ content }) => (content.type === 'text' ? [content.text] : [])).join('\n')
