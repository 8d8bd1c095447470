// Reads a toolset of the config: its sources, and whether parameters of routes reach it.
import { kindOf } from '../mcp/define.ts'
import { isObject } from '../mcp/is-object.ts'
import { isPlain } from './plain.ts'

/** A toolset with settings. A definition is an object, too. */
export const hasSettings = (toolset: unknown): toolset is Readonly<Record<string, unknown>> =>
  isObject(toolset) && isPlain(toolset) && kindOf(toolset) === undefined && 'from' in toolset

/** What a toolset is loaded from. */
export const sourceOf = (toolset: unknown): unknown => (hasSettings(toolset) ? toolset['from'] : toolset)
