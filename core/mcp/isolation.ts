// The slot `isolation`: runs the handlers of tools with `isolate` outside of this process.
import type { Call } from './call.ts'
import type { CallContext, ToolDefinition } from './define.ts'
import type { IsolateBounds, ModuleTool } from './isolate.ts'
import type { CallUsage } from './replayed-asks.ts'

/** A call of a tool with `isolate`. */
export interface IsolatedCall {
  readonly tool: ToolDefinition
  readonly origin: ModuleTool
  readonly bounds: IsolateBounds
  /** Set for a handler that runs again. `run` adds what this run uses; the limits apply to the sum. */
  readonly used: CallUsage | undefined
  readonly args: unknown
  readonly call: Pick<Call, 'hold'>
  readonly ctx: CallContext
  /** Of `ctx.fetch`, milliseconds. */
  readonly fetchTimeout: number
  /** Headers that go along with `ctx.fetch`. */
  readonly headers: Readonly<Record<string, string>>
}

/** Runs handlers outside of this process. */
export interface Isolation {
  /** Returns what the handler returns, and rejects with what it throws. Rejects with a ToolError for a handler beyond its limits. */
  run(isolated: IsolatedCall): Promise<unknown>
}

/** The service if no plugin fills the slot. The host checks at startup that it is not needed. */
export const noIsolation: Isolation = {
  run: ({ tool }) => Promise.reject(new Error(`"${tool.name}" has \`isolate\`, but no plugin provides the isolation`)),
}
