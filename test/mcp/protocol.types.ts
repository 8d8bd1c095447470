// Compile-time only: our public wire types (core/mcp/wire/protocol.ts) against those of the official package, which follows
// the schema. One that drifts fails `npm run types`; nothing here runs.
import type * as Sdk from '@modelcontextprotocol/server'
import type * as Ours from '../../core/mcp/wire/protocol.ts'

type KnownKey<K> = string extends K ? never : number extends K ? never : K

/** Without what only says "more keys may come": index signatures beside known keys, and undefined for an absent key. */
type Plain<T> = T extends readonly (infer Item)[]
  ? Plain<Item>[]
  : T extends object
    ? [keyof { [K in keyof T as KnownKey<K>]: true }] extends [never]
      ? Record<string, unknown>
      : { [K in keyof T as KnownKey<K>]: Plain<Exclude<T[K], undefined>> }
    : T

type Fits<From, To> = [Plain<From>] extends [Plain<To>] ? true : false
/** Either may be given for the other. */
type Mutual<One, Other> = [Fits<One, Other>, Fits<Other, One>]
type Same<T extends Record<keyof T, [true, true]>> = T
type Holds<T extends Record<keyof T, true>> = T
type Fails<T extends Record<keyof T, false>> = T

export type MutuallyAssignable = Same<{
  textContent: Mutual<Ours.TextContent, Sdk.TextContent>
  imageContent: Mutual<Ours.ImageContent, Sdk.ImageContent>
  audioContent: Mutual<Ours.AudioContent, Sdk.AudioContent>
  resourceLink: Mutual<Ours.ResourceLink, Sdk.ResourceLink>
  embeddedResource: Mutual<Ours.EmbeddedResource, Sdk.EmbeddedResource>
  contentBlock: Mutual<Ours.ContentBlock, Sdk.ContentBlock>
  textResource: Mutual<Ours.TextResourceContents, Sdk.TextResourceContents>
  blobResource: Mutual<Ours.BlobResourceContents, Sdk.BlobResourceContents>
  annotations: Mutual<Ours.Annotations, Sdk.Annotations>
  toolAnnotations: Mutual<Ours.ToolAnnotations, Sdk.ToolAnnotations>
  icon: Mutual<Ours.Icon, Sdk.Icon>
  implementation: Mutual<Ours.Implementation, Sdk.Implementation>
  role: Mutual<Ours.Role, Sdk.Role>
  logLevel: Mutual<Ours.LogLevel, Sdk.LoggingLevel>
  requestId: Mutual<Ours.RequestId, Sdk.RequestId>
  progressToken: Mutual<Ours.ProgressToken, Sdk.ProgressToken>
  root: Mutual<Ours.Root, Sdk.Root>
  rootsResult: Mutual<Ours.RootsResult, Sdk.ListRootsResult>
  elicitResult: Mutual<Ours.ElicitResult, Sdk.ElicitResult>
  callToolResult: Mutual<Ours.CallToolResult, Sdk.CallToolResult>
  readResourceResult: Mutual<Ours.ReadResourceResult, Sdk.ReadResourceResult>
  getPromptResult: Mutual<Ours.GetPromptResult, Sdk.GetPromptResult>
  promptMessage: Mutual<Ours.PromptMessage, Sdk.PromptMessage>
  completion: Mutual<Ours.Completion, Sdk.CompleteResult['completion']>
  clientCapabilities: Mutual<Ours.ClientCapabilities, Sdk.ClientCapabilities>
  serverCapabilities: Mutual<Ours.ServerCapabilities, Sdk.ServerCapabilities>
}>

/** What a client sends is what a handler gets; our side is the wider one where a block's shape is left to the client. */
export type TheirsFitOurs = Holds<{
  sampleParams: Fits<Sdk.CreateMessageRequestParams, Ours.SampleParams>
  sampleResult: Fits<Sdk.CreateMessageResult, Ours.SampleResult>
  sampleResultWithTools: Fits<Sdk.CreateMessageResultWithTools, Ours.SampleResult>
  elicitForm: Fits<Sdk.ElicitRequestFormParams, Ours.ElicitParams>
  elicitUrl: Fits<Sdk.ElicitRequestURLParams, Ours.ElicitParams>
}>

/** 2026-07-28 took `elicitationId` out of a question by URL; nothing else of ours may be missing there. */
export type OursFitTheirs = Holds<{
  elicitUrl: Fits<Extract<Ours.ElicitParams, { mode: 'url' }>, Omit<Plain<Sdk.ElicitRequestURLParams>, 'elicitationId'>>
}>

/** That the comparison can say no: a missing field, a wrong type, a stray value of an enumeration. */
export type Refused = Fails<{
  missing: Fits<Omit<Ours.ImageContent, 'data'>, Sdk.ImageContent>
  wrong: Fits<Omit<Ours.TextContent, 'text'> & { text: number }, Sdk.TextContent>
  stray: Fits<Ours.Role | 'system', Sdk.Role>
  nested: Fits<{ contents: { uri: string }[] }, Ours.ReadResourceResult>
}>
