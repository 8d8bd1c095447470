// For built-in transports and stores: what package.json does not export.
export { importModule } from './config/import-module.ts'
export { systemClock, withTimeout } from './http/clock.ts'
export { createHttpServer, type ServerEvents } from './http/create-server.ts'
export { ERROR_KINDS, isUnavailable, shuttingDown, statusOf } from './http/errors.ts'
export { readBody } from './http/json-body.ts'
export { LinkedList, type TimeoutEntry, TimeoutQueue } from './http/linked-list.ts'
export { requestIdIn } from './http/request-target.ts'
export { type EventStream, LARGE_TEXT, openEventStream, RETRY, whenClosed } from './http/sse.ts'
export { type Transport, transportOf } from './internal-host.ts'
export type {
  CallReply,
  ClientInfo,
  ClientRequest,
  Offer,
  RequestInfo,
  RequestSender,
  ToolsetChoice,
} from './mcp/calls/call.ts'
export { isValidResponse, missingCapability, REQUEST_NAMES } from './mcp/calls/client-requests.ts'
export { callOf, contextCancellation, createCallFetch, roundOf } from './mcp/calls/context.ts'
export { FairQueue, type Queued } from './mcp/calls/fair-queue.ts'
export type { InputRequest } from './mcp/calls/request-state.ts'
export { InputRequired } from './mcp/calls/rounds.ts'
export {
  checkUri,
  limitOwnerOf,
  MAX_LISTENS_PER_CALLER,
  MAX_OPEN_GETS,
  MAX_WATCHED,
  MAX_WATCHED_BYTES,
  MAX_WATCHED_BYTES_PER_OWNER,
  shown,
  sizeProblem,
  WATCH_COST,
} from './mcp/client-limits.ts'
export { type Change, type ChangeBus, createChangeBus } from './mcp/definitions/change-bus.ts'
export { describeIsolationLimits } from './mcp/definitions/isolation-limits.ts'
export { encodeResponse } from './mcp/dispatch.ts'
export { clientInfoProblem } from './mcp/methods/params.ts'
export { plainText } from './mcp/plain-text.ts'
export type { RouteExtensions } from './mcp/routes/extensions.ts'
export type { View } from './mcp/routes/view.ts'
export { Cancellation } from './mcp/wire/cancellation.ts'
export { checkHeaderParams, decodeHeaderValue } from './mcp/wire/header-params.ts'
export {
  type EncodedResponse,
  encodeError,
  type Message,
  readMessages,
  requireBatches,
  type ValidMessage,
  validBatch,
} from './mcp/wire/message.ts'
export { LIST_FILTERS, LOG_LEVELS, META, type RequestId } from './mcp/wire/protocol.ts'
export {
  ASSUMED_REVISION,
  HANDSHAKE_REVISIONS,
  isHandshakeRevision,
  isModernRevision,
  LATEST_HANDSHAKE,
  MODERN_REVISION,
  REVISIONS,
  rulesOf,
} from './mcp/wire/revisions.ts'
export {
  type ChangeFeed,
  createWatchCharges,
  filterUpdates,
  type Subscriber,
  watchedCost,
} from './sessions/change-feed.ts'
export { connectClient } from './sessions/connect-client.ts'
export { createSessionStore } from './sessions/create-session-store.ts'
export { withoutCredentials } from './sessions/credentials.ts'
export {
  createEventStore,
  type EventStore,
  parseEventId,
  type StreamLimits,
} from './sessions/event-store.ts'
export { createPeers, type PeerMessage, type Peers } from './sessions/peers.ts'
export type { ResumableStream } from './sessions/resumable-stream.ts'
export {
  createLineReply,
  type ReplyLine,
  receiveMessage,
  serveRequests,
} from './sessions/serve.ts'
export type { Session } from './sessions/session.ts'
export { storeUnavailable } from './sessions/session-errors.ts'
export type {
  SessionLimits,
  SessionRecord,
  SessionStore,
  Victim,
} from './sessions/session-store.ts'
export type { ForwardedMessage } from './sessions/session-streams.ts'
export { processEntry, startThread } from './threads/start-thread.ts'
