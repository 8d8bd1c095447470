// Tools of a project whose package.json says nothing of modules (package.slow.ts writes it): TypeScript is CommonJS there.
import { defineTool } from 'mcp-host'

export const repeat = defineTool({
  name: 'repeat',
  input: {
    type: 'object',
    properties: { text: { type: 'string' }, times: { type: 'integer' } },
    required: ['text', 'times'],
  },
  handler: ({ text, times }) => `${text.repeat(times)}!`,
})
