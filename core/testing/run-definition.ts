// Runs one definition in a host without a listener, with test responses.
import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { openAccess } from '../access/authorize.ts'
import { makeClaims, readUser, type TestUser } from '../access/claims.ts'
import { builtInContext, createHost } from '../create-host.ts'
import type { Host } from '../host.ts'
import { HostError } from '../http/errors.ts'
import { definePlugin } from '../internal.ts'
import type { Services } from '../internal-host.ts'
import type { User } from '../kernel/user.ts'
import type { Call, CallRequest } from '../mcp/calls/call.ts'
import { isHostKey } from '../mcp/definitions/catalog-item.ts'
import { createChangeBus } from '../mcp/definitions/change-bus.ts'
import {
  type BuiltInContext,
  type CallContext,
  type Definition,
  kindOf,
  type ToolDefinition,
} from '../mcp/definitions/define.ts'
import type { McpRoute } from '../mcp/routes/routes.ts'
import { Cancellation } from '../mcp/wire/cancellation.ts'
import { resultTypeOf } from '../mcp/wire/message.ts'
import { type ClientCapabilities, type JsonObject, type LogLevel, META } from '../mcp/wire/protocol.ts'
import { isHandshakeRevision, MODERN_REVISION, REVISIONS, type Revision } from '../mcp/wire/revisions.ts'
import { createMemoryBus } from '../store/memory-bus.ts'
import { type Answers, type Ask, createResponder, type Responder } from './answers.ts'
import { CAPABILITIES } from './test-client.ts'
import { createTestLog, type LoggedLine, type RecordedChange, recordChanges } from './test-log.ts'

/** The caller and client of a test call. */
export interface RunSettings {
  /** Default: an anonymous caller. */
  user?: TestUser
  answers?: Answers
  /** Declared client capabilities. Default: all that handlers can use. */
  capabilities?: ClientCapabilities
  /** Default: the newest, in which a handler restarts after a client request. */
  revision?: Revision
  params?: Readonly<Record<string, string>>
  /** Lower-case names. */
  headers?: Readonly<IncomingHttpHeaders>
  /** The id of `ctx.session`. Default: none. */
  session?: string
  /** Members of `ctx` from plugins. Default: their values on routes without the plugin. */
  context?: Partial<BuiltInContext> & Readonly<Record<string, unknown>>
  signal?: AbortSignal
  onProgress?: (report: RunEffects['progress'][number]) => void
}

export interface RunEffects {
  /** Messages of `ctx.log`, all levels, in order. */
  readonly logs: ReadonlyArray<{ readonly level: LogLevel; readonly data: unknown; readonly logger?: string }>
  readonly progress: ReadonlyArray<{ readonly progress: number; readonly total?: number; readonly message?: string }>
  readonly asks: readonly Ask[]
  readonly changes: readonly RecordedChange[]
}

const CLIENT = { name: 'test-client', version: '1.0.0' }

interface TestRun {
  readonly lines: readonly LoggedLine[]
  readonly host: Host
  readonly services: Services
  readonly route: McpRoute
  readonly changes: readonly RecordedChange[]
}

const ISSUER = 'https://issuer.test'

function makeUser(user: TestUser): User {
  const made = readUser({ iss: ISSUER, ...makeClaims(user) }, ISSUER)
  if (!made) throw new TypeError('a user needs a subject or a clientId: omit both for "tester", or set one')
  return made
}

function withoutKeys(definition: ToolDefinition): ToolDefinition {
  const tool = { ...definition }
  for (const key of Object.keys(tool)) if (!isHostKey(key)) Reflect.deleteProperty(tool, key)
  return tool
}

function withoutIsolation(definition: Definition): Definition {
  if (kindOf(definition) !== 'tool') return definition
  const { isolate, ...tool } = withoutKeys(definition as ToolDefinition)
  if (isolate === undefined) return tool
  const handler = tool.handler as (args: unknown, ctx: CallContext) => unknown
  const cloned = async (args: unknown, ctx: CallContext) => structuredClone(await handler(args, ctx))
  return { ...tool, handler: cloned as ToolDefinition['handler'] }
}

async function openTestRun(definition: Definition, { context = {} }: RunSettings): Promise<TestRun> {
  const bus = createChangeBus(createMemoryBus('test'))
  let found: Pick<TestRun, 'services' | 'route'> | undefined
  const caller = definePlugin<Record<never, never>>({
    // Access depends on the config: use `testHost` to test it.
    provides: ['access', 'policy'],
    context: Object.fromEntries(Object.keys(context).map(name => [name, builtInContext.get(name)?.value])),
    setup(host) {
      host.revisions(() => REVISIONS)
      host.provide('access', openAccess)
      host.provide('changeBus', bus)
      for (const [name, value] of Object.entries(context)) host.context(name, () => value)
      host.onReady(() => {
        found = { services: host.services, route: host.routes[0] as McpRoute }
      })
    },
  })
  const log = createTestLog()
  const host = await createHost(
    {
      server: { name: 'test-host', version: '1.0.0' },
      secrets: [randomBytes(32).toString('base64')],
      toolsets: { tested: [definition] },
      routes: { '/': { toolsets: 'tested' } },
      plugins: { caller: caller() },
    },
    { log, purpose: 'test' },
  )
  if (!found) throw new Error('the host has no services')
  const changes: RecordedChange[] = []
  recordChanges(bus, changes)
  return { host, ...found, changes, lines: log.lines }
}

async function sendCall(
  { services, route }: TestRun,
  method: string,
  params: JsonObject,
  settings: RunSettings,
  { responder, send }: { responder: Responder; send: (message: string) => void },
): Promise<object> {
  const { revision = MODERN_REVISION, headers = {}, session, capabilities = CAPABILITIES } = settings
  const user = settings.user && makeUser(settings.user)
  const signal = settings.signal ?? new AbortController().signal
  const facts = { route, params: settings.params ?? {}, user, headers, ip: '127.0.0.1', signal: () => signal }
  const offer = await services.makeOffer({
    ...facts,
    authorized: true,
    ...(session !== undefined && { sessionId: session }),
  })
  const handshake = isHandshakeRevision(revision)
  let unanswered: unknown
  const asks: CallRequest['asks'] = handshake
    ? {
        request: ({ method, params }) =>
          responder.answer(method, params).catch(error => {
            unanswered = error
            throw error
          }),
      }
    : 'input_required'
  const meta = {
    progressToken: 'progress',
    ...(!handshake && {
      [META.protocolVersion]: revision,
      [META.clientInfo]: CLIENT,
      [META.clientCapabilities]: capabilities,
    }),
  }
  const call = (more: JsonObject): Call =>
    services.createCall({
      id: 1,
      method,
      params: { ...params, ...more, _meta: meta },
      revision,
      offer,
      session: undefined,
      client: { info: CLIENT, capabilities },
      user,
      headers,
      asks,
      logLevel: 'debug',
      channel: { send, cancellation: Cancellation.of(signal), disconnect: () => undefined },
    })

  let result = await services.dispatch(call({}))
  if (unanswered !== undefined) throw unanswered
  while (resultTypeOf(result)?.name === 'input_required') {
    const { inputRequests, requestState } = result as {
      inputRequests: Record<string, { method: string; params: unknown }>
      requestState: string
    }
    const inputResponses: JsonObject = {}
    for (const [key, request] of Object.entries(inputRequests)) {
      inputResponses[key] = await responder.answer(request.method, request.params, key)
    }
    result = await services.dispatch(call({ inputResponses, requestState }))
  }
  return result
}

export async function runDefinition<Result extends object>(
  definition: Definition,
  method: string,
  params: JsonObject,
  settings: RunSettings = {},
): Promise<{ readonly result: Result; readonly error: unknown; readonly effects: RunEffects }> {
  const testRun = await openTestRun(withoutIsolation(definition), settings)
  const logs: Array<RunEffects['logs'][number]> = []
  const progress: Array<RunEffects['progress'][number]> = []
  const responder = createResponder(settings.answers)
  function send(text: string) {
    const message = JSON.parse(text) as { method: string; params: never }
    if (message.method === 'notifications/message') logs.push(message.params)
    if (message.method !== 'notifications/progress') return
    const { progressToken: _, ...reported } = message.params as RunEffects['progress'][number] & {
      progressToken: unknown
    }
    progress.push(reported)
    settings.onProgress?.(reported)
  }
  try {
    const result = await sendCall(testRun, method, params, settings, { responder, send })
    const error = testRun.lines.find(({ err }) => err !== undefined)?.['err']
    // The handler did not await a request to the client.
    if (error !== undefined && !Reflect.get(result, 'isError')) throw error
    const effects = { logs, progress, asks: responder.asks, changes: [...testRun.changes] }
    return { result: JSON.parse(JSON.stringify(result)) as Result, error, effects }
  } catch (error) {
    // Tests need the original error, which clients do not receive.
    throw HostError.is(error) && error.kind === 'internal' && error.cause !== undefined ? error.cause : error
  } finally {
    await testRun.host.close({ grace: 0 })
  }
}
