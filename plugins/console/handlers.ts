// The handlers of the API, by method and path.
import type { InternalHost, Operator } from '../../core/internal.ts'
import type { OperatorSession } from './login.ts'
import type { Records } from './records.ts'
import type { ApiHandler } from './server.ts'

export interface HandlerParts {
  readonly host: InternalHost
  readonly operator: Operator
  readonly records: Records
  readonly isActive: boolean
}

export function createHandlers(_parts: HandlerParts) {
  const handlers: Record<string, ApiHandler> = {}
  return { handlers, meOf: (_session: OperatorSession) => ({}), end: () => undefined }
}
