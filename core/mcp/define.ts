// What an author writes: tools, resources and prompts. One shape for all three: identity, `access`, `handler`.
// Nothing is checked or compiled here; that happens once at start-up, in core/mcp/catalog.ts.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../kernel/user.ts'
import type { AppDefinition } from './define-app.ts'
import type { GivenFor, StandardSchema, ValueOf } from './infer.ts'
import type {
  Annotations,
  CallToolResult,
  ClientCapabilities,
  Completion,
  ContentBlock,
  ElicitParams,
  ElicitResult,
  GetPromptResult,
  Icon,
  Implementation,
  JsonSchema,
  LogLevel,
  Meta,
  PromptMessage,
  ReadResourceResult,
  ResourceContents,
  ResourceLink,
  RootsResult,
  SampleParams,
  SampleResult,
  ToolAnnotations,
} from './protocol.ts'
import type { TypedResult } from './result-type.ts'
import type { Revision } from './revisions.ts'

/** Options of the three asks. */
export interface AskOptions {
  /** Names the entry in `inputRequests`; default: the kind of ask and its ordinal, such as `elicit-1`. */
  key?: string
}

/** What a tool says of the token that it wants from the company's identity provider. */
export interface UpstreamTokenRequest {
  /** Scopes there, with spaces between them. Default: those that the caller signed in with. */
  readonly scope?: string
}

/** Adds and removes definitions while the host runs; every client that can be told is told. */
export interface RuntimeItems<Definition> {
  /**
   * Adds to `toolset` (default: every route). Throws for what would fail startup, on any route and for any caller who is
   * served the toolset: a second definition of one name, `access` without a policy plugin, a key that no plugin reads.
   */
  add(definition: Definition, options?: { toolset?: string }): void
  /** Removes what `add` added or a toolset defined. False when there was none of that name. */
  remove(name: string, options?: { toolset?: string }): boolean
}

/** What a handler may do to the running host: `ctx.host`, and `host` of `createHost`. */
export interface RuntimeHost {
  readonly tools: RuntimeItems<ToolDefinition>
  /** Named by `uri` or `uriTemplate`. */
  readonly resources: RuntimeItems<ResourceDefinition>
  readonly prompts: RuntimeItems<PromptDefinition>
  /** Tells those who watch `uri` that its contents changed. */
  resourceUpdated(uri: string): void
  /**
   * Resolves once all that was changed here so far is sure to be told, on every node; where nodes share a bus that is
   * away, after its time-out. A handler need not wait: its call is answered after that.
   */
  settled(): Promise<void>
}

/** The second argument of every handler. */
export interface CallContext {
  /** Aborts when the client is gone or cancels, the call's timeout passes, or the host shuts down. */
  readonly signal: AbortSignal
  /** Undefined for an anonymous caller. */
  readonly user: User | undefined
  /** The session that this call belongs to; undefined where requests are served one by one. */
  readonly session: { readonly id: string } | undefined
  /** The route's path as configured, and its parameters as matched. */
  readonly route: { readonly path: string; readonly params: Readonly<Record<string, string>> }
  readonly headers: Readonly<IncomingHttpHeaders>
  /** What the client says of itself: for display and logs, never for decisions about access. */
  readonly client: {
    readonly info: Implementation | undefined
    readonly capabilities: ClientCapabilities
    readonly revision: Revision
  }
  /** The request's own `_meta`. */
  readonly meta: Readonly<Meta>
  /** Reports progress; does nothing when the client asked for none. `progress` must grow from call to call. */
  progress(progress: number, total?: number, message?: string): void
  /** Sends a log message to the client that asked for this level or a lower one. */
  log(level: LogLevel, data: unknown, logger?: string): void
  /** `fetch`, ended by `signal` and by the configured `tools.fetchTimeout`. */
  fetch: typeof fetch
  /**
   * An access token of the company's identity provider for this caller, where a plugin of the route signs them in there: for
   * calls of the company's API in their name. Never return it, never log it. Rejects where there is none, and where the login
   * has ended: let that one pass, so that the client is asked to sign in again.
   */
  upstreamToken(request?: UpstreamTokenRequest): Promise<string>
  /**
   * Asks the user. In 2026-07-28 the call ends here with `input_required` and the handler runs again from its
   * start once the answer is there: side effects belong after the last ask. Rejects where nobody can be asked.
   */
  elicit(params: ElicitParams, options?: AskOptions): Promise<ElicitResult>
  /** Asks the client's language model; as `elicit`. */
  sample(params: SampleParams, options?: AskOptions): Promise<SampleResult>
  /** Asks for the client's roots; as `elicit`. */
  roots(options?: AskOptions): Promise<RootsResult>
  /**
   * Resolves when the client answered a ping. At once for 2026-07-28, which has none; rejects where the client cannot
   * be asked.
   */
  ping(): Promise<void>
  /**
   * Closes the connection of a long call, not the call: a client of 2025-11-25 comes back for the rest after `retry`
   * milliseconds (default 1,000). Does nothing for clients that cannot come back.
   */
  disconnect(retry?: number): void
  readonly host: RuntimeHost
}

interface Common {
  title?: string
  description?: string
  icons?: Icon[]
  _meta?: Meta
  /** A policy's name, a scope or a role that the caller needs. Absent: open to every caller of the route. */
  access?: string
  /** `'listed'` shows an item in lists to callers who may not use it; default: hidden from them. */
  visibility?: 'listed'
}

type MaybePromise<T> = T | Promise<T>

/** What a tool may return: text, a number, structured content, content blocks, or a whole result. */
export type ToolReturn = string | number | boolean | null | undefined | object | ContentBlock[] | CallToolResult

const DEFINITION = Symbol.for('mcp-host.definition')
/** Of types alone: what a tool's caller gives. */
declare const GIVEN: unique symbol

/**
 * A tool, as `defineTool` makes it. `Args` is what its handler gets, `Return` what that gives, `Given` what a caller sends:
 * for tests, which are typed by them. A tool of any kind is a plain `ToolDefinition`.
 */
export interface ToolDefinition<Args = never, Return = ToolReturn, Given = never> extends Common {
  readonly [DEFINITION]: 'tool'
  [GIVEN]?(given: Given): void
  name: string
  annotations?: ToolAnnotations
  input: JsonSchema | StandardSchema
  output?: JsonSchema | StandardSchema
  /** How long one call may take, such as `'30s'` or milliseconds; default: the config's `tools.callTimeout`. */
  timeout?: string | number
  /**
   * How many calls of it run at a time in one process, at least 1; default: no limit. More wait in order, their time-out
   * running, at most 32 of one user or address and 256 in all; past that they are refused with `tooManyRequests` (429).
   */
  concurrency?: number
  /**
   * Runs the handler in a worker process, where an infinite loop or a memory leak fails only its own call. `memory` (default
   * `'128mb'`, at least `'64mb'`) limits heap and buffers. `cpuTime` (default `'5s'`) limits one call, without the time that it
   * waits. `processes` (default 4) limits the processes and the concurrent calls. For tools that a module exports.
   */
  isolate?: true | { memory?: string | number; cpuTime?: string | number; processes?: number }
  /**
   * Calls become tasks for clients that know them: `'optional'` for those, `'required'` refuses others (-32021). `retry: 'safe'`:
   * it may run again where the node that ran it died; default: the task fails then. `before` runs in the call, before there is
   * a task: what it asks leaves in the call's own result, what it returns are the task's arguments. Read by plugins such as
   * `tasks`.
   */
  task?: TaskUse | { use: TaskUse; retry?: 'safe'; before?: BeforeTask }
  /** The app that shows its results to people, as `defineApp` makes it. Read by plugins such as `apps`. */
  app?: AppDefinition
  handler(args: Args, ctx: CallContext): MaybePromise<Return>
}

/** Gives the arguments that a task runs with: those of the call, with what it asked for. They are checked again. */
type BeforeTask = (args: never, ctx: CallContext) => MaybePromise<object>

/** Whether a client must know tasks to call a tool. */
export type TaskUse = 'optional' | 'required'

/** A resource or a family of them, as `defineResource` makes it. */
export interface ResourceDefinition extends Common {
  readonly [DEFINITION]: 'resource'
  name: string
  /** One resource; or `uriTemplate` for a family of them. */
  uri?: string
  /** RFC 6570. */
  uriTemplate?: string
  mimeType?: string
  /** Bytes, where known. */
  size?: number
  annotations?: Annotations
  /** Suggests values of the template's variables. */
  complete?: Record<string, Completer>
  /**
   * Lists resources of the template for the caller, at the end of `resources/list`. Runs for every page, and only for callers who
   * can read the template. It has 10 seconds and at most 10,000 entries.
   */
  list?(ctx: CallContext): MaybePromise<ListedResource[]>
  /** `args` holds the template's variables, decoded, and `uri`. It returns nothing where there is no such resource. */
  handler(args: Record<string, string>, ctx: CallContext): MaybePromise<ResourceReturn | null | undefined>
}

/** An entry of `list`. Its URI matches the template. Default `mimeType`: that of the template. */
export type ListedResource = Omit<ResourceLink, 'type'>

/** What a resource may return: text, bytes, contents, or a whole result. */
export type ResourceReturn =
  | string
  | Uint8Array
  | Omit<ResourceContents, 'uri'>
  | ResourceContents
  | ResourceContents[]
  | ReadResourceResult

/** Suggests values that begin with, or suit, `value`; `context` holds the arguments already chosen. */
export type Completer = (
  value: string,
  context: { readonly arguments: Readonly<Record<string, string>> },
  ctx: CallContext,
) => MaybePromise<string[] | Completion>

/** An argument of a prompt; its value is a string. */
export interface PromptArgument {
  title?: string
  description?: string
  required?: boolean
  complete?: Completer
}

/** A prompt, as `definePrompt` makes it. */
export interface PromptDefinition extends Common {
  readonly [DEFINITION]: 'prompt'
  name: string
  arguments?: Record<string, PromptArgument>
  handler(args: never, ctx: CallContext): MaybePromise<string | PromptMessage[] | GetPromptResult>
}

/** What a toolset is made of. */
export type Definition = ToolDefinition | ResourceDefinition | PromptDefinition

/** The kind of a definition, or undefined for any other value. */
export const kindOf = (value: unknown): Definition[typeof DEFINITION] | undefined =>
  typeof value === 'object' && value !== null ? (value as Partial<Definition>)[DEFINITION] : undefined

type Unbranded<D> = Omit<D, typeof DEFINITION | typeof GIVEN | 'handler'>
type NoArguments = { readonly type: 'object' }

/** The return type of a handler: for a Standard Schema as `output` its input, a whole result, or an extension's. */
type ReturnFor<Output> =
  Output extends StandardSchema<infer Taken, infer _Value>
    ? Taken | CallToolResult<Taken> | TypedResult
    : // biome-ignore lint/suspicious/noConfusingVoidType: what a handler without a `return` returns is void
      ToolReturn | void

/** Declared as a method, so that a handler can annotate its arguments with a narrower type. */
interface WithHandler<Input, Output> {
  handler(args: ValueOf<Input>, ctx: CallContext): MaybePromise<ReturnFor<Output>>
}

type DefinedTool<Input, Return> = ToolDefinition<ValueOf<Input>, Exclude<Awaited<Return>, void>, GivenFor<Input>>

/**
 * A tool. `input` and `output` are JSON Schemas (draft 2020-12, or draft-07 that says so) or Standard Schemas;
 * the handler's arguments are typed by `input` and reach it only when they passed. A throw becomes a result with
 * `isError` whose text is hidden unless it is a `ToolError`.
 */
export function defineTool<
  const Input extends JsonSchema | StandardSchema = NoArguments,
  const Output extends JsonSchema | StandardSchema = JsonSchema,
  // A type parameter, since the compiler then applies `output` to the literals that the handler returns.
  Handler extends WithHandler<Input, Output>['handler'] = WithHandler<Input, Output>['handler'],
>(
  tool: Omit<Unbranded<ToolDefinition>, 'input' | 'output'> & { input?: Input; output?: Output; handler: Handler },
): DefinedTool<Input, ReturnType<Handler>> {
  return { input: { type: 'object' }, ...tool, [DEFINITION]: 'tool' } as DefinedTool<Input, ReturnType<Handler>>
}

/** A resource (`uri`) or a family of them (`uriTemplate`). */
export function defineResource(
  resource: Unbranded<ResourceDefinition> & Pick<ResourceDefinition, 'handler'>,
): ResourceDefinition {
  return { ...resource, [DEFINITION]: 'resource' }
}

type PromptArguments<A> = { [K in keyof A as A[K] extends { required: true } ? K : never]: string } & {
  [K in keyof A as A[K] extends { required: true } ? never : K]?: string
}

/** A prompt. The handler's arguments are strings, those that are `required` always present. */
export function definePrompt<const A extends Record<string, PromptArgument> = Record<never, PromptArgument>>(
  prompt: Omit<Unbranded<PromptDefinition>, 'arguments'> & {
    arguments?: A & Record<string, PromptArgument>
    handler(args: PromptArguments<A>, ctx: CallContext): MaybePromise<string | PromptMessage[] | GetPromptResult>
  },
): PromptDefinition {
  return { ...prompt, [DEFINITION]: 'prompt' } as PromptDefinition
}

/** `tool "purge"`. */
export const labelOf = (definition: Definition): string => `${kindOf(definition)} "${definition.name}"`
