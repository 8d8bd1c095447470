// Tools that take long, and so run as tasks: a report that may begin anew on another node, the end of a month, which happens
// once and asks its user on the way, and reminders, which ask before there is a task.
import { setTimeout as pause } from 'node:timers/promises'
import { defineTool, ToolError } from 'mcp-host'

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'] as const
const month = { type: 'string', enum: MONTHS } as const

/** What a database would take for one step, in milliseconds. */
const STEP = 200

const closed = new Set<string>()

export const salesReport = defineTool({
  name: 'sales_report',
  description: 'The sales of a year, month by month, in euros.',
  annotations: { readOnlyHint: true },
  // It changes nothing: where its node dies, another may begin it anew.
  task: { use: 'optional', retry: 'safe' },
  input: { type: 'object', properties: { year: { type: 'integer' } }, required: ['year'] },
  async handler({ year }, { progress, signal }) {
    const sales: Record<string, number> = {}
    for (const [at, name] of MONTHS.entries()) {
      progress(at, MONTHS.length, `adding up ${name}`)
      await pause(STEP, undefined, { signal }) // a task that is cancelled ends here
      sales[name] = ((year * 31 + at * 17) % 90) * 100
    }
    return { year, sales }
  },
})

export const closeMonth = defineTool({
  name: 'close_month',
  description: 'Closes the books of a month, once its user agrees.',
  annotations: { destructiveHint: true },
  // Only as a task. It must not happen twice, so nothing is said of `retry`: where its node dies, it ends as failed.
  task: 'required',
  input: { type: 'object', properties: { month }, required: ['month'] },
  async handler({ month }, { elicit, progress, signal }) {
    if (closed.has(month)) throw new ToolError(`${month} is closed already.`)
    progress(0, 2, 'counting what is open')
    await pause(STEP, undefined, { signal })
    const { action, content } = await elicit({
      message: `Close ${month}? 3 orders are open.`,
      requestedSchema: { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] },
    })
    if (action !== 'accept' || !content?.['confirm']) return `${month} stays open.`
    progress(1, 2, 'closing')
    await pause(STEP, undefined, { signal })
    closed.add(month)
    return `${month} is closed.`
  },
})

export const sendReminders = defineTool({
  name: 'send_reminders',
  description: 'Reminds customers of what they owe.',
  task: {
    use: 'optional',
    // Asked in the call: who cannot be asked hears of it at once, and there is no task that waits for somebody.
    async before({ month, tone }, { elicit }) {
      if (tone !== undefined) return { month, tone }
      const { content } = await elicit({
        message: 'In which tone?',
        requestedSchema: {
          type: 'object',
          properties: { tone: { type: 'string', enum: ['kind', 'firm'] } },
          required: ['tone'],
        },
      })
      if (content === undefined) throw new ToolError('Without a tone nobody is reminded.')
      return { month, tone: String(content['tone']) }
    },
  },
  input: { type: 'object', properties: { month, tone: { type: 'string' } }, required: ['month'] },
  async handler({ month, tone }, { progress, signal }) {
    for (let sent = 0; sent < 3; sent++) {
      progress(sent, 3, `${sent} of 3 are sent`)
      await pause(STEP, undefined, { signal })
    }
    return `3 ${tone} reminders for ${month} were sent.`
  },
})
