// Connects to a server of any protocol version: detects its era, and opens a session of a legacy server.
import { setTimeout as delay } from 'node:timers/promises'
import { Cancellation } from '../core/mcp/wire/cancellation.ts'
import { isObject } from '../core/mcp/wire/message.ts'
import type { JsonObject, ServerCapabilities } from '../core/mcp/wire/protocol.ts'
import { isHandshakeRevision, isModernRevision, LATEST_HANDSHAKE, type Revision } from '../core/mcp/wire/revisions.ts'
import { BaseConnection } from './connection.ts'
import type { CommandTarget, Connection, ConnectOptions, HttpTarget, Target } from './connection-types.ts'
import { RemoteError } from './errors.ts'
import { lowerCase } from './http/headers.ts'
import { type Link, TIMING, type Transport } from './http/link.ts'
import { createHttpTransport } from './http/streamable.ts'
import { createFetchWire, createPool, createPoolWire, type Wire } from './http/wire.ts'
import { MAX_MESSAGE } from './messages.ts'
import { startServerProcess } from './process/server-process.ts'

/** Default connection timeout, milliseconds. */
const CONNECT_TIMEOUT = 15_000
/** Time limit of the probe, milliseconds. A legacy server can ignore an unknown request. */
const PROBE_TIMEOUT = 3_000

const isCommand = (target: Target): target is CommandTarget => 'command' in target

/** Sends the headers of the target with each request. */
function withHeaders(wire: Wire, headers: HttpTarget['headers']): Wire {
  if (headers === undefined) return wire
  let lastHeaders: HttpTarget['headers']
  let lowerCased: Readonly<Record<string, string>> = {}
  let isEmpty = true
  return (request, cancellations) => {
    const current = typeof headers === 'function' ? headers() : headers
    if (current !== lastHeaders) {
      lowerCased = lowerCase(current)
      isEmpty = Object.keys(current).length === 0
    }
    lastHeaders = current
    return wire(isEmpty ? request : { ...request, headers: { ...lowerCased, ...request.headers } }, cancellations)
  }
}

interface Opened {
  readonly transport: Transport
  end(): Promise<void>
  /** Returns the last output of the program. */
  output(): string | undefined
}

async function openHttp(target: HttpTarget, options: ConnectOptions, connection: BaseConnection): Promise<Opened> {
  const { url, tls } = target
  const closing = new Cancellation()
  const ownPool = target.fetch || target.dispatcher ? undefined : await createPool(url, { tls })
  const dispatcher = target.dispatcher ?? ownPool
  const wire = target.fetch || !dispatcher ? createFetchWire(target.fetch ?? fetch) : createPoolWire(dispatcher)
  const debug = (text: string) => options.onDebug?.(text)
  const link: Link = {
    url,
    wire: withHeaders(wire, target.headers),
    userHeaders: target.userHeaders && (() => lowerCase(target.userHeaders?.() ?? {})),
    sessionCookies: target.sessionCookies,
    timing: { ...TIMING, retryTimeout: options.retryTimeout ?? 0 },
    receive: (text, exchange) => connection.receive(text, exchange),
    reopened: () => options.onReopened?.(),
    debug,
    // The network errors of `fetch` are TypeErrors.
    isFinal: error => target.fetch !== undefined && !(error instanceof TypeError),
    closing,
  }
  return {
    transport: createHttpTransport(link, connection.tools, target.transport ?? 'auto'),
    async end() {
      closing.abort(new RemoteError('closed', 'the connection is closed'))
      await ownPool?.close()
    },
    output: () => undefined,
  }
}

function openStdio(target: CommandTarget, options: ConnectOptions, connection: BaseConnection): Opened {
  const server = startServerProcess(target, MAX_MESSAGE, {
    line: line => connection.receiveLine(line),
    printed: line => options.onOutput?.(line),
    ended: error => connection.fail(error),
  })
  const transport: Transport = {
    perform: async ({ message: out }) => server.write(out.text),
    endSession: async () => undefined,
    sessionId: undefined,
    cancelsByClosing: () => false,
  }
  return { transport, end: server.end, output: server.output }
}

/** True if a failure does not reveal the era: failures of the network, credentials, or the server itself. */
function isInconclusive({ reason, status = 0 }: RemoteError): boolean {
  return (
    ['unreachable', 'lost', 'too-large', 'closed', 'cancelled'].includes(reason) ||
    [401, 403, 408, 429].includes(status) ||
    status >= 500
  )
}

function applyServerInfo(connection: BaseConnection, result: JsonObject, revision: Revision): void {
  const meta = isObject(result['_meta']) ? result['_meta'] : {}
  const server = result['serverInfo'] ?? meta['io.modelcontextprotocol/serverInfo']
  connection.era = isModernRevision(revision) ? 'modern' : 'legacy'
  connection.revision = revision
  const entries = Object.entries(isObject(server) ? server : {})
  connection.server = Object.fromEntries(entries.filter(([, value]) => typeof value === 'string'))
  connection.capabilities = (isObject(result['capabilities']) ? result['capabilities'] : {}) as ServerCapabilities
  connection.instructions = typeof result['instructions'] === 'string' ? result['instructions'] : undefined
}

/** Returns true for a modern server, false for a response that is typical of legacy servers. */
async function discover(connection: BaseConnection, signal: AbortSignal): Promise<boolean> {
  try {
    const result = await connection.request('server/discover', {}, { timeout: 0, maxTime: 0, signal })
    const versions = Array.isArray(result['supportedVersions']) ? result['supportedVersions'] : []
    const revision = versions.find(isModernRevision)
    // `initialize` can have succeeded in the same turn.
    if (revision === undefined || signal.aborted) return false
    applyServerInfo(connection, result, revision)
    return true
  } catch (error) {
    if (!(error instanceof RemoteError) || isInconclusive(error)) throw error
    return false
  }
}

async function initialize(
  connection: BaseConnection,
  { client, capabilities = {}, revision: fixed }: ConnectOptions,
  signal: AbortSignal,
  probing?: AbortController,
): Promise<void> {
  const protocolVersion = fixed ?? LATEST_HANDSHAKE
  connection.era = 'legacy'
  connection.revision = protocolVersion
  const params = { protocolVersion, capabilities, clientInfo: client }
  const result = await connection.request('initialize', params, { timeout: 0, maxTime: 0, signal })
  const { protocolVersion: version } = result
  if (!isHandshakeRevision(version) || (fixed !== undefined && version !== fixed))
    throw new RemoteError(
      'invalid',
      `the server supports only protocol version ${JSON.stringify(version)?.slice(0, 50)}`,
    )
  probing?.abort()
  applyServerInfo(connection, result, version)
  await connection.notify('notifications/initialized')
}

async function negotiate(connection: BaseConnection, options: ConnectOptions, signal: AbortSignal): Promise<void> {
  const { revision, era = revision && (isModernRevision(revision) ? 'modern' : 'legacy') } = options
  if (era === 'legacy') return initialize(connection, options, signal)
  const probing = new AbortController()
  const probe = discover(connection, AbortSignal.any([signal, probing.signal]))
  const probed = () => (era === 'modern' ? probe : Promise.race([probe, delay(PROBE_TIMEOUT, undefined, probing)]))
  try {
    if (await probed()) return
    if (revision !== undefined)
      throw new RemoteError('invalid', `the server does not support protocol version ${revision}`)
    await initialize(connection, options, signal, probing).catch(async error => {
      // A modern server that started slowly responds to the probe late, and refuses `initialize`.
      if (!(await probed().catch(() => false))) throw error
    })
  } finally {
    probing.abort()
  }
}

async function open(target: Target, options: ConnectOptions): Promise<Connection> {
  const { connectTimeout = CONNECT_TIMEOUT, signal } = options
  const connection = new BaseConnection(options)
  const opened = isCommand(target)
    ? openStdio(target, options, connection)
    : await openHttp(target, options, connection)
  connection.attach(opened.transport, opened.end)
  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(), connectTimeout)
  const all = signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal
  try {
    await negotiate(connection, options, all)
    connection.markOpen()
    return connection
  } catch (error) {
    const reason = timeout.signal.aborted
      ? new RemoteError('timeout', `no MCP handshake within ${connectTimeout / 1_000} s`, { output: opened.output() })
      : error
    await connection.close()
    throw reason
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Rejects with a `RemoteError` if the server cannot be reached, refuses the connection, or sends no handshake in time.
 * The process of a failed program has then ended.
 */
export async function connect(target: Target, options: ConnectOptions): Promise<Connection> {
  try {
    return await open(target, options)
  } catch (error) {
    // Some legacy programs exit when they receive an unknown request.
    const isProbed = options.era === undefined && options.revision === undefined
    if (!isCommand(target) || !isProbed || !(error instanceof RemoteError) || error.reason !== 'lost') throw error
    return open(target, { ...options, era: 'legacy' })
  }
}
