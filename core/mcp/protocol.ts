// The protocol's own nouns: `_meta` keys, log levels and the wire types that are public here.
// They are written out, not re-exported, so that our declarations compile in a project that has no MCP SDK;
// test/mcp/protocol.types.ts holds them against the official package's types.

/** Keys of `_meta` that the protocol reserves (2026-07-28, basic, "_meta"). */
export const META = {
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
} as const

/** The lists that `subscriptions/listen` of 2026-07-28 may tell the changes of, by the filter's name. */
export const LIST_FILTERS = {
  toolsListChanged: 'tools',
  promptsListChanged: 'prompts',
  resourcesListChanged: 'resources',
} as const

/** Every filter of `subscriptions/listen` that the protocol itself has. */
export const LISTEN_FILTERS: ReadonlySet<string> = new Set([...Object.keys(LIST_FILTERS), 'resourceSubscriptions'])

/** Severities of RFC 5424, least severe first. */
export const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
/** One of LOG_LEVELS. */
export type LogLevel = (typeof LOG_LEVELS)[number]

/** The id of a JSON-RPC request. */
export type RequestId = string | number
/** What ties notifications of progress to their request. */
export type ProgressToken = string | number
/** What stands under `_meta`. */
export type Meta = Record<string, unknown>
/** An object of JSON. */
export type JsonObject = Record<string, unknown>
/** A JSON Schema; draft 2020-12 unless its `$schema` says draft-07. */
export type JsonSchema = JsonObject

/** A picture that stands for something in a user interface. */
export interface Icon {
  src: string
  mimeType?: string
  sizes?: string[]
  theme?: 'light' | 'dark'
}

/** Who a server or client says it is (2026-07-28, schema, `Implementation`). */
export interface Implementation {
  name: string
  version: string
  title?: string
  description?: string
  websiteUrl?: string
  icons?: Icon[]
}

/** What a client declares that it can do (schema, `ClientCapabilities`). */
export interface ClientCapabilities {
  experimental?: Record<string, JsonObject>
  roots?: JsonObject
  sampling?: { context?: JsonObject; tools?: JsonObject }
  elicitation?: { form?: JsonObject; url?: JsonObject }
  extensions?: Record<string, JsonObject>
}

/** What a server declares that it can do (schema, `ServerCapabilities`). */
export interface ServerCapabilities {
  experimental?: Record<string, JsonObject>
  logging?: JsonObject
  completions?: JsonObject
  prompts?: { listChanged?: boolean }
  resources?: { subscribe?: boolean; listChanged?: boolean }
  tools?: { listChanged?: boolean }
  extensions?: Record<string, JsonObject>
}

/** Who says something in a conversation. */
export type Role = 'user' | 'assistant'

/** Hints about a resource or a content block (server/resources, "Annotations"). */
export interface Annotations {
  audience?: Role[]
  /** 0 to 1; 1 is effectively required. */
  priority?: number
  /** ISO 8601. */
  lastModified?: string
}

/** Hints about a tool's behaviour (server/tools, schema `ToolAnnotations`). */
export interface ToolAnnotations {
  title?: string
  readOnlyHint?: boolean
  destructiveHint?: boolean
  idempotentHint?: boolean
  openWorldHint?: boolean
}

interface Annotated {
  annotations?: Annotations
  _meta?: Meta
}

/** Text, as a content block. */
export interface TextContent extends Annotated {
  type: 'text'
  text: string
}
/** A picture, as a content block. */
export interface ImageContent extends Annotated {
  type: 'image'
  /** Base64. */
  data: string
  mimeType: string
}
/** Sound, as a content block. */
export interface AudioContent extends Annotated {
  type: 'audio'
  /** Base64. */
  data: string
  mimeType: string
}
/** What is at a URI, in text. */
export interface TextResourceContents {
  uri: string
  mimeType?: string
  text: string
  _meta?: Meta
}
/** What is at a URI, in bytes. */
export interface BlobResourceContents {
  uri: string
  mimeType?: string
  /** Base64. */
  blob: string
  _meta?: Meta
}
/** What is at a URI. */
export type ResourceContents = TextResourceContents | BlobResourceContents
/** Where a resource is, as a content block: the client may read it. */
export interface ResourceLink extends Annotated {
  type: 'resource_link'
  uri: string
  name: string
  title?: string
  description?: string
  mimeType?: string
  size?: number
  icons?: Icon[]
}
/** The contents of a resource, as a content block. */
export interface EmbeddedResource extends Annotated {
  type: 'resource'
  resource: ResourceContents
}
/** A part of a tool's result or of a prompt's message. */
export type ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource

/** What `tools/call` answers (server/tools, "Tool Result"). */
export interface CallToolResult<Structured = unknown> {
  content: ContentBlock[]
  structuredContent?: Structured
  isError?: boolean
  _meta?: Meta
}
/** What `resources/read` answers. */
export interface ReadResourceResult {
  contents: ResourceContents[]
  _meta?: Meta
}
/** A message of a prompt. */
export interface PromptMessage {
  role: Role
  content: ContentBlock
}
/** What `prompts/get` answers. */
export interface GetPromptResult {
  description?: string
  messages: PromptMessage[]
  _meta?: Meta
}

/** A question to the user, as a form or as a page to visit (client/elicitation). */
export type ElicitParams =
  | { mode?: 'form'; message: string; requestedSchema: JsonSchema & { type: 'object' } }
  | { mode: 'url'; message: string; url: string }

/** What the user answered (client/elicitation). */
export interface ElicitResult {
  action: 'accept' | 'decline' | 'cancel'
  /** Present when a form was accepted; conforms to its `requestedSchema`. */
  content?: Record<string, string | number | boolean | string[]>
  _meta?: Meta
}

/** A message of a conversation with the client's language model. */
export interface SamplingMessage {
  role: Role
  content: JsonObject | JsonObject[]
}
/** A request to the client's language model (client/sampling). */
export interface SampleParams {
  messages: SamplingMessage[]
  maxTokens: number
  systemPrompt?: string
  temperature?: number
  stopSequences?: string[]
  modelPreferences?: JsonObject
  includeContext?: 'none' | 'thisServer' | 'allServers'
  tools?: JsonObject[]
  toolChoice?: JsonObject
  metadata?: JsonObject
}
/** What the client's language model said. */
export interface SampleResult {
  role: Role
  content: JsonObject | JsonObject[]
  model: string
  stopReason?: string
  _meta?: Meta
}
/** A place that the client works in: a `file:` URI (client/roots). */
export interface Root {
  uri: string
  name?: string
  _meta?: Meta
}
/** What `roots/list` answers. */
export interface RootsResult {
  roots: Root[]
  _meta?: Meta
}

/** What `completion/complete` answers; at most 100 values travel. */
export interface Completion {
  values: string[]
  total?: number
  hasMore?: boolean
}
