// Runs the handler of a tool inside the extensions that read its keys.
import type { Call } from './call.ts'
import type { ToolItem } from './catalog.ts'
import type { CallContext, ToolDefinition, ToolKeyName } from './define.ts'
import type { ShownKey } from './tool-keys.ts'

type MaybePromise<T> = T | Promise<T>

/** How an extension handles a key of tools. */
export interface ToolKey extends ShownKey {
  /**
   * Middleware around the handler of a tool with the key, after access and argument checks. Returns the result of `run`, or
   * another one. `run` counts towards `concurrency`; a handler that it receives runs in place of the tool's.
   */
  around?(call: Call, tool: ToolDefinition, run: RunTool): MaybePromise<object>
}

type RunTool = (instead?: (args: never, ctx: CallContext) => MaybePromise<object>) => MaybePromise<object>

/** The keys that the extensions of one route read. */
export type ToolKeys = ReadonlyMap<ToolKeyName, ToolKey>

export function runThroughKeys(
  call: Call,
  { keys, definition }: ToolItem,
  read: ToolKeys,
  run: RunTool,
): MaybePromise<object> {
  const through = (at: number, handler?: Parameters<RunTool>[0]): MaybePromise<object> => {
    const name = keys[at]
    if (name === undefined) return run(handler)
    const key = read.get(name)
    const inner: RunTool = instead => through(at + 1, instead ?? handler)
    return key?.around ? key.around(call, definition, inner) : inner()
  }
  return through(0)
}
