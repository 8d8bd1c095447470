// The prompt example_name.
import { definePrompt } from 'mcp-host'

export const exampleName = definePrompt({
  name: 'example_name',
  description: 'Say here what it is for: people choose it from a list.',
  arguments: { topic: { description: 'Say here what goes in.', required: true } },
  handler: ({ topic }) => `Tell me about ${topic}.`,
})
