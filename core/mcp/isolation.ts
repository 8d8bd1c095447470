// The slot `isolation`: runs the handlers of tools with `isolate` outside of this process.
import type { CallUsage } from './asks.ts'
import type { Call } from './call.ts'
import type { CallContext, ToolDefinition } from './define.ts'
import type { IsolateBounds, ModuleTool } from './isolate.ts'

/** A call of a tool with `isolate`. */
export interface IsolatedCall {
  readonly tool: ToolDefinition
  readonly origin: ModuleTool
  readonly bounds: IsolateBounds
  /** Set if the handler runs again. `run` adds the CPU time of this run, and the limit applies to the sum. */
  readonly used: CallUsage | undefined
  readonly args: unknown
  readonly call: Pick<Call, 'hold' | 'user' | 'offer'>
  readonly ctx: CallContext
  /** Timeout of `ctx.fetch`, milliseconds. */
  readonly fetchTimeout: number
  /** Headers that `ctx.fetch` adds. */
  readonly headers: Readonly<Record<string, string>>
}

/** Runs handlers outside of this process. */
export interface Isolation {
  /** Resolves and rejects like the handler. Rejects with a ToolError if the handler exceeds its limits. */
  run(isolated: IsolatedCall): Promise<unknown>
}

/** The service if no plugin fills the slot. Startup fails for a tool that requires it. */
export const noIsolation: Isolation = {
  run: ({ tool }) => Promise.reject(new Error(`"${tool.name}" has \`isolate\`, but no plugin provides the isolation`)),
}
