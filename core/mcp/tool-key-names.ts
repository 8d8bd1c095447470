// The keys of tools that extensions read (tool-keys.ts), by name.
import type { ToolDefinition } from './define.ts'

/** Outermost first where a tool has several. */
export const TOOL_KEYS = ['task', 'app'] as const
export type ToolKeyName = (typeof TOOL_KEYS)[number]

const NONE: readonly ToolKeyName[] = []

/** Those that a tool has. The same empty list for all that have none. */
export function keysOf(definition: ToolDefinition): readonly ToolKeyName[] {
  const keys = TOOL_KEYS.filter(key => definition[key] !== undefined)
  return keys.length === 0 ? NONE : keys
}
