// The calculator toolset: a tool with limited work per call.
// mcp.config.example.ts serves it as `calculator`.
import { defineTool } from 'mcp-host'
import { compute } from './compute.ts'

export const calculate = defineTool({
  name: 'calculate',
  title: 'Calculate',
  description: `Calculates with a list of numbers, in double precision. subtract, divide and power apply the other \
numbers in turn to the first.`,
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  input: {
    type: 'object',
    properties: {
      operation: {
        type: 'string',
        enum: ['add', 'subtract', 'multiply', 'divide', 'power', 'mean', 'median', 'min', 'max'],
      },
      // The number of items limits the work.
      numbers: {
        type: 'array',
        items: { type: 'number' },
        minItems: 1,
        maxItems: 1000,
        description: 'Such as [2, 3.5]',
      },
    },
    required: ['operation', 'numbers'],
    additionalProperties: false,
  },
  output: { type: 'object', properties: { result: { type: 'number' } }, required: ['result'] },
  // The schema defines the types of `operation` and `numbers`.
  handler: ({ operation, numbers }) => ({ result: compute(operation, numbers) }),
})
