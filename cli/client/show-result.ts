// The result of a call for a person: text as it is, structured content as JSON, everything else by what it is.
import { isDeepStrictEqual } from 'node:util'
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client'

const sizeOf = (base64: string): string => `${Buffer.byteLength(base64, 'base64')} bytes`

function describeBlock(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
    case 'audio':
      return `[${block.type}: ${block.mimeType}, ${sizeOf(block.data)}; --json prints it]`
    case 'resource_link':
      return `[resource: ${block.uri}, ${block.title ?? block.name}]`
    case 'resource': {
      const { resource } = block
      if ('text' in resource) return resource.text
      return `[resource: ${resource.uri}, ${sizeOf(resource.blob)}; --json prints it]`
    }
    default:
      return JSON.stringify(block)
  }
}

/** Servers repeat structured content as text, for clients that do not know it. */
function repeats(text: string, structured: unknown): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(text), structured)
  } catch {
    return false
  }
}

export function showResult({ content, structuredContent }: CallToolResult): string {
  const blocks = content.filter(
    block => block.type !== 'text' || structuredContent === undefined || !repeats(block.text, structuredContent),
  )
  const parts = blocks.map(describeBlock)
  if (structuredContent !== undefined) parts.push(JSON.stringify(structuredContent, undefined, 2))
  return parts.join('\n')
}
