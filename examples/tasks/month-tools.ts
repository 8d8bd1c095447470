// Long-running tools. A report can restart on another node. Closing a month runs once and requests confirmation. Reminders
// request input before the task is created.
import { setTimeout as pause } from 'node:timers/promises'
import { defineTool, ToolError } from 'mcp-host'

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'] as const
const month = { type: 'string', enum: MONTHS } as const

/** Simulated duration of a database query. */
const STEP_MS = 200

const closedMonths = new Set<string>()

export const salesReport = defineTool({
  name: 'sales_report',
  description: 'Returns the sales of a year per month, in euros.',
  annotations: { readOnlyHint: true },
  // Changes nothing, so another node can restart it if this node fails.
  task: { use: 'optional', retry: 'safe' },
  input: { type: 'object', properties: { year: { type: 'integer' } }, required: ['year'] },
  async handler({ year }, { progress, signal }) {
    const sales: Record<string, number> = {}
    for (const [index, name] of MONTHS.entries()) {
      progress(index, MONTHS.length, `adding up ${name}`)
      await pause(STEP_MS, undefined, { signal }) // Rejects if the task is cancelled.
      sales[name] = ((year * 31 + index * 17) % 90) * 100
    }
    return { year, sales }
  },
})

export const closeMonth = defineTool({
  name: 'close_month',
  description: 'Closes the books of a month after the user confirms.',
  annotations: { destructiveHint: true },
  // Always a task. Must not run twice, so it has no `retry`: if its node fails, the task fails.
  task: 'required',
  input: { type: 'object', properties: { month }, required: ['month'] },
  async handler({ month }, { elicit, progress, signal }) {
    if (closedMonths.has(month)) throw new ToolError(`${month} is already closed.`)
    progress(0, 2, 'counting open orders')
    await pause(STEP_MS, undefined, { signal })
    const { action, content } = await elicit({
      message: `Close ${month}? 3 orders are open.`,
      requestedSchema: { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] },
    })
    if (action !== 'accept' || !content?.['confirm']) return `${month} stays open.`
    progress(1, 2, 'closing')
    await pause(STEP_MS, undefined, { signal })
    closedMonths.add(month)
    return `${month} is closed.`
  },
})

export const sendReminders = defineTool({
  name: 'send_reminders',
  description: 'Sends reminders to customers with unpaid orders.',
  task: {
    use: 'optional',
    // Runs in the call, before the task is created. Without elicitation support, the call fails immediately.
    async before({ month, tone }, { elicit }) {
      if (tone !== undefined) return { month, tone }
      const { content } = await elicit({
        message: 'Which tone?',
        requestedSchema: {
          type: 'object',
          properties: { tone: { type: 'string', enum: ['kind', 'firm'] } },
          required: ['tone'],
        },
      })
      if (content === undefined) throw new ToolError('No reminders were sent, because no tone was selected.')
      return { month, tone: String(content['tone']) }
    },
  },
  input: { type: 'object', properties: { month, tone: { type: 'string' } }, required: ['month'] },
  async handler({ month, tone }, { progress, signal }) {
    for (let sent = 0; sent < 3; sent++) {
      progress(sent, 3, `${sent} of 3 sent`)
      await pause(STEP_MS, undefined, { signal })
    }
    return `3 ${tone} reminders for ${month} were sent.`
  },
})
