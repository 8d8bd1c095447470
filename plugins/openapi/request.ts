// Calls one operation of an API: builds the request, sends it with retries and redirects, and converts the response.
import { type CallContext, type CallToolResult, ToolError } from '../../core/index.ts'
import { FairQueue, type Queued, type Services } from '../../core/internal.ts'
import { type Clock, errorText, HostError, type Logger } from '../../core/plugin.ts'
import { type Cancellation, callOf, contextCancellation, limitOwnerOf } from '../../core/transport.ts'
import { readSecret, readStepUp, type SecretSource } from '../families/credentials/index.ts'
import { type AddedCredentials, type CredentialPlan, type OperationCredentials, renewTokens } from './credentials.ts'
import { isJsonType } from './media-types.ts'
import type { Operation, OperationArguments } from './operation.ts'
import { encodeBody } from './request-body.ts'
import { headerOf, type ReceivedResponse, SendFailure, type StepLimit, type Stoppable, send } from './request-send.ts'
import { createCookies, createHeaders, createPath, createQuery } from './request-target.ts'
import { ArgumentFault } from './request-values.ts'
import { type ResponseLimits, toToolResult } from './response.ts'

type Connections = Awaited<ReturnType<Services['openConnections']>>

export interface RequesterOptions extends ResponseLimits {
  /** The config path of the document, for messages. */
  readonly what: string
  readonly allowHosts: readonly string[]
  /** Sent with each request. */
  readonly headers: Readonly<Record<string, SecretSource>>
  /** Lower-case names of headers of the caller. */
  readonly forwardHeaders: readonly string[]
  readonly credentials: CredentialPlan
  /** Time limit of a call, with retries and queue time, milliseconds. */
  readonly timeout: number
  readonly retries: number
  /** Maximum concurrent requests. */
  readonly concurrency: number
  readonly services: () => Pick<Services, 'openConnections' | 'slot'>
  readonly clock: Clock
  readonly log: Logger
}

export type Requester = ReturnType<typeof createRequester>

type CompiledOperation = ReturnType<typeof compileOperation>

function compileOperation(operation: Operation, credentials: OperationCredentials, fixedNames: readonly string[]) {
  const { owned } = credentials
  return {
    operation,
    origin: new URL(operation.baseUrl).origin,
    method: operation.method.toUpperCase(),
    accept: acceptHeader(operation),
    credentials,
    path: createPath(operation),
    query: createQuery(operation, owned.query),
    headers: createHeaders(operation, new Set([...fixedNames, ...owned.header])),
    cookies: createCookies(operation, owned.cookie),
  }
}

type BuiltRequest = ReturnType<typeof buildRequest>

/** Builds a request from arguments, without credentials. */
function buildRequest(one: CompiledOperation, args: OperationArguments) {
  try {
    const headers: string[] = []
    one.headers(args, headers)
    const body = encodeBody(one.operation, args)
    return { path: one.path(args), query: one.query(args), headers, cookies: one.cookies(args), body }
  } catch (error) {
    if (error instanceof ArgumentFault) throw new ToolError(error.message)
    throw error
  }
}

/** Returns why connections to a URL are refused; undefined if they are allowed. */
export function reasonAgainst(connections: Pick<Connections, 'agentFor'>, baseUrl: string): string | undefined {
  try {
    connections.agentFor(new URL(baseUrl).origin)
    return undefined
  } catch (error) {
    return errorText(error)
  }
}

const IDEMPOTENT = new Set(['GET', 'HEAD'])
const RETRY_STATUSES = new Set([429, 502, 503, 504])
const REDIRECTS = new Set([301, 302, 303, 307, 308])
const MAX_REDIRECTS = 5
/** Milliseconds before the first retry without `Retry-After`; doubled for each further one. */
const BACK_OFF = 250
/** Headers that are also sent to another origin after a redirect. */
const SAFE_HEADERS = new Set(['accept', 'accept-encoding', 'user-agent'])

function acceptHeader({ accepts }: Operation): string {
  if (accepts.length === 0) return 'application/json, */*;q=0.8'
  const json = accepts.filter(isJsonType)
  const others = accepts.filter(type => !isJsonType(type))
  return [...json, ...others.map(type => (json.length === 0 ? type : `${type};q=0.8`))].join(', ')
}

/** Stops the current step of a call, once, after its time limit or when it is cancelled. */
class Deadline implements StepLimit {
  readonly #clock: Clock
  readonly #until: number
  readonly #timer: ReturnType<Clock['setTimeout']>
  readonly #cancellation: Cancellation
  #reason: Error | undefined
  #step: Stoppable | undefined

  constructor(clock: Clock, timeout: number, cancellation: Cancellation, advice: string) {
    this.#clock = clock
    this.#until = clock.monotonic() + timeout
    this.#cancellation = cancellation
    this.#timer = clock.setTimeout(
      () => this.#end(new ToolError(`The API did not respond within ${timeout / 1_000} s.${advice}`)),
      timeout,
    )
    cancellation.add(this.#cancel)
  }

  get remaining(): number {
    return this.#until - this.#clock.monotonic()
  }

  setStep(step: Stoppable) {
    this.#step = step
    if (this.#reason) step.stop(this.#reason)
  }

  /** Rejects with the reason of a stop. */
  race<Value>(work: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.setStep({ stop: reject })
      work.then(resolve, reject)
    })
  }

  wait(milliseconds: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimeout(resolve, milliseconds)
      this.setStep({
        stop: reason => {
          this.#clock.clear(timer)
          reject(reason)
        },
      })
    })
  }

  close() {
    this.#step = undefined
    this.#clock.clear(this.#timer)
    this.#cancellation.remove(this.#cancel)
  }

  readonly #cancel = () => this.#end(new ToolError('The call was cancelled.'))

  #end(reason: Error) {
    this.#reason ??= reason
    this.#step?.stop(this.#reason)
  }
}

interface QueuedCall extends Queued {
  readonly start: () => void
}

/** Limits concurrent requests to one API, fairly between callers. */
function createSlots(max: number) {
  const queue = new FairQueue<QueuedCall>()

  return {
    /** Takes a slot. Returns undefined if a slot is free, otherwise a promise. `release` must follow. */
    take(owner: string, limit: StepLimit): Promise<void> | undefined {
      if (queue.slots < max) {
        queue.take(owner)
        return undefined
      }
      return new Promise((resolve, reject) => {
        const queued: QueuedCall = {
          isResuming: false,
          start() {
            queue.delete(owner, queued)
            queue.take(owner)
            resolve()
          },
        }
        // Added first: `start` stops the step at once if the call has ended.
        queue.add(owner, queued)
        limit.setStep({
          stop(reason) {
            if (queue.delete(owner, queued)) reject(reason)
          },
        })
      })
    },
    release(owner: string): void {
      queue.leave(owner)
      if (queue.slots < max) queue.next(() => true)?.start()
    },
  }
}

const limitOwner = (ctx: CallContext): string =>
  limitOwnerOf({ user: ctx.user, ip: callOf(ctx)?.offer.ip ?? ctx.session?.id ?? '' })

/** Milliseconds. */
function readRetryAfter({ headers }: ReceivedResponse, clock: Clock): number | undefined {
  const text = headerOf(headers, 'retry-after')?.trim()
  if (text === undefined) return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - clock.now())
}

const CODE = /^(?:E[A-Z0-9_]{2,}|UND_ERR_[A-Z_]+|CERT_[A-Z_]+|ERR_TLS_[A-Z_]+|[A-Z]+(?:_[A-Z]+){2,})$/

/** Returns only the code of a network error, because its message can contain the request. */
function errorCode(error: unknown): string | undefined {
  const { code, errors } = error as { readonly code?: unknown; readonly errors?: readonly unknown[] }
  if (typeof code === 'string' && CODE.test(code)) return code
  return errors && errors.length > 0 ? errorCode(errors[0]) : undefined
}

const isRefusedAddress = (error: unknown): error is Error =>
  error instanceof Error && ['blocked_address', 'insecure_endpoint'].includes(Reflect.get(error, 'code') as string)

/** Codes of connections that ended after the API could have received the request. */
const CONNECTION_ENDED = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])
const SENT_HINT = ' The API may have processed the request: check its result before you repeat the call.'

/** `redirect`: the origin that the API redirected to. */
function networkError(error: unknown, method: string, redirect: string | undefined): ToolError {
  const code = errorCode(error)
  const suffix = code === undefined ? '' : ` (${code})`
  if (code !== undefined && CONNECTION_ENDED.has(code)) {
    const advice = IDEMPOTENT.has(method) ? ' Try again later.' : SENT_HINT
    return new ToolError(`The API ended the connection without a response${suffix}.${advice}`)
  }
  const what = redirect === undefined ? 'The API' : `The API redirects to ${redirect}, which`
  return new ToolError(`${what} cannot be reached${suffix}. Try again later.`)
}

interface Target {
  readonly origin: string
  readonly path: string
  readonly headers: string[]
  readonly body: string | Buffer | null
}

/** Keeps only headers without credentials and arguments. */
const safeHeaders = (headers: readonly string[]): string[] =>
  headers.flatMap((name, index) =>
    index % 2 === 0 && SAFE_HEADERS.has(name.toLowerCase()) ? [name, headers[index + 1] ?? ''] : [],
  )

/** Creates the function that calls the operations of one document. */
export function createRequester(options: RequesterOptions) {
  const { allowHosts, forwardHeaders, credentials, timeout, retries, concurrency, services, clock, log } = options
  const slots = createSlots(concurrency)
  const compiled = new WeakMap<Operation, CompiledOperation>()
  const fixedHeaders = Object.entries({ 'user-agent': 'mcp-host', ...lowerCaseNames(options.headers) })
  const fixedNames = [...fixedHeaders.map(([name]) => name), ...forwardHeaders]
  let connections: Connections | undefined
  let opening: Promise<Connections> | undefined

  async function open(): Promise<Connections> {
    try {
      connections = await services().openConnections({ allowHosts, connections: concurrency })
      return connections
    } catch (error) {
      opening = undefined
      throw error
    }
  }
  const connect = (): Promise<Connections> => {
    opening ??= open()
    return opening
  }

  function compile(operation: Operation): CompiledOperation {
    const cached = compiled.get(operation)
    if (cached) return cached
    const made = compileOperation(operation, credentials.of(operation), fixedNames)
    compiled.set(operation, made)
    return made
  }

  function addFixed(
    { headers, secrets }: Pick<AddedCredentials, 'headers' | 'secrets'>,
    owned: ReadonlySet<string>,
  ): Promise<void> | undefined {
    const waiting: Promise<void>[] = []
    for (const [name, source] of fixedHeaders) {
      if (owned.has(name)) continue
      const use = (value: string) => {
        headers.push(name, value)
        if (name !== 'user-agent') secrets.push(value)
      }
      const value = readSecret(source, `${options.what}.headers.${name}`)
      if (typeof value === 'string') use(value)
      else waiting.push(value.then(use))
    }
    return waiting.length === 0 ? undefined : Promise.all(waiting).then(() => undefined)
  }

  function addForwarded(headers: string[], { headers: received }: CallContext, owned: ReadonlySet<string>): void {
    for (const name of forwardHeaders) {
      const value = received[name]
      if (value !== undefined && !owned.has(name)) headers.push(name, Array.isArray(value) ? value.join(', ') : value)
    }
  }

  function addTrace(headers: string[], ctx: CallContext): void {
    const call = callOf(ctx)
    if (!call) return
    for (const [name, value] of Object.entries(services().slot('tracer', call.offer.route).headersFor(call))) {
      if (!headers.some((sent, index) => index % 2 === 0 && sent.toLowerCase() === name.toLowerCase()))
        headers.push(name, value)
    }
  }

  /** Reads credentials for each attempt, because tokens expire. Undefined if they are available without waiting. */
  function authorize(
    { credentials: own, method, origin }: CompiledOperation,
    { path }: BuiltRequest,
    ctx: CallContext,
    added: AddedCredentials,
  ): Promise<unknown> | undefined {
    try {
      const fixed = addFixed(added, own.owned.header)
      const more = own.add({ ctx, method, url: origin + path }, added)
      return fixed || more ? Promise.all([fixed, more]).catch(failCredentials) : undefined
    } catch (error) {
      return failCredentials(error)
    }
  }

  function toTarget(one: CompiledOperation, built: BuiltRequest, ctx: CallContext, added: AddedCredentials): Target {
    const headers = ['accept', one.accept, 'accept-encoding', 'gzip, deflate, br', ...built.headers]
    addForwarded(headers, ctx, one.credentials.owned.header)
    headers.push(...added.headers)
    addTrace(headers, ctx)
    const cookies = [...built.cookies, ...added.cookies]
    if (cookies.length > 0) headers.push('cookie', cookies.join('; '))
    if (built.body) headers.push('content-type', built.body.contentType)
    const query = [...built.query, ...added.query].join('&')
    const path = query === '' ? built.path : `${built.path}?${query}`
    return { origin: one.origin, path, headers, body: built.body?.content ?? null }
  }

  /** `reached`: gets the origin of each request. */
  async function follow(
    method: string,
    first: Target,
    deadline: Deadline,
    lastOrigin: { origin: string },
  ): Promise<ReceivedResponse> {
    const { maxResponse } = options
    let target = first
    for (let count = 0; ; count++) {
      const { origin: from } = target
      lastOrigin.origin = from
      const dispatcher = connections ? connections.agentFor(from) : (await connect()).agentFor(from)
      const response = await send({ ...target, dispatcher, method }, maxResponse, deadline)
      if (!REDIRECTS.has(response.status) || !IDEMPOTENT.has(method) || count === MAX_REDIRECTS) return response
      const location = headerOf(response.headers, 'location')
      const here = from + target.path
      if (location === undefined || !URL.canParse(location, here)) return response
      const { protocol, origin, pathname, search, username, password } = new URL(location, here)
      if (!/^https?:$/.test(protocol) || username !== '' || password !== '') return response
      const headers = origin === from ? target.headers : safeHeaders(target.headers)
      target = { origin, path: pathname + search, headers, body: null }
    }
  }

  /** Returns the delay until the next attempt, milliseconds; undefined if there is none. */
  function retryDelay(attempt: number, deadline: Deadline, response?: ReceivedResponse): number | undefined {
    if (attempt >= retries || (response && !RETRY_STATUSES.has(response.status))) return undefined
    const retryAfter = response && readRetryAfter(response, clock)
    const delay = retryAfter ?? BACK_OFF * 2 ** attempt * (1 + Math.random() / 2)
    return delay < deadline.remaining ? delay : undefined
  }

  function addressError(error: Error): ToolError {
    log.warn({ code: 'MH3451', reason: errorText(error), document: options.what }, 'blocked a request to an API')
    return new ToolError(
      'The host blocked the request, because it does not allow the address of the API. See the log of the host.',
    )
  }

  function failCredentials(error: unknown): never {
    if (ToolError.is(error) || HostError.is(error)) throw error
    log.warn(
      { code: 'MH3452', reason: errorText(error), document: options.what },
      'no credentials for a request to an API',
    )
    throw new ToolError('The host has no valid credentials for the API. See the log of the host.')
  }

  /** Without credentials, the document does not declare the security of the operation. */
  function warnUnauthorized({ id, security }: Operation, { secrets }: AddedCredentials): void {
    const schemes = security.flatMap(alternative => [...alternative.keys()])
    const fix =
      secrets.length > 0 ? 'check `credentials`, `auth` and `headers`' : 'set `auth` or `headers`, which are not set'
    log.warn({ code: 'MH3460', document: options.what, operation: id, schemes, fix }, 'an API responded with HTTP 401')
  }

  async function callWithRetries(
    one: CompiledOperation,
    built: BuiltRequest,
    ctx: CallContext,
    deadline: Deadline,
  ): Promise<CallToolResult> {
    const { operation, method, origin } = one
    const canRetry = IDEMPOTENT.has(method)
    let isRetried = false
    for (let attempt = 0; ; ) {
      const added: AddedCredentials = { headers: [], query: [], cookies: [], secrets: [], tokens: [] }
      const waiting = authorize(one, built, ctx, added)
      if (waiting) await deadline.race(waiting)
      const target = toTarget(one, built, ctx, added)
      const lastOrigin = { origin }
      let response: ReceivedResponse | undefined
      try {
        response = await follow(method, target, deadline, lastOrigin)
      } catch (error) {
        if (ToolError.is(error)) throw error
        if (isRefusedAddress(error)) throw addressError(error)
        if (error instanceof SendFailure) throw new ToolError(`The API sent no usable response: ${error.message}.`)
        const delay = canRetry ? retryDelay(attempt++, deadline) : undefined
        const redirect = lastOrigin.origin === origin ? undefined : lastOrigin.origin
        if (delay === undefined) throw networkError(error, method, redirect)
        await deadline.wait(delay)
        continue
      }
      const stepUp = readStepUp(response.status, headerOf(response.headers, 'www-authenticate'))
      if ((response.status === 401 && !isRetried) || stepUp !== undefined) {
        isRetried = true
        // The API did not process the request, so every method can be repeated.
        if (renewTokens(added, { origin, dpopNonce: headerOf(response.headers, 'dpop-nonce'), stepUp })) continue
      }
      const delay = canRetry ? retryDelay(attempt++, deadline, response) : undefined
      if (delay === undefined) {
        if (response.status === 401) warnUnauthorized(operation, added)
        const { maxResponse, errorExcerpt } = options
        const facts = { operation, url: origin + built.path, query: built.query.join('&'), secrets: added.secrets }
        return toToolResult(response, { ...facts, maxResponse, errorExcerpt })
      }
      await deadline.wait(delay)
    }
  }

  async function call(operation: Operation, args: OperationArguments, ctx: CallContext): Promise<CallToolResult> {
    const one = compile(operation)
    const built = buildRequest(one, args)
    const deadline = new Deadline(clock, timeout, contextCancellation(ctx), IDEMPOTENT.has(one.method) ? '' : SENT_HINT)
    const owner = limitOwner(ctx)
    try {
      const slot = slots.take(owner, deadline)
      if (slot) await slot
      try {
        return await callWithRetries(one, built, ctx, deadline)
      } finally {
        slots.release(owner)
      }
    } finally {
      deadline.close()
    }
  }

  return Object.assign(call, {
    /** Returns why requests to a URL are refused; undefined if they are allowed. Only requests resolve host names. */
    async reasonAgainst(baseUrl: string): Promise<string | undefined> {
      try {
        return reasonAgainst(await connect(), baseUrl)
      } catch (error) {
        return errorText(error)
      }
    },
    /** Ends all requests. */
    async close(): Promise<void> {
      await (await opening?.catch(() => undefined))?.close()
    },
  })
}

const lowerCaseNames = <Value>(of: Readonly<Record<string, Value>>): Record<string, Value> =>
  Object.fromEntries(Object.entries(of).map(([name, value]) => [name.toLowerCase(), value]))
