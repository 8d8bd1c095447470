// Conformance prompts: plain, with arguments, with a resource, with an image, and one that sends a request first.
import { definePrompt } from 'mcp-host'
import { RED_PIXEL } from './samples.ts'

const words = ['paris', 'park', 'party', 'test', 'testing']

export const prompts = [
  definePrompt({
    name: 'test_simple_prompt',
    description: 'One message.',
    handler: () => 'This is a simple prompt for testing.',
  }),
  definePrompt({
    name: 'test_prompt_with_arguments',
    description: 'One message that repeats its arguments.',
    arguments: {
      arg1: {
        description: 'First argument',
        required: true,
        complete: (value: string) => words.filter(word => word.startsWith(value)),
      },
      arg2: { description: 'Second argument', required: true },
    },
    handler: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  }),
  definePrompt({
    name: 'test_prompt_with_embedded_resource',
    description: 'A resource, and what to do with it.',
    arguments: { resourceUri: { description: 'URI of the resource', required: true } },
    handler: ({ resourceUri }) => [
      {
        role: 'user',
        content: {
          type: 'resource',
          resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
        },
      },
      { role: 'user', content: { type: 'text', text: 'Please process the embedded resource above.' } },
    ],
  }),
  definePrompt({
    name: 'test_prompt_with_image',
    description: 'A picture, and what to do with it.',
    handler: () => [
      { role: 'user', content: { type: 'image', data: RED_PIXEL, mimeType: 'image/png' } },
      { role: 'user', content: { type: 'text', text: 'Please analyze the image above.' } },
    ],
  }),
  definePrompt({
    name: 'test_input_required_result_prompt',
    description: 'Asks the user for a context and uses it.',
    async handler(_args, ctx) {
      const requestedSchema = {
        type: 'object' as const,
        properties: { context: { type: 'string' } },
        required: ['context'],
      }
      const message = 'What context should the prompt use?'
      const { content } = await ctx.elicit({ message, requestedSchema }, { key: 'user_context' })
      return `Work in this context: ${content?.['context'] ?? 'none'}`
    },
  }),
]
