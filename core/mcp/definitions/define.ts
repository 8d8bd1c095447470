// Definitions that authors write: tools, resources and prompts.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../../kernel/user.ts'
import type { TypedResult } from '../wire/message.ts'
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
} from '../wire/protocol.ts'
import type { Revision } from '../wire/revisions.ts'
import type { GivenFor, StandardSchema, ValueOf } from './infer.ts'

/** Options of `elicit`, `sample` and `roots`. */
export interface AskOptions {
  /** Name of the entry in `inputRequests`. Default: kind and number, such as `elicit-1`. */
  key?: string
}

/** Adds and removes definitions at run time, and notifies clients. */
export interface RuntimeItems<Definition> {
  /** Adds to `toolset` (default: every route). Throws for a duplicate name or a missing plugin. */
  add(definition: Definition, options?: { toolset?: string }): void
  /** Returns false if there is no definition with that name. */
  remove(name: string, options?: { toolset?: string }): boolean
}

/** Changes of the running host: `ctx.host`, and `host` of `createHost`. */
export interface RuntimeHost {
  readonly tools: RuntimeItems<ToolDefinition>
  readonly resources: RuntimeItems<ResourceDefinition>
  readonly prompts: RuntimeItems<PromptDefinition>
  resourceUpdated(uri: string): void
  /** Resolves once all changes reach every node, or on timeout. Results are sent after that in any case. */
  settled(): Promise<void>
}

/** Members of `ctx` from built-in plugins, which extend this type. */
export interface BuiltInContext extends Record<never, never> {}

/** Tool keys of built-in plugins, which extend this type. */
export interface BuiltInToolKeys extends Record<never, never> {}

/** The second argument of every handler. */
export interface CallContext extends PlainContext, BuiltInContext {}

/** `ctx` without the members of plugins. */
export interface PlainContext {
  /** Aborts on disconnect, cancel, timeout or shutdown. */
  readonly signal: AbortSignal
  /** Undefined for an anonymous caller. */
  readonly user: User | undefined
  /** Undefined without sessions. */
  readonly session: { readonly id: string } | undefined
  /** The configured path, and the matched parameters. */
  readonly route: { readonly path: string; readonly params: Readonly<Record<string, string>> }
  readonly headers: Readonly<IncomingHttpHeaders>
  /** Declared by the client: for display and logs, never for access decisions. */
  readonly client: {
    readonly info: Implementation | undefined
    readonly capabilities: ClientCapabilities
    readonly revision: Revision
  }
  readonly meta: Readonly<Meta>
  /** Reports progress, if requested. `progress` must increase. */
  progress(progress: number, total?: number, message?: string): void
  /** Sends a log message, if the client requested this level or a lower one. */
  log(level: LogLevel, data: unknown, logger?: string): void
  /** `fetch` with `signal` and the configured `tools.fetchTimeout`. */
  fetch: typeof fetch
  /**
   * Requests input from the user. In 2026-07-28 the call ends with `input_required` and the handler restarts with the
   * response: put side effects after the last request. Rejects if the client does not support it.
   */
  elicit(params: ElicitParams, options?: AskOptions): Promise<ElicitResult>
  /** Requests a completion from the client's language model, like `elicit`. */
  sample(params: SampleParams, options?: AskOptions): Promise<SampleResult>
  /** Requests the client's roots, like `elicit`. */
  roots(options?: AskOptions): Promise<RootsResult>
  /** Resolves with the ping response; immediately for 2026-07-28. Rejects if the client is unreachable. */
  ping(): Promise<void>
  /** Closes the connection, not the call. 2025-11-25 clients reconnect after `retry` ms (default 1,000). */
  disconnect(retry?: number): void
  readonly host: RuntimeHost
}

interface Common {
  title?: string
  description?: string
  icons?: Icon[]
  _meta?: Meta
  /** The required policy, scope or role. Default: open to every caller of the route. */
  access?: string
  /** `'listed'`: lists show it to callers without access too. Default: hidden. */
  visibility?: 'listed'
}

type MaybePromise<T> = T | Promise<T>

/** A tool's return value: text, structured content, content blocks, or a whole result. */
export type ToolReturn = string | number | boolean | null | undefined | object | ContentBlock[] | CallToolResult

const DEFINITION = Symbol.for('mcp-host.definition')
declare const GIVEN: unique symbol

/** The properties of a tool without the keys of plugins. */
export interface HostTool extends Common {
  name: string
  annotations?: ToolAnnotations
  input: JsonSchema | StandardSchema
  output?: JsonSchema | StandardSchema
  /** Time limit, such as `'30s'` or milliseconds. Default: `tools.callTimeout`. */
  timeout?: string | number
  /** Concurrent calls per process. Default: no limit. A queue holds 256 calls (32 per user); others get 429. */
  concurrency?: number
  /** Runs calls in worker processes. Defaults: `memory` `'128mb'`, `cpuTime` `'5s'` per call, `processes` 4. */
  isolate?: true | { memory?: string | number; cpuTime?: string | number; processes?: number }
}

/** As `defineTool` returns it. `Given`: the arguments that callers send. */
export interface ToolDefinition<Args = never, Return = ToolReturn, Given = never> extends HostTool, BuiltInToolKeys {
  readonly [DEFINITION]: 'tool'
  [GIVEN]?(given: Given): void
  handler(args: Args, ctx: CallContext): MaybePromise<Return>
}

/** A resource or template, as `defineResource` returns it. */
export interface ResourceDefinition extends Common {
  readonly [DEFINITION]: 'resource'
  name: string
  uri?: string
  /** RFC 6570. */
  uriTemplate?: string
  mimeType?: string
  /** Bytes. */
  size?: number
  annotations?: Annotations
  complete?: Record<string, Completer>
  /** Lists resources of the template. Runs for every page; at most 10 seconds and 10,000 entries. */
  list?(ctx: CallContext): MaybePromise<ListedResource[]>
  /** `args`: the decoded template variables, and `uri`. Returns nothing if the resource does not exist. */
  handler(args: Record<string, string>, ctx: CallContext): MaybePromise<ResourceReturn | null | undefined>
}

/** The URI must match the template. Default `mimeType`: that of the template. */
type ListedResource = Omit<ResourceLink, 'type'>

/** A resource's return value: text, bytes, contents, or a whole result. */
export type ResourceReturn =
  | string
  | Uint8Array
  | Omit<ResourceContents, 'uri'>
  | ResourceContents
  | ResourceContents[]
  | ReadResourceResult

/** Completes `value`. `context`: the arguments entered so far. */
export type Completer = (
  value: string,
  context: { readonly arguments: Readonly<Record<string, string>> },
  ctx: CallContext,
) => MaybePromise<string[] | Completion>

interface PromptArgument {
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

export const kindOf = (value: unknown): Definition[typeof DEFINITION] | undefined =>
  typeof value === 'object' && value !== null ? (value as Partial<Definition>)[DEFINITION] : undefined

type Unbranded<D> = Omit<D, typeof DEFINITION | typeof GIVEN | 'handler'>
type NoArguments = { readonly type: 'object' }

type ReturnFor<Output> =
  Output extends StandardSchema<infer Taken, infer _Value>
    ? Taken | CallToolResult<Taken> | TypedResult
    : // biome-ignore lint/suspicious/noConfusingVoidType: what a handler without a `return` returns is void
      ToolReturn | void

/** A method, so handlers can annotate a narrower argument type. */
interface WithHandler<Input, Output, Context = CallContext> {
  handler(args: ValueOf<Input>, ctx: Context): MaybePromise<ReturnFor<Output>>
}

type DefinedTool<Input, Return> = ToolDefinition<ValueOf<Input>, Exclude<Awaited<Return>, void>, GivenFor<Input>>

/** `defineTool` with tool keys and members of `ctx` from plugins. */
export type DefineTool<Keys, Context> = <
  const Input extends JsonSchema | StandardSchema = NoArguments,
  const Output extends JsonSchema | StandardSchema = JsonSchema,
  Handler extends WithHandler<Input, Output, Context>['handler'] = WithHandler<Input, Output, Context>['handler'],
>(
  tool: Omit<Unbranded<ToolDefinition>, 'input' | 'output'> & {
    input?: Input
    output?: Output
    handler: Handler
  } & Keys,
) => DefinedTool<Input, ReturnType<Handler>>

/**
 * Defines a tool. `input` and `output` are JSON Schemas (draft 2020-12, or draft-07 with `$schema`) or Standard
 * Schemas. The handler receives valid arguments only. Errors become `isError` results; clients see the message of a
 * `ToolError` only.
 */
export function defineTool<
  const Input extends JsonSchema | StandardSchema = NoArguments,
  const Output extends JsonSchema | StandardSchema = JsonSchema,
  // A type parameter, so the compiler checks returned literals against `output`.
  Handler extends WithHandler<Input, Output>['handler'] = WithHandler<Input, Output>['handler'],
>(
  tool: Omit<Unbranded<ToolDefinition>, 'input' | 'output'> & { input?: Input; output?: Output; handler: Handler },
): DefinedTool<Input, ReturnType<Handler>> {
  return { input: { type: 'object' }, ...tool, [DEFINITION]: 'tool' } as DefinedTool<Input, ReturnType<Handler>>
}

/** Defines a resource (`uri`) or template (`uriTemplate`). */
export function defineResource(
  resource: Unbranded<ResourceDefinition> & Pick<ResourceDefinition, 'handler'>,
): ResourceDefinition {
  return { ...resource, [DEFINITION]: 'resource' }
}

type PromptArguments<A> = { [K in keyof A as A[K] extends { required: true } ? K : never]: string } & {
  [K in keyof A as A[K] extends { required: true } ? never : K]?: string
}

/** Defines a prompt. Arguments are strings; `required` ones are always present. */
export function definePrompt<const A extends Record<string, PromptArgument> = Record<never, PromptArgument>>(
  prompt: Omit<Unbranded<PromptDefinition>, 'arguments'> & {
    arguments?: A & Record<string, PromptArgument>
    handler(args: PromptArguments<A>, ctx: CallContext): MaybePromise<string | PromptMessage[] | GetPromptResult>
  },
): PromptDefinition {
  return { ...prompt, [DEFINITION]: 'prompt' } as PromptDefinition
}

export const labelOf = (definition: Definition): string => `${kindOf(definition)} "${definition.name}"`
