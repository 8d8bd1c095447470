// Relays lines between a client and a remote server until the input ends. Only tool lists are changed.
import type { Readable, Writable } from 'node:stream'
import { matchesGlob } from '../../core/mcp/glob.ts'
import { Cancellation } from '../../core/mcp/wire/cancellation.ts'
import { isObject } from '../../core/mcp/wire/message.ts'
import { createOutput, type Line, readLines } from '../../plugins/transport-stdio/lines.ts'
import { createToolHeaders } from '../../remote/http/headers.ts'
import { type Link, sleep, type Timing } from '../../remote/http/link.ts'
import { createHttpTransport, type TransportName } from '../../remote/http/streamable.ts'
import { createFetchWire } from '../../remote/http/wire.ts'
import {
  Exchange,
  type Fields,
  type Id,
  type Outgoing,
  type OutgoingNotification,
  parse,
  readMessages,
  responseId,
} from '../../remote/messages.ts'
import { protectNumbers, restoreNumbers } from '../exact-numbers.ts'
import { type ClientLine, errorLine, Failure, onOneLine, ownVersion, readOutgoing } from './messages.ts'

export function createIgnoredTools(globs: readonly string[]) {
  // Globs take linear time, unlike regular expressions, and names of a server can be long.
  const isNamed = (name: unknown) => typeof name === 'string' && globs.some(glob => matchesGlob(glob, name))

  function checkTool({ method, params: { name } }: OutgoingNotification) {
    if (method !== 'tools/call') return
    if (typeof name !== 'string')
      throw new Failure('ignored', 'with --ignore-tool, the tool name of a call must be a string', { code: -32_602 })
    if (isNamed(name))
      throw new Failure('ignored', `the tool ${JSON.stringify(name)} is left out by --ignore-tool`, { code: -32_602 })
  }

  return {
    isIgnored: (tool: unknown): boolean => isNamed((tool as Fields | null)?.['name']),
    screen(out: ClientLine): Outgoing {
      if (globs.length === 0 || out.calls.length === 0) return out
      out.calls.forEach(checkTool)
      // Serialised again, because a server could resolve duplicate keys differently.
      return { ...out, text: restoreNumbers(JSON.stringify(parse(protectNumbers(out.text)))) }
    },
  }
}

const MAX_LINE = 16 * 1024 * 1024
/** Maximum pending requests, and maximum queued lines without a response. */
const MAX_PENDING = 1_000
/** Error code for an unsupported protocol version (2026-07-28 basic/versioning). */
const UNSUPPORTED_VERSION = -32_022
/** Time limits after the end of input, for running requests and for closing the session, milliseconds. */
const DRAIN_TIME = 10_000
const CLOSE_TIMEOUT = 2_000

interface RelaySettings {
  readonly url: string
  readonly fetch: typeof fetch
  readonly transport: TransportName
  readonly timing: Timing
  readonly ignored: ReturnType<typeof createIgnoredTools>
  explain(thrown: unknown): Failure
  /** True for errors that are not connection failures, such as a failed login. */
  isFinal(thrown: unknown): boolean
  debug(what: string): void
  refusedInitialize(): void
}

export type Relay = ReturnType<typeof startRelay>

function textOf(line: Line): string {
  if ('text' in line) return line.text
  if (line.fault === 'not UTF-8') throw new Failure('no JSON', 'the line is not UTF-8', { code: -32_700 })
  throw new Failure('too large', `a line has at most ${MAX_LINE} bytes`)
}

export function startRelay(settings: RelaySettings, ends: { input: Readable; output: Writable }) {
  const { url, ignored, debug, timing } = settings
  const closing = new Cancellation()
  const forceStop = new Cancellation()
  const pending = new Map<Id, Exchange>()
  let queuedBytes = 0
  const tools = createToolHeaders(debug)
  const output = createOutput(ends.output, { onClosed: () => end() })
  const link: Link = {
    url,
    wire: createFetchWire(settings.fetch),
    timing,
    receive,
    reopened: () => undefined,
    debug,
    isFinal: settings.isFinal,
    closing,
  }
  const transport = createHttpTransport(link, tools, settings.transport)
  /** Holds back other messages of a session until `initialize` is complete. */
  let pauseGate: Promise<void> = Promise.resolve()

  function findVisible(message: Fields, method: string | undefined, modern: boolean): ReadonlySet<unknown> | undefined {
    const { result } = message
    if (method !== 'tools/list' || !isObject(result) || !Array.isArray(result['tools'])) return undefined
    const usable = modern ? tools.learn(result['tools']) : result['tools']
    const visible = new Set(usable.filter(tool => !ignored.isIgnored(tool)))
    return result['tools'].every(tool => visible.has(tool)) ? undefined : visible
  }

  /** Rewrites one message of a batch, or a filtered tool list, and preserves the server's numbers. */
  function rewrite(text: string, index: number, message: Fields, visible: ReadonlySet<unknown> | undefined): string {
    const exact = readMessages(protectNumbers(text))[index] ?? message
    const [{ result }, { result: before }] = [exact, message]
    if (visible === undefined || !isObject(result) || !isObject(before)) return restoreNumbers(JSON.stringify(exact))
    const [all, originals] = [result['tools'] as unknown[], before['tools'] as unknown[]]
    const remaining = all.filter((_, at) => visible.has(originals[at]))
    return restoreNumbers(JSON.stringify({ ...exact, result: { ...result, tools: remaining } }))
  }

  async function receive(text: string): Promise<void> {
    const messages = readMessages(text)
    if (messages.length === 0) return debug('ignored a message of the server that is not JSON-RPC')
    for (const [index, message] of messages.entries()) {
      const id = responseId(message)
      const exchange = id === undefined ? undefined : pending.get(id)
      if (id !== undefined && !exchange) continue
      const method = id === undefined ? undefined : exchange?.open.get(id)?.method
      const visible = findVisible(message, method, exchange?.version !== undefined)
      const isWhole = visible === undefined && messages.length === 1
      output.respond(isWhole ? onOneLine(text) : rewrite(text, index, message, visible))
      if (id === undefined) continue
      pending.delete(id)
      exchange?.open.delete(id)
    }
    await output.drained()
  }

  function refuse(id: Id | undefined, failure: Failure) {
    output.respond(errorLine(id, failure))
  }

  function fail(exchange: Exchange, thrown: unknown) {
    if (closing.aborted) return
    const failure = settings.explain(thrown)
    if (failure.code === UNSUPPORTED_VERSION && exchange.message.requests[0]?.method === 'initialize')
      settings.refusedInitialize()
    if (exchange.message.requests.length === 0) debug(`could not send a notification: ${failure.message}`)
    for (const id of exchange.open.keys()) {
      pending.delete(id)
      refuse(id, failure)
    }
    exchange.open.clear()
  }

  const tooManyError = (what: string) =>
    new Failure('too many', `at most ${MAX_PENDING} ${what} at once`, { retryable: true })

  function check({ requests }: Outgoing) {
    const ids = new Set<Id>()
    for (const { id } of requests) {
      if (pending.has(id) || ids.has(id))
        throw new Failure('id in use', `request ${JSON.stringify(id)} is already running`, {
          code: -32_600,
        })
      ids.add(id)
    }
    if (pending.size + ids.size > MAX_PENDING) throw tooManyError('requests wait')
    if (ids.size === 0 && queuedBytes >= MAX_PENDING) throw tooManyError('notifications are pending')
  }

  /** False if cancellation is signalled by closing the response instead of a message. */
  function cancel(id: unknown): boolean {
    const exchange = pending.get(id as Id)
    if (!exchange) return true
    pending.delete(id as Id)
    // Pending messages are sent first.
    setImmediate(() => exchange.abandon(id as Id, 'the client cancelled the request'))
    return exchange.version === undefined
  }

  function send(out: Outgoing) {
    const { requests, notification } = out
    if (notification?.method === 'notifications/cancelled' && !cancel(notification.params['requestId'])) return
    const [first] = requests
    const version = first && ownVersion(first)
    const exchange = new Exchange(out, { version })
    for (const { id } of requests) pending.set(id, exchange)
    const part = requests.length === 0 ? 1 : 0
    queuedBytes += part
    debug(
      `to the server: ${notification?.method ?? requests.map(({ method, id }) => `${method} ${JSON.stringify(id)}`).join(', ')}`,
    )
    const carried = (version === undefined ? pauseGate : Promise.resolve())
      .then(() => transport.perform(exchange))
      .catch(thrown => fail(exchange, thrown))
      .finally(() => {
        queuedBytes -= part
      })
    if (first?.method === 'initialize' || notification?.method === 'notifications/initialized') pauseGate = carried
  }

  function read(line: Line) {
    let out: ClientLine | undefined
    try {
      const text = textOf(line)
      if (text.trim() === '') return
      out = readOutgoing(text)
      check(out)
      send(ignored.screen(out))
    } catch (thrown) {
      const failure = settings.explain(thrown)
      const ids = new Set(out?.requests.map(({ id }) => id))
      for (const id of ids.size > 0 ? ids : [undefined]) refuse(id, failure)
    }
  }

  async function drain() {
    const until = performance.now() + DRAIN_TIME
    while (pending.size > 0 && performance.now() < until && !forceStop.aborted) {
      await sleep(20, forceStop).catch(() => undefined)
    }
    // Opening a session can hang, or wait for a login, so the farewell has a time limit.
    await Promise.race([pauseGate, sleep(CLOSE_TIMEOUT, forceStop).catch(() => undefined)])
    const closeTimeout = new Cancellation()
    const timer = setTimeout(() => closeTimeout.abort(new Error('the server did not respond in time')), CLOSE_TIMEOUT)
    await transport.endSession(closeTimeout).catch(thrown => debug(`the session was not ended: ${thrown}`))
    clearTimeout(timer)
    closing.abort(new Error('the relay has ended'))
    await output.end()
  }

  async function readAll() {
    for await (const line of readLines(ends.input, MAX_LINE)) {
      if (forceStop.aborted) break
      read(line)
      await output.drained()
    }
  }

  function end() {
    forceStop.abort(new Error('the relay ends'))
    ends.input.destroy()
  }

  const ended = readAll().then(drain)
  return { ended, end }
}
