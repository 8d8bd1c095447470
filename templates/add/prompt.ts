// The prompt example_name.
import { definePrompt } from 'mcp-host'

export const exampleName = definePrompt({
  name: 'example_name',
  description: 'Describe the prompt for users, who choose it from a list.',
  arguments: { topic: { description: 'Describe the argument.', required: true } },
  handler: ({ topic }) => `Tell me about ${topic}.`,
})
