// `testResource`: a resource's handler as a route runs it, without HTTP.
import type { ResourceDefinition } from '../mcp/define.ts'
import type { ReadResourceResult } from '../mcp/protocol.ts'
import { resourceText } from './outcomes.ts'
import { type Happened, type RunSettings, runAlone } from './run-alone.ts'

/** What a resource gave, and what happened meanwhile. */
export interface ResourceOutcome extends Happened {
  readonly result: ReadResourceResult
  /** The texts of its contents, joined by line breaks. */
  readonly text: string
}

/**
 * Reads a resource, or one of a family, as a route does. Rejects with a HostError, `resourceNotFound`, where the handler
 * returns nothing or `uri` does not match; and with what the handler throws.
 */
export async function testResource(
  resource: ResourceDefinition,
  uri: string = resource.uri ?? '',
  settings?: RunSettings,
): Promise<ResourceOutcome> {
  const { result, happened } = await runAlone<ReadResourceResult>(resource, 'resources/read', { uri }, settings)
  return { result, text: resourceText(result), ...happened }
}
