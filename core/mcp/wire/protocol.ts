// Protocol types, written out so that the package's declarations compile without the MCP SDK.

/** Reserved `_meta` keys (2026-07-28, basic, "_meta"). */
export const META = {
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
} as const

/** List filters of `subscriptions/listen` (2026-07-28). */
export const LIST_FILTERS = {
  toolsListChanged: 'tools',
  promptsListChanged: 'prompts',
  resourcesListChanged: 'resources',
} as const

export const LISTEN_FILTERS: ReadonlySet<string> = new Set([...Object.keys(LIST_FILTERS), 'resourceSubscriptions'])

/** Severities of RFC 5424, least severe first. */
export const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
/** One of LOG_LEVELS. */
export type LogLevel = (typeof LOG_LEVELS)[number]

export type RequestId = string | number
/** Links progress notifications to their request. */
export type ProgressToken = string | number
/** The value of `_meta`. */
export type Meta = Record<string, unknown>
/** A JSON object. */
export type JsonObject = Record<string, unknown>
/** Draft 2020-12 unless `$schema` is draft-07. */
export type JsonSchema = JsonObject

export interface Icon {
  src: string
  mimeType?: string
  sizes?: string[]
  theme?: 'light' | 'dark'
}

/** Name and version of a server or client. */
export interface Implementation {
  name: string
  version: string
  title?: string
  description?: string
  websiteUrl?: string
  icons?: Icon[]
}

export interface ClientCapabilities {
  experimental?: Record<string, JsonObject>
  roots?: JsonObject
  sampling?: { context?: JsonObject; tools?: JsonObject }
  elicitation?: { form?: JsonObject; url?: JsonObject }
  extensions?: Record<string, JsonObject>
}

export interface ServerCapabilities {
  experimental?: Record<string, JsonObject>
  logging?: JsonObject
  completions?: JsonObject
  prompts?: { listChanged?: boolean }
  resources?: { subscribe?: boolean; listChanged?: boolean }
  tools?: { listChanged?: boolean }
  extensions?: Record<string, JsonObject>
}

export type Role = 'user' | 'assistant'

/** Spec: server/resources, "Annotations". */
export interface Annotations {
  audience?: Role[]
  /** 0 to 1; 1 is effectively required. */
  priority?: number
  /** ISO 8601. */
  lastModified?: string
}

/** Hints about a tool's behaviour (server/tools). */
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

export interface TextContent extends Annotated {
  type: 'text'
  text: string
}
interface Media extends Annotated {
  /** Base64. */
  data: string
  mimeType: string
}

export interface ImageContent extends Media {
  type: 'image'
}
export interface AudioContent extends Media {
  type: 'audio'
}
export interface TextResourceContents {
  uri: string
  mimeType?: string
  text: string
  _meta?: Meta
}
export interface BlobResourceContents {
  uri: string
  mimeType?: string
  /** Base64. */
  blob: string
  _meta?: Meta
}
/** Text or binary resource contents. */
export type ResourceContents = TextResourceContents | BlobResourceContents
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
export interface EmbeddedResource extends Annotated {
  type: 'resource'
  resource: ResourceContents
}
/** Content of a tool result or prompt message. */
export type ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource

/** Spec: server/tools, "Tool Result". */
export interface CallToolResult<Structured = unknown> {
  content: ContentBlock[]
  structuredContent?: Structured
  isError?: boolean
  _meta?: Meta
}
/** Result of `resources/read`. */
export interface ReadResourceResult {
  contents: ResourceContents[]
  _meta?: Meta
}
/** A message of a prompt. */
export interface PromptMessage {
  role: Role
  content: ContentBlock
}
/** Result of `prompts/get`. */
export interface GetPromptResult {
  description?: string
  messages: PromptMessage[]
  _meta?: Meta
}

/** A form, or a URL for the user to visit (client/elicitation). */
export type ElicitParams =
  | { mode?: 'form'; message: string; requestedSchema: JsonSchema & { type: 'object' } }
  | { mode: 'url'; message: string; url: string }

/** The user's response (client/elicitation). */
export interface ElicitResult {
  action: 'accept' | 'decline' | 'cancel'
  /** Present when a form was accepted; conforms to its `requestedSchema`. */
  content?: Record<string, string | number | boolean | string[]>
  _meta?: Meta
}

export interface SamplingMessage {
  role: Role
  content: JsonObject | JsonObject[]
}
/** Spec: client/sampling. */
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
/** The response of the client's language model. */
export interface SampleResult {
  role: Role
  content: JsonObject | JsonObject[]
  model: string
  stopReason?: string
  _meta?: Meta
}
/** A `file:` URI (client/roots). */
export interface Root {
  uri: string
  name?: string
  _meta?: Meta
}
/** Result of `roots/list`. */
export interface RootsResult {
  roots: Root[]
  _meta?: Meta
}

/** Result of `completion/complete`, with at most 100 values. */
export interface Completion {
  values: string[]
  total?: number
  hasMore?: boolean
}
