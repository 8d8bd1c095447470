// A call that requires a login of its caller: an elicitation with the URL, then the call again.

import { type CallContext, HostError, ToolError } from '../../../core/index.ts'
import { type Clock, isObject, type Logger, type Timer } from '../../../core/plugin.ts'
import { callOf, InputRequired, missingCapability, type Question, roundOf } from '../../../core/transport.ts'

const MAX_WAITING = 200
const MAX_PER_USER = 5
/** Milliseconds. */
const MAX_WAIT = 120_000
/** Interval of checks for logins that another node finished. */
const CHECK_PAUSE = 1_000

interface Waiting {
  readonly calls: Set<(isDone: boolean) => void>
  check(): void
}

interface WaitRequest {
  /** The login. */
  readonly key: string
  /** The user. */
  readonly owner: string
  readonly isDone: () => Promise<boolean>
  readonly signal: AbortSignal
}

export function createLoginWaits(clock: Clock, log: Logger) {
  const logins = new Map<string, Waiting>()
  const owners = new Map<string, number>()
  let total = 0

  function count(owner: string, by: 1 | -1) {
    total += by
    const left = (owners.get(owner) ?? 0) + by
    if (left > 0) owners.set(owner, left)
    else owners.delete(owner)
  }

  function open(key: string, isDone: WaitRequest['isDone']): Waiting {
    const calls: Waiting['calls'] = new Set()
    let timer: Timer | undefined
    let isChecking = false
    async function check() {
      clock.clear(timer)
      if (isChecking) return
      isChecking = true
      // A failure can be temporary: the call reports it when it runs again.
      const done = await isDone().catch(() => false)
      isChecking = false
      if (done) for (const end of [...calls]) end(true)
      else if (calls.size > 0) timer = clock.setTimeout(() => void check(), CHECK_PAUSE).unref()
    }
    const waiting = { calls, check: () => void check() }
    logins.set(key, waiting)
    return waiting
  }

  return {
    /** Resolves to false after two minutes, or if the call is cancelled. Throws `tooManyRequests` above the limits. */
    async wait({ key, owner, isDone, signal }: WaitRequest): Promise<boolean> {
      if (total >= MAX_WAITING || (owners.get(owner) ?? 0) >= MAX_PER_USER) {
        log.warn({ code: 'MH3457', waiting: total }, 'refused a call, because too many calls wait for a login')
        const detail = 'too many calls wait for a login: finish the login, or cancel a call, then call the tool again'
        throw new HostError('tooManyRequests', { detail })
      }
      const known = logins.get(key)
      const waiting = known ?? open(key, isDone)
      count(owner, 1)
      let end: (isDone: boolean) => void = () => undefined
      const stop = () => end(false)
      const timer = clock.setTimeout(stop, MAX_WAIT).unref()
      try {
        return await new Promise<boolean>(resolve => {
          end = resolve
          waiting.calls.add(end)
          signal.addEventListener('abort', stop, { once: true })
          if (signal.aborted) stop()
          if (!known) waiting.check()
        })
      } finally {
        clock.clear(timer)
        signal.removeEventListener('abort', stop)
        waiting.calls.delete(end)
        if (waiting.calls.size === 0) logins.delete(key)
        count(owner, -1)
      }
    },
    /** Checks at once, after a login on this node. */
    wake: (key: string): void => logins.get(key)?.check(),
  }
}

const KEY = 'login'

/** Thrown for a caller without tokens of an API. */
export class LoginRequired extends ToolError {
  /** Creates a URL for the caller's browser. */
  readonly createUrl: () => Promise<string>
  /** Resolves when the caller has logged in. Rejects with a ToolError after a time limit, or if the call is cancelled. */
  readonly wait: (ctx: CallContext) => Promise<void>
  readonly #what: string

  constructor(what: string, { createUrl, wait }: Pick<LoginRequired, 'createUrl' | 'wait'>) {
    super(`This requires a login at ${what}. Call a tool of it first.`)
    this.#what = what
    this.createUrl = createUrl
    this.wait = wait
  }

  /** Sends the URL as an elicitation. Throws it as a ToolError for clients without URL elicitation. */
  async ask(ctx: CallContext): Promise<InputRequired> {
    const call = callOf(ctx)
    const url = await this.createUrl()
    const how = `Open this URL within 10 minutes, on any device where you can sign in to this service: ${url}`
    const message = `Log in at ${this.#what}. ${how} If the call ends before you finish, call the tool again.`
    const params = { mode: 'url' as const, url, message }
    const question: Question = { method: 'elicitation/create', params }
    // A request in another round would prevent this call from continuing.
    const canAsk = call?.asks && !roundOf(ctx) && !missingCapability(question, call.client.capabilities)
    if (canAsk) return new InputRequired({ [KEY]: question }, { [KEY]: true })
    throw new ToolError(`This requires a login of the user at ${this.#what}. ${how} Then call the tool again.`)
  }

  refused(): ToolError {
    return new ToolError(`The user did not log in at ${this.#what}.`)
  }
}

/** Returns the client's response to the URL; undefined if the URL was not sent in the last round. */
function responseOf(ctx: CallContext): Readonly<Record<string, unknown>> | undefined {
  const { state, responses = {} } = roundOf(ctx) ?? {}
  const response = isLoginRound(state) ? responses[KEY] : undefined
  return isObject(response) ? response : undefined
}

/** True for the round state of a login: the call has not started yet. */
export const isLoginRound = (state: unknown): boolean => isObject(state) && state[KEY] === true

/** Runs a call. If it requires a login, requests the login from the client, and runs the call again. */
export async function withLogin<Value>(ctx: CallContext, run: () => Promise<Value>): Promise<Value | InputRequired> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof LoginRequired)) throw error
    const response = responseOf(ctx)
    if (!response) return error.ask(ctx)
    if (response['action'] !== 'accept') throw error.refused()
    await error.wait(ctx)
    return run()
  }
}
