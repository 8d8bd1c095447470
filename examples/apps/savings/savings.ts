// The savings toolset: a tool whose numbers are drawn by an app, where the client shows one.
// mcp.config.example.ts serves it as `savings`.
import { defineTool } from 'mcp-host'
import { defineApp } from 'mcp-host/apps'

const MAX_YEARS = 60

const chart = defineApp({
  name: 'savings',
  title: 'Savings plan',
  description: 'Draws a savings plan, and lets people try other rates.',
  // Beside this module, wherever the config is. No other origin is named: the page reaches none.
  module: new URL('./page/savings-page.ts', import.meta.url),
  prefersBorder: true,
})

export const savingsPlan = defineTool({
  name: 'savings_plan',
  title: 'Savings plan',
  description: 'How savings grow: what is there at the end of each year, and how much of it was paid in.',
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  app: chart,
  input: {
    type: 'object',
    properties: {
      monthly: { type: 'number', minimum: 0, maximum: 1e9, description: 'Paid in each month.' },
      rate: { type: 'number', minimum: -50, maximum: 50, description: 'Interest a year, in percent.' },
      years: { type: 'integer', minimum: 1, maximum: MAX_YEARS },
    },
    required: ['monthly', 'rate', 'years'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: {
      years: {
        type: 'array',
        items: {
          type: 'object',
          properties: { year: { type: 'integer' }, paid: { type: 'number' }, total: { type: 'number' } },
          required: ['year', 'paid', 'total'],
        },
      },
    },
    required: ['years'],
  },
  // A whole result: a sentence for the model and for clients without apps, the numbers for the page.
  handler: ({ monthly, rate, years }) => {
    const plan = { years: growth(monthly, rate, years) }
    const { paid = 0, total = 0 } = plan.years.at(-1) ?? {}
    const text = `After ${years} years there are ${round(total)}, of which ${round(paid)} were paid in.`
    return { content: [{ type: 'text', text }], structuredContent: plan }
  },
})

const round = (amount: number) => Math.round(amount * 100) / 100

/** Paid in at the end of each month, at a twelfth of the rate. */
function growth(monthly: number, rate: number, years: number) {
  let total = 0
  return Array.from({ length: years }, (_, index) => {
    for (let month = 0; month < 12; month++) total = total * (1 + rate / 1200) + monthly
    return { year: index + 1, paid: round(monthly * 12 * (index + 1)), total: round(total) }
  })
}
