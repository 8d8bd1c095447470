// A client of an older revision and a server of 2026-07-28: what the client says is answered here, or sent in the newer
// revision; what comes back is told in the older one.
import { errorText } from '../../../core/http/errors.ts'
import { isObject } from '../../../core/mcp/is-object.ts'
import { LOG_LEVELS, type LogLevel } from '../../../core/mcp/protocol.ts'
import type { Timing } from '../link.ts'
import { Failure, type Fields, type Id, type Outgoing, parse, type Request, readOutgoing } from '../messages.ts'
import { createCalls } from './calls.ts'
import { createChanges } from './changes.ts'
import type { Opening } from './opening.ts'
import type { Port } from './port.ts'
import { createQuestions } from './questions.ts'

/** Requests of the client that are not answered yet. */
const MAX_RUNNING = 1_000

export interface ConversationParts {
  readonly port: Port
  readonly timing: Timing
  readonly signal: AbortSignal
  /** To the client; `jsonrpc` is added. */
  tell(message: Fields): void
  note(what: string): void
}

export interface Conversation {
  /** A line of the client. Throws a Failure for one that cannot be taken. */
  take(out: Outgoing): void
  /** What comes from the server and answers nothing of the translation's own. */
  hear(message: Fields): void
  /** The client says nothing more: what it was asked fails, what runs goes on. */
  end(): void
}

const refuse = (code: number, message: string) => new Failure('refused', message, { code })

/** Methods that the newer revision has and the client's has not, or the other way about. */
const ELSEWHERE = /^(?:tasks\/|server\/discover$|subscriptions\/listen$)/

export function createConversation(opening: Opening, parts: ConversationParts): Conversation {
  const { tell, note } = parts
  let logLevel: LogLevel | undefined
  const running = new Map<Id, AbortController>()
  const questions = createQuestions(opening, tell)
  const calls = createCalls(opening, { ...parts, questions, logLevel: () => logLevel })
  const changes = createChanges(opening, parts)
  const { capabilities } = opening

  function setLevel({ level }: Fields): Fields {
    if (!isObject(capabilities['logging'])) throw refuse(-32_601, 'the server does not log to its clients')
    const known = LOG_LEVELS.find(one => one === level)
    if (known === undefined) throw refuse(-32_602, `level is one of ${LOG_LEVELS.join(', ')}`)
    logLevel = known
    return {}
  }

  async function watch({ uri }: Fields, change: (uri: string) => Promise<void>): Promise<Fields> {
    const { resources } = capabilities
    if (!isObject(resources) || resources['subscribe'] !== true)
      throw refuse(-32_601, 'the server does not tell of changes of its resources')
    if (typeof uri !== 'string') throw refuse(-32_602, 'uri must be a text')
    await change(uri)
    return {}
  }

  async function answer(request: Request, signal: AbortSignal): Promise<Fields> {
    const { method, params } = request
    if (method === 'ping') return {}
    if (method === 'logging/setLevel') return setLevel(params)
    if (method === 'resources/subscribe') return watch(params, changes.subscribe)
    if (method === 'resources/unsubscribe') return watch(params, changes.unsubscribe)
    if (ELSEWHERE.test(method))
      throw refuse(-32_601, `the server speaks ${opening.version}, where ${method} of ${opening.revision} has no like`)
    return calls.carry(request, signal)
  }

  async function serve(request: Request): Promise<void> {
    const { id } = request
    const end = new AbortController()
    running.set(id, end)
    try {
      const result = await answer(request, end.signal)
      if (!end.signal.aborted) tell({ id, result })
    } catch (thrown) {
      if (end.signal.aborted) return
      const failure = thrown instanceof Failure ? thrown : new Failure('failed', errorText(thrown))
      tell({ id, error: { code: failure.code, message: failure.message, data: failure.data } })
    } finally {
      if (running.get(id) === end) running.delete(id)
    }
  }

  function start(request: Request) {
    if (running.has(request.id))
      throw new Failure('id in use', `a request with the id ${JSON.stringify(request.id)} is running`, {
        code: -32_600,
      })
    if (running.size >= MAX_RUNNING)
      throw new Failure('too many', `at most ${MAX_RUNNING} requests wait at once`, { retryable: true })
    void serve(request)
  }

  function heed({ method, params }: Omit<Request, 'id'>) {
    if (method === 'notifications/initialized') return changes.start()
    if (method === 'notifications/cancelled') {
      const id = params['requestId'] as Id
      running.get(id)?.abort(new Error('the client cancelled the request'))
      running.delete(id)
      return
    }
    note(`${opening.version} has no ${method}; it was left out`)
  }

  function takeBatch(messages: readonly unknown[]) {
    if (!opening.rules.batches) throw refuse(-32_600, `${opening.revision} has no batches`)
    for (const message of messages) take(readOutgoing(JSON.stringify(message)))
  }

  function take({ text, requests: [request], notification }: Outgoing) {
    const message = text.startsWith('{') && request ? undefined : parse(text)
    if (Array.isArray(message)) return takeBatch(message)
    if (request) return start(request)
    if (notification) return heed(notification)
    if (isObject(message) && !questions.settle(message)) note('an answer of the client that nobody waits for')
  }

  return {
    take,
    hear(message) {
      const { id, method, params } = message
      // Its servers ask nothing of their own.
      if (id !== undefined) return note(`${opening.version} has no requests of servers; ${String(method)} was left out`)
      if (changes.hear(message)) return
      if (method === 'notifications/progress' && isObject(params) && !calls.isAhead(params)) return
      // Whatever else the server may say by itself is of its subscriptions.
      if (typeof method === 'string' && method !== 'notifications/cancelled') tell(message)
    },
    end() {
      questions.end()
      changes.end()
    },
  }
}
