// Runs a tool's handler inside the extensions that read its keys.
import type { Call } from './call.ts'
import type { ToolItem } from './catalog.ts'
import type { CallContext, ToolDefinition, ToolKeyName } from './define.ts'
import type { ShownKey } from './tool-keys.ts'

type MaybePromise<T> = T | Promise<T>

/** An extension's handler for a tool key. */
export interface ToolKey extends ShownKey {
  /** Runs after access and argument checks. `run` counts towards `concurrency`; its argument replaces the handler. */
  around?(call: Call, tool: ToolDefinition, run: RunTool): MaybePromise<object>
}

type RunTool = (instead?: (args: never, ctx: CallContext) => MaybePromise<object>) => MaybePromise<object>

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
