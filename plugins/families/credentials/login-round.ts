// A call that requires a login of its caller: an elicitation with the URL, then the call again.
import { type CallContext, ToolError } from '../../../core/index.ts'
import { isObject } from '../../../core/plugin.ts'
import { callOf, type InputRequest, InputRequired, missingCapability, roundOf } from '../../../core/transport.ts'

const KEY = 'login'

/** Thrown for a caller without tokens of an API. */
export class LoginRequired extends ToolError {
  /** Creates a URL for the caller's browser. */
  readonly createUrl: () => Promise<string>
  /** Resolves when the caller has logged in. Rejects with a ToolError after a time limit, or if the call is cancelled. */
  readonly wait: (ctx: CallContext) => Promise<void>
  readonly #apiName: string

  constructor(apiName: string, { createUrl, wait }: Pick<LoginRequired, 'createUrl' | 'wait'>) {
    super(`This requires a login at ${apiName}. Call a tool of it first.`)
    this.#apiName = apiName
    this.createUrl = createUrl
    this.wait = wait
  }

  /** Sends the URL as an elicitation. Throws it as a ToolError for clients without URL elicitation. */
  async requestLogin(ctx: CallContext): Promise<InputRequired> {
    const call = callOf(ctx)
    const url = await this.createUrl()
    const instruction = `Open this URL within 10 minutes, on any device where you can sign in to this service: ${url}`
    const message = `Log in at ${this.#apiName}. ${instruction} If the call ends before you finish, call the tool again.`
    const params = { mode: 'url' as const, url, message }
    const request: InputRequest = { method: 'elicitation/create', params }
    // A request in another round would prevent this call from continuing.
    const canElicit = call?.asks && !roundOf(ctx) && !missingCapability(request, call.client.capabilities)
    if (canElicit) return new InputRequired({ [KEY]: request }, { [KEY]: true })
    throw new ToolError(
      `This requires a login of the user at ${this.#apiName}. ${instruction} Then call the tool again.`,
    )
  }

  createRefusal(): ToolError {
    return new ToolError(`The user did not log in at ${this.#apiName}.`)
  }
}

/** Returns the client's response to the URL; undefined if the URL was not sent in the last round. */
function readResponse(ctx: CallContext): Readonly<Record<string, unknown>> | undefined {
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
    const response = readResponse(ctx)
    if (!response) return error.requestLogin(ctx)
    if (response['action'] !== 'accept') throw error.createRefusal()
    await error.wait(ctx)
    return run()
  }
}
