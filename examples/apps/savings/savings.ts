// The savings toolset: a tool with an app that draws a chart of its result.
// mcp.config.example.ts serves it as `savings`.
import { defineTool } from 'mcp-host'
import { defineApp } from 'mcp-host/apps'

const MAX_YEARS = 60

const chart = defineApp({
  name: 'savings',
  title: 'Savings plan',
  description: 'Draws a savings plan. Users can try other interest rates.',
  // Relative to this module. The page has no network access, because no origin is allowed.
  module: new URL('./page/savings-page.ts', import.meta.url),
  prefersBorder: true,
})

export const savingsPlan = defineTool({
  name: 'savings_plan',
  title: 'Savings plan',
  description: 'The savings at the end of each year, and the deposits until then.',
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  app: chart,
  input: {
    type: 'object',
    properties: {
      monthly: { type: 'number', minimum: 0, maximum: 1e9, description: 'Deposit per month.' },
      rate: { type: 'number', minimum: -50, maximum: 50, description: 'Interest per year, in percent.' },
      years: { type: 'integer', minimum: 1, maximum: MAX_YEARS },
      currency: { type: 'string', pattern: '^[A-Z]{3}$', default: 'EUR', description: 'ISO 4217 code.' },
    },
    required: ['monthly', 'rate', 'years'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: {
      currency: { type: 'string' },
      years: {
        type: 'array',
        items: {
          type: 'object',
          properties: { year: { type: 'integer' }, paid: { type: 'number' }, total: { type: 'number' } },
          required: ['year', 'paid', 'total'],
        },
      },
    },
    required: ['currency', 'years'],
  },
  // A complete result: a sentence for the model and for clients without apps, and the numbers for the page.
  handler: ({ monthly, rate, years, currency = 'EUR' }) => {
    const plan = { currency, years: growth(monthly, rate, years) }
    const money = new Intl.NumberFormat('en', { style: 'currency', currency })
    const { paid = 0, total = 0 } = plan.years.at(-1) ?? {}
    const text = `Savings after ${years} years: ${money.format(total)}, of which ${money.format(paid)} are deposits.`
    return { content: [{ type: 'text', text }], structuredContent: plan }
  },
})

const round = (amount: number) => Math.round(amount * 100) / 100

/** With deposits at the end of each month. */
function growth(monthly: number, rate: number, years: number) {
  let total = 0
  return Array.from({ length: years }, (_, index) => {
    for (let month = 0; month < 12; month++) total = total * (1 + rate / 1200) + monthly
    return { year: index + 1, paid: round(monthly * 12 * (index + 1)), total: round(total) }
  })
}
