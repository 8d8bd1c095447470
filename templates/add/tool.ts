// The tool example_name.
import { defineTool } from 'mcp-host'

export const exampleName = defineTool({
  name: 'example_name',
  description: 'Describe for the model what the tool does and when to use it.',
  input: {
    type: 'object',
    properties: { text: { type: 'string', maxLength: 1000, description: 'Describe the argument.' } },
    required: ['text'],
    additionalProperties: false,
  },
  handler: ({ text }) => `example_name received: ${text}`,
})
