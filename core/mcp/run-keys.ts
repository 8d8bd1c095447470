// From a tool's checked call to its handler, through what extensions do with the keys that the tool has.
import type { Call } from './call.ts'
import type { ToolItem } from './catalog.ts'
import type { CallContext, ToolDefinition, ToolKeyName } from './define.ts'
import type { ShownKey } from './tool-keys.ts'

type MaybePromise<T> = T | Promise<T>

/** What an extension does with a key of tools. */
export interface ToolKey extends ShownKey {
  /**
   * Around the handler, once the caller was let in and the arguments were checked: gives what `run` does, or a result of the
   * extension in its place. Never for a tool without the key. `run` takes the tool's place among its `concurrency`; with a
   * handler it runs that one in place of the tool's.
   */
  around?(call: Call, tool: ToolDefinition, run: RunTool): MaybePromise<object>
}

/** Runs a tool's handler, or another in its place, to a result. */
type RunTool = (instead?: (args: never, ctx: CallContext) => MaybePromise<object>) => MaybePromise<object>

/** The keys that the extensions of one route read. */
export type ToolKeys = ReadonlyMap<ToolKeyName, ToolKey>

/** Through what the keys of a tool do, to its handler. */
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
