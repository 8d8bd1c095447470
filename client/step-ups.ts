// What was tried for which operation when the server said `insufficient_scope`: the first time is always tried, the same
// again is not, until the operation succeeded (MCP authorization, "Step-Up Authorization Flow").
import { covers, unite } from './scopes.ts'

/** Operations that are remembered at most; the oldest go first. */
const MAX_OPERATIONS = 1_000

export interface StepUps {
  /** False where asking for these scopes led nowhere before. */
  mayTry(operation: string, scopes: readonly string[]): boolean
  tried(operation: string, scopes: readonly string[]): void
  succeeded(operation: string): void
}

export function createStepUps(): StepUps {
  const operations = new Map<string, readonly string[]>()
  return {
    mayTry(operation, scopes) {
      const before = operations.get(operation)
      return before === undefined || !covers(before, scopes)
    },
    tried(operation, scopes) {
      const before = operations.get(operation)
      operations.delete(operation)
      operations.set(operation, unite(before, scopes))
      if (operations.size > MAX_OPERATIONS) operations.delete(operations.keys().next().value as string)
    },
    succeeded(operation) {
      if (operations.size > 0) operations.delete(operation)
    },
  }
}

/** What a request does, as far as it says so: headers of 2026-07-28, else its method and path. */
export function operationOf({ method, url, headers }: { method: string; url: URL; headers: Headers }): string {
  const name = headers.get('mcp-method')
  return name ? JSON.stringify([name, headers.get('mcp-name')]) : `${method} ${url.pathname}`
}
