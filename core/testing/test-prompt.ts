// `testPrompt`: a prompt's handler as a route runs it, without HTTP.
import type { PromptDefinition } from '../mcp/define.ts'
import type { GetPromptResult } from '../mcp/protocol.ts'
import { promptText } from './outcomes.ts'
import { type Happened, type RunSettings, runAlone } from './run-alone.ts'

/** What a prompt gave, and what happened meanwhile. */
export interface PromptOutcome extends Happened {
  readonly result: GetPromptResult
  /** The texts of its messages, joined by line breaks. */
  readonly text: string
}

/** Gets a prompt as a route does. Rejects with a HostError, `invalidParams`, for arguments that it does not take. */
export async function testPrompt(
  prompt: PromptDefinition,
  args: Readonly<Record<string, string>> = {},
  settings?: RunSettings,
): Promise<PromptOutcome> {
  const params = { name: prompt.name, arguments: { ...args } }
  const { result, happened } = await runAlone<GetPromptResult>(prompt, 'prompts/get', params, settings)
  return { result, text: promptText(result), ...happened }
}
