// The MCP client engine: connections to servers of every protocol version, over HTTP and stdio.
export { connect } from './connect.ts'
export type {
  CommandTarget,
  Connection,
  ConnectOptions,
  Era,
  HttpTarget,
  ListenFilters,
  Listening,
  Progress,
  RequestOptions,
  ServerNotification,
  ServerRequest,
  Target,
  TlsOptions,
} from './connection-types.ts'
export { operatorText, RemoteError, type RemoteReason } from './errors.ts'
export { createPool } from './http/wire.ts'
export { isTooDeep, MAX_LEVELS } from './messages.ts'
