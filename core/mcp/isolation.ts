// What runs a handler in a thread, as `tools/call` sees it; it is in core/isolated.
import type { Call } from './call.ts'
import type { CallContext, ToolDefinition } from './define.ts'
import type { IsolateBounds, ModuleTool } from './isolate.ts'
import type { CallUsage } from './replayed-asks.ts'

/** What a handler is run with, beside its arguments. */
export interface IsolatedCall {
  readonly tool: ToolDefinition
  readonly origin: ModuleTool
  readonly bounds: IsolateBounds
  /** Set for a handler that runs again. The thread adds what this run uses; the limits apply to the sum. */
  readonly used: CallUsage | undefined
  readonly args: unknown
  readonly call: Pick<Call, 'hold'>
  readonly ctx: CallContext
  /** Headers that go along with `ctx.fetch`. */
  readonly headers: Readonly<Record<string, string>>
}

/** Runs handlers in threads. */
export interface Isolation {
  /** What the handler gives or throws; a ToolError where it went over its bounds, and is ended. */
  run(isolated: IsolatedCall): Promise<unknown>
}
