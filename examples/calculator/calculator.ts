// The calculator toolset: one tool whose work is bounded whatever it is asked.
// mcp.config.example.ts serves it as `calculator`.
import { defineTool } from 'mcp-host'
import { evaluate, FUNCTION_NAMES } from './evaluate.ts'

export const calculate = defineTool({
  name: 'calculate',
  title: 'Calculate',
  description: `Evaluates an arithmetic expression in double precision. Operators: + - * / % ^ ! and parentheses. \
Constants: pi, e. Functions: ${FUNCTION_NAMES.join(', ')} (angles in radians).`,
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  input: {
    type: 'object',
    properties: {
      // The length bounds the work: evaluate.ts relies on it.
      expression: { type: 'string', minLength: 1, maxLength: 500, description: 'Such as: price * (1 + rate)^years' },
      variables: {
        type: 'object',
        propertyNames: { pattern: '^[A-Za-z][A-Za-z0-9_]{0,31}$' },
        additionalProperties: { type: 'number' },
        maxProperties: 20,
        description: 'Values of the names in the expression, such as { "price": 100 }',
      },
    },
    required: ['expression'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: { expression: { type: 'string' }, result: { type: 'number' } },
    required: ['expression', 'result'],
  },
  handler: ({ expression, variables }) => ({ expression, result: evaluate(expression, variables) }),
})
