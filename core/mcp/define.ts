// Definitions, as authors write them: tools, resources, prompts and apps. catalog-item.ts checks and compiles them.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../kernel/user.ts'
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

/** Options of `elicit`, `sample` and `roots`. */
export interface AskOptions {
  /** Name of the entry in `inputRequests`. Default: kind and number, such as `elicit-1`. */
  key?: string
}

/** The token that a tool requests from the company's identity provider. */
export interface UpstreamTokenRequest {
  /** Scopes, separated by spaces. Default: those of the caller's login. */
  readonly scope?: string
}

/** Adds and removes definitions while the host runs, and notifies clients. */
export interface RuntimeItems<Definition> {
  /**
   * Adds to `toolset` (default: every route). Throws for mistakes that would fail startup on any route that serves the toolset:
   * a second definition of one name, `access` without a policy plugin, a key that no plugin reads.
   */
  add(definition: Definition, options?: { toolset?: string }): void
  /** Removes a definition. False if there is none of that name. */
  remove(name: string, options?: { toolset?: string }): boolean
}

/** Changes of the running host: `ctx.host`, and `host` of `createHost`. */
export interface RuntimeHost {
  readonly tools: RuntimeItems<ToolDefinition>
  /** Named by `uri` or `uriTemplate`. */
  readonly resources: RuntimeItems<ResourceDefinition>
  readonly prompts: RuntimeItems<PromptDefinition>
  /** Notifies subscribers of `uri` that its contents changed. */
  resourceUpdated(uri: string): void
  /**
   * Resolves once notifications of all changes so far reach every node, or the timeout of the change bus passes. Handlers need
   * not wait: their results are sent after that.
   */
  settled(): Promise<void>
}

/** The second argument of every handler. */
export interface CallContext {
  /** Aborts when the client disconnects or cancels, the timeout of the call passes, or the host shuts down. */
  readonly signal: AbortSignal
  /** Undefined for an anonymous caller. */
  readonly user: User | undefined
  /** Undefined without sessions. */
  readonly session: { readonly id: string } | undefined
  /** The route's path as configured, and its parameters as matched. */
  readonly route: { readonly path: string; readonly params: Readonly<Record<string, string>> }
  readonly headers: Readonly<IncomingHttpHeaders>
  /** As declared by the client: for display and logs, never for access decisions. */
  readonly client: {
    readonly info: Implementation | undefined
    readonly capabilities: ClientCapabilities
    readonly revision: Revision
  }
  /** The request's own `_meta`. */
  readonly meta: Readonly<Meta>
  /** Reports progress, if the client requested it. `progress` must increase. */
  progress(progress: number, total?: number, message?: string): void
  /** Sends a log message to the client, if it requested this level or a lower one. */
  log(level: LogLevel, data: unknown, logger?: string): void
  /** `fetch` with `signal` and the configured `tools.fetchTimeout`. */
  fetch: typeof fetch
  /**
   * The caller's access token of the company's identity provider, if a plugin of the route signs callers in there. Never return
   * or log it. Rejects without a token, and after the login ended: rethrow, so that the client signs in again.
   */
  upstreamToken(request?: UpstreamTokenRequest): Promise<string>
  /**
   * Asks the user. In 2026-07-28 the call ends here with `input_required`, and the handler runs again from its start with the
   * response: put side effects after the last request. Rejects if the client cannot be asked.
   */
  elicit(params: ElicitParams, options?: AskOptions): Promise<ElicitResult>
  /** Requests a completion from the client's language model; as `elicit`. */
  sample(params: SampleParams, options?: AskOptions): Promise<SampleResult>
  /** Requests the client's roots; as `elicit`. */
  roots(options?: AskOptions): Promise<RootsResult>
  /** Resolves when the client answered a ping; immediately for 2026-07-28, which has none. Rejects if the client cannot be asked. */
  ping(): Promise<void>
  /**
   * Closes the connection of a long call, but not the call: a client of 2025-11-25 reconnects after `retry` milliseconds (default
   * 1,000). Does nothing for clients that cannot reconnect.
   */
  disconnect(retry?: number): void
  readonly host: RuntimeHost
}

interface Common {
  title?: string
  description?: string
  icons?: Icon[]
  _meta?: Meta
  /** The policy, scope or role that the caller needs. Default: open to every caller of the route. */
  access?: string
  /** `'listed'`: lists show it to callers without access too. Default: hidden from them. */
  visibility?: 'listed'
}

type MaybePromise<T> = T | Promise<T>

/** The return value of a tool: text, a number, structured content, content blocks, or a whole result. */
export type ToolReturn = string | number | boolean | null | undefined | object | ContentBlock[] | CallToolResult

const DEFINITION = Symbol.for('mcp-host.definition')
/** For types only: the arguments that callers send. */
declare const GIVEN: unique symbol

/**
 * A tool, as `defineTool` returns it. `Args`: the arguments of its handler. `Return`: its return type. `Given`: the arguments
 * that callers send. Tests are typed by them; use plain `ToolDefinition` for any tool.
 */
export interface ToolDefinition<Args = never, Return = ToolReturn, Given = never> extends Common {
  readonly [DEFINITION]: 'tool'
  [GIVEN]?(given: Given): void
  name: string
  annotations?: ToolAnnotations
  input: JsonSchema | StandardSchema
  output?: JsonSchema | StandardSchema
  /** Maximum time of a call, such as `'30s'` or milliseconds. Default: `tools.callTimeout` of the config. */
  timeout?: string | number
  /**
   * Maximum number of concurrent calls in one process, at least 1. Default: no limit. Further calls are queued within their
   * timeout, at most 32 of one user or address and 256 in all; others get `tooManyRequests` (429).
   */
  concurrency?: number
  /**
   * Runs the handler in a worker process, where an infinite loop or a memory leak fails only its own call. `memory` (default
   * `'128mb'`, at least `'64mb'`) limits heap and buffers, `cpuTime` (default `'5s'`) one call, `processes` (default 4) the
   * processes and concurrent calls. Only for tools that a module exports.
   */
  isolate?: true | { memory?: string | number; cpuTime?: string | number; processes?: number }
  /**
   * Calls become tasks for clients that support them; `'required'` rejects other clients (-32021). `retry: 'safe'`: the task runs
   * again after its node failed; default: it fails. `before` runs in the call, can ask the client, and returns the arguments of
   * the task. Read by plugins such as `tasks`.
   */
  task?: TaskUse | { use: TaskUse; retry?: 'safe'; before?: BeforeTask }
  /** The app that shows the results to people. Read by plugins such as `apps`. */
  app?: AppDefinition
  handler(args: Args, ctx: CallContext): MaybePromise<Return>
}

/** Returns the arguments of a task, which are validated again. */
type BeforeTask = (args: never, ctx: CallContext) => MaybePromise<object>

/** Whether a client must know tasks to call a tool. */
export type TaskUse = 'optional' | 'required'

/** A resource or a resource template, as `defineResource` returns it. */
export interface ResourceDefinition extends Common {
  readonly [DEFINITION]: 'resource'
  name: string
  /** Of a resource; a resource template has `uriTemplate`. */
  uri?: string
  /** RFC 6570. */
  uriTemplate?: string
  mimeType?: string
  /** Bytes. */
  size?: number
  annotations?: Annotations
  /** Completes the variables of the template. */
  complete?: Record<string, Completer>
  /**
   * Lists resources of the template, at the end of `resources/list`. Runs for every page, and only for callers who can read the
   * template; within 10 seconds, at most 10,000 entries.
   */
  list?(ctx: CallContext): MaybePromise<ListedResource[]>
  /** `args`: the decoded variables of the template, and `uri`. Returns nothing if the resource does not exist. */
  handler(args: Record<string, string>, ctx: CallContext): MaybePromise<ResourceReturn | null | undefined>
}

/** An entry of `list`. Its URI matches the template. Default `mimeType`: that of the template. */
export type ListedResource = Omit<ResourceLink, 'type'>

/** The return value of a resource: text, bytes, contents, or a whole result. */
export type ResourceReturn =
  | string
  | Uint8Array
  | Omit<ResourceContents, 'uri'>
  | ResourceContents
  | ResourceContents[]
  | ReadResourceResult

/** Completes `value`. `context`: the arguments that the user already entered. */
export type Completer = (
  value: string,
  context: { readonly arguments: Readonly<Record<string, string>> },
  ctx: CallContext,
) => MaybePromise<string[] | Completion>

/** An argument of a prompt, a string. */
export interface PromptArgument {
  title?: string
  description?: string
  required?: boolean
  complete?: Completer
}

/** A prompt, as `definePrompt` returns it. */
export interface PromptDefinition extends Common {
  readonly [DEFINITION]: 'prompt'
  name: string
  arguments?: Record<string, PromptArgument>
  handler(args: never, ctx: CallContext): MaybePromise<string | PromptMessage[] | GetPromptResult>
}

/** An entry of a toolset. */
export type Definition = ToolDefinition | ResourceDefinition | PromptDefinition

/** The kind of a definition, or undefined for any other value. */
export const kindOf = (value: unknown): Definition[typeof DEFINITION] | undefined =>
  typeof value === 'object' && value !== null ? (value as Partial<Definition>)[DEFINITION] : undefined

type Unbranded<D> = Omit<D, typeof DEFINITION | typeof GIVEN | 'handler'>
type NoArguments = { readonly type: 'object' }

/** The return type of a handler: the input of a Standard Schema `output`, a whole result, or the result of an extension. */
type ReturnFor<Output> =
  Output extends StandardSchema<infer Taken, infer _Value>
    ? Taken | CallToolResult<Taken> | TypedResult
    : // biome-ignore lint/suspicious/noConfusingVoidType: what a handler without a `return` returns is void
      ToolReturn | void

/** A method, so that a handler can annotate its arguments with a narrower type. */
interface WithHandler<Input, Output> {
  handler(args: ValueOf<Input>, ctx: CallContext): MaybePromise<ReturnFor<Output>>
}

type DefinedTool<Input, Return> = ToolDefinition<ValueOf<Input>, Exclude<Awaited<Return>, void>, GivenFor<Input>>

/**
 * Defines a tool. `input` and `output` are JSON Schemas (draft 2020-12, or draft-07 with `$schema`) or Standard Schemas. The
 * handler receives valid arguments only, typed by `input`. An error becomes a result with `isError`; clients see its message
 * only if it is a `ToolError`.
 */
export function defineTool<
  const Input extends JsonSchema | StandardSchema = NoArguments,
  const Output extends JsonSchema | StandardSchema = JsonSchema,
  // A type parameter, so that the compiler applies `output` to the literals that the handler returns.
  Handler extends WithHandler<Input, Output>['handler'] = WithHandler<Input, Output>['handler'],
>(
  tool: Omit<Unbranded<ToolDefinition>, 'input' | 'output'> & { input?: Input; output?: Output; handler: Handler },
): DefinedTool<Input, ReturnType<Handler>> {
  return { input: { type: 'object' }, ...tool, [DEFINITION]: 'tool' } as DefinedTool<Input, ReturnType<Handler>>
}

/** Defines a resource (`uri`) or a resource template (`uriTemplate`). */
export function defineResource(
  resource: Unbranded<ResourceDefinition> & Pick<ResourceDefinition, 'handler'>,
): ResourceDefinition {
  return { ...resource, [DEFINITION]: 'resource' }
}

type PromptArguments<A> = { [K in keyof A as A[K] extends { required: true } ? K : never]: string } & {
  [K in keyof A as A[K] extends { required: true } ? never : K]?: string
}

/** Defines a prompt. The arguments of the handler are strings; `required` ones are always present. */
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

/** Other origins that the page of an app can use, such as `https://api.acme.example`. Default: none. */
export interface AppCsp {
  /** `connect-src`: `fetch`, `WebSocket`. */
  connectDomains?: string[]
  /** Images, scripts, styles, fonts and media. `https://*.acme.example`: all subdomains. */
  resourceDomains?: string[]
  /** `frame-src`. */
  frameDomains?: string[]
  /** `base-uri`. */
  baseUriDomains?: string[]
}

/** Browser features that the page requests, each with `{}`. A client can reject them. */
export interface AppPermissions {
  camera?: Readonly<Record<never, never>>
  microphone?: Readonly<Record<never, never>>
  geolocation?: Readonly<Record<never, never>>
  clipboardWrite?: Readonly<Record<never, never>>
}

/** An app, as `defineApp` returns it (MCP Apps, SEP-1865). Its page is the resource `ui://<name>/app.html`. */
export interface AppDefinition {
  /** 1 to 64 lower-case letters, digits and `. _ -`; unique on a route. */
  name: string
  title?: string
  description?: string
  icons?: Icon[]
  /** The page: a text that begins with `<`, or a file. Paths are relative to the folder of the config. Or use `module`. */
  html?: string
  /** A JavaScript or TypeScript file, bundled with its imports and CSS into one page. */
  module?: string
  csp?: AppCsp
  permissions?: AppPermissions
  /** The origin of the page, in the format of the client. Default: chosen by the client. */
  domain?: string
  /** Whether the client draws a border and a background. Default: chosen by the client. */
  prefersBorder?: boolean
}

/**
 * Defines an app: a page that clients show for the results of tools with this `app`. Set `html` or `module`; a file next to
 * your module is `new URL('./chart.ts', import.meta.url)`. The plugin `apps` serves it.
 */
export function defineApp(
  app: Omit<AppDefinition, 'html' | 'module'> & { html?: string | URL; module?: string | URL },
): AppDefinition {
  const { html, module, ...rest } = app
  return {
    ...rest,
    ...(html !== undefined && { html: html instanceof URL ? html.href : html }),
    ...(module !== undefined && { module: module instanceof URL ? module.href : module }),
  }
}

/** The keys of tools that extensions read; the first is outermost if a tool has several. */
export const TOOL_KEYS = ['task', 'app'] as const
export type ToolKeyName = (typeof TOOL_KEYS)[number]
