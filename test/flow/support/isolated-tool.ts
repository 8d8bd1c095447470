// The isolated tool of generated configs; worker processes import this module.
import { defineTool } from '../../../core/index.ts'

export const ISOLATED = 'granite'

export const isolated = defineTool({
  name: ISOLATED,
  description: `Reads the ${ISOLATED} ledger.`,
  input: { type: 'object', properties: { [ISOLATED]: { type: 'integer' } }, required: [ISOLATED] },
  isolate: { processes: 1 },
  handler: args => `${ISOLATED}: ${JSON.stringify(args)}`,
})
