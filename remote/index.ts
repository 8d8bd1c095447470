// The MCP client engine: connections to servers of every protocol version, over HTTP and stdio.
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
export { RemoteError, type RemoteReason } from './errors.ts'

import type { Connection, ConnectOptions, Target } from './connection-types.ts'

export type Connect = (target: Target, options: ConnectOptions) => Promise<Connection>
