// The slot `isolation`: runs the handlers of tools with `isolate` outside of this process.

import type { CallContext, ToolDefinition } from '../definitions/define.ts'
import type { IsolationLimits, ModuleTool } from '../definitions/isolation-limits.ts'
import type { Call } from './call.ts'
import type { CallUsage } from './client-requests.ts'

export interface IsolatedCall {
  readonly tool: ToolDefinition
  readonly origin: ModuleTool
  readonly limits: IsolationLimits
  /** Set if the handler runs again. `run` adds CPU time, and the limit applies to the sum. */
  readonly used: CallUsage | undefined
  readonly args: unknown
  readonly call: Pick<Call, 'hold' | 'user' | 'offer'>
  readonly ctx: CallContext
  /** The names of `ctx` members that plugins add: functions, which the host runs, and values, which stay in the host. */
  readonly members: { readonly functions: readonly string[]; readonly values: readonly string[] }
  /** Milliseconds. */
  readonly fetchTimeout: number
  readonly headers: Readonly<Record<string, string>>
}

export interface Isolation {
  /** Rejects with a ToolError if the handler exceeds its limits. */
  run(isolated: IsolatedCall): Promise<unknown>
}

export const noIsolation: Isolation = {
  run: ({ tool }) => Promise.reject(new Error(`"${tool.name}" has \`isolate\`, but no plugin provides the isolation`)),
}
