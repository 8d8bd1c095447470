// The calculator toolset: one tool whose work is bounded whatever it is asked.
// mcp.config.example.ts serves it as `calculator`.
import { defineTool } from 'mcp-host'
import { compute } from './compute.ts'

export const calculate = defineTool({
  name: 'calculate',
  title: 'Calculate',
  description: `Calculates with a list of numbers, in double precision. add, multiply, mean, median, min and max take \
them together; subtract, divide and power begin with the first and go on with each of the others.`,
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  input: {
    type: 'object',
    properties: {
      operation: {
        type: 'string',
        enum: ['add', 'subtract', 'multiply', 'divide', 'power', 'mean', 'median', 'min', 'max'],
      },
      // Their count bounds the work.
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
  // operation: one of those words; numbers: number[]. Both come from the schema.
  handler: ({ operation, numbers }) => ({ result: compute(operation, numbers) }),
})
