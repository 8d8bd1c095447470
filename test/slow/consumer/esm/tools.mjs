import { defineTool } from 'mcp-host'

export const repeat = defineTool({
  name: 'repeat',
  input: { type: 'object', properties: { text: { type: 'string' }, times: { type: 'integer' } } },
  handler: ({ text, times }) => `${text.repeat(times)}!`,
})
