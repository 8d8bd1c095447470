// What a test looks at in a result: its texts, its structured content, whether it failed.
import type { CallToolResult, GetPromptResult, ReadResourceResult } from '../mcp/protocol.ts'

/** The texts of its content, joined by line breaks, and the rest in short. */
export function toolOutcome(result: CallToolResult) {
  const text = result.content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n')
  return { result, structured: result.structuredContent, text, isError: result.isError === true }
}

export const resourceText = ({ contents }: ReadResourceResult): string =>
  contents.flatMap(one => ('text' in one ? [one.text] : [])).join('\n')

export const promptText = ({ messages }: GetPromptResult): string =>
  messages.flatMap(({ content }) => (content.type === 'text' ? [content.text] : [])).join('\n')
