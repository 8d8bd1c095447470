// Calls a tool, and reports its notifications.
import { PATHS, type TryRequest, type TryResult } from '../../api.ts'
import { RequestError, send } from './request.ts'
import type { JsonObject } from './schema.ts'
import { partsOf } from './stream.ts'

const isResult = (line: JsonObject | TryResult): line is TryResult => 'response' in line

interface Options {
  readonly signal: AbortSignal
  readonly onNotification?: (notification: JsonObject) => void
}

export async function callTool(request: TryRequest, { signal, onNotification }: Options): Promise<TryResult> {
  const headers = { 'Content-Type': 'application/json' }
  const response = await send(PATHS.try, { method: 'POST', headers, body: JSON.stringify(request), signal })
  let result: TryResult | undefined
  for await (const text of partsOf(response, '\n')) {
    const line: JsonObject | TryResult = JSON.parse(text)
    if (isResult(line)) result = line
    else onNotification?.(line)
  }
  if (!result) throw new RequestError(502, 'The response is incomplete.')
  return result
}

/** True for a tool that can be destructive: in MCP also a tool without hints. */
export function canDestroy(shown: JsonObject): boolean {
  const hints = shown['annotations']
  const { readOnlyHint, destructiveHint } = (hints ?? {}) as { readOnlyHint?: unknown; destructiveHint?: unknown }
  return readOnlyHint !== true && destructiveHint !== false
}
