// The error kinds of MCP. The package entries load this module, because a tool or plugin can create an error of each kind.
import { addErrorKinds, errorKind } from '../../http/errors.ts'

// The codes -32020 to -32022 are defined in 2026-07-28.
const MCP_KINDS = {
  invalidMeta: errorKind(400, -32602, 'Invalid request metadata'),
  headerMismatch: errorKind(400, -32020, 'Header mismatch'),
  missingCapability: errorKind(400, -32021, 'Missing required client capability'),
  unsupportedVersion: errorKind(400, -32022, 'Unsupported protocol version'),
  methodNotFound: errorKind(404, -32601, 'Method not found'),
  invalidParams: errorKind(200, -32602, 'Invalid params'),
  resourceNotFound: errorKind(200, -32602, 'Resource not found'),
  callTimeout: errorKind(200, -32603, 'The call took too long'),
  nodeLost: errorKind(200, -32603, 'The node was lost; the request may have run: repeat it if that is safe'),
  stateTooLarge: errorKind(200, -32603, 'The recorded responses do not fit into requestState'),
}

declare module '../../http/errors.ts' {
  interface ErrorKinds extends Record<keyof typeof MCP_KINDS, ErrorKind> {}
}

addErrorKinds(MCP_KINDS)
