// The tool example_name.
import { defineTool } from 'mcp-host'

export const exampleName = defineTool({
  name: 'example_name',
  description: 'Say here what it does and when to use it: the model reads this.',
  input: {
    type: 'object',
    properties: { text: { type: 'string', maxLength: 1000, description: 'Say here what this is, too.' } },
    required: ['text'],
    additionalProperties: false,
  },
  handler: ({ text }) => `example_name was given: ${text}`,
})
