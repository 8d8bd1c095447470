// Conformance tools for tasks: one without tasks, and slow, failing and requesting ones.
import { setTimeout as delay } from 'node:timers/promises'
import { type CallContext, defineTool, type ElicitParams, HostError, ToolError } from 'mcp-host'

const confirmation: ElicitParams = {
  message: 'Is that all right?',
  requestedSchema: { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] },
}
const named: ElicitParams = {
  message: 'What is your name?',
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
}

async function nameFrom({ elicit }: CallContext): Promise<string> {
  const { content } = await elicit(named)
  return String(content?.['name'])
}

export const taskTools = [
  defineTool({
    name: 'greet',
    description: 'Greets, at once.',
    input: { type: 'object', properties: { name: { type: 'string' } } },
    handler: ({ name = 'you' }) => `Hello, ${name}!`,
  }),
  defineTool({
    name: 'slow_compute',
    description: 'Takes so many seconds.',
    task: { use: 'optional', retry: 'safe' },
    input: { type: 'object', properties: { seconds: { type: 'number' }, label: { type: 'string' } } },
    async handler({ seconds = 0, label = 'it' }, { signal }) {
      await delay(seconds * 1_000, undefined, { signal })
      return `${label} took ${seconds} s`
    },
  }),
  defineTool({
    name: 'failing_job',
    description: 'Fails, as tools do.',
    task: 'required',
    handler: () => {
      throw new ToolError('the job failed')
    },
  }),
  defineTool({
    name: 'protocol_error_job',
    description: 'Fails with an error of the protocol.',
    task: 'optional',
    handler: () => {
      throw new HostError('internal', { detail: 'the job broke' })
    },
  }),
  defineTool({
    name: 'confirm_delete',
    description: 'Asks before it does anything.',
    task: 'optional',
    input: { type: 'object', properties: { filename: { type: 'string' } } },
    async handler({ filename = 'a file' }, { elicit }) {
      const { content } = await elicit(confirmation)
      return content?.['confirm'] === true ? `${filename} is gone` : `${filename} is still there`
    },
  }),
  defineTool({
    name: 'multi_input',
    description: 'Asks two things at once.',
    task: 'optional',
    async handler(_args, ctx) {
      const [name, { action }] = await Promise.all([nameFrom(ctx), ctx.elicit(confirmation)])
      return `${name}: ${action}`
    },
  }),
  defineTool({
    name: 'test_tool_with_task',
    description: 'Asks for a name first, and goes on as a task.',
    task: { use: 'required', before: async (_args, ctx) => ({ name: await nameFrom(ctx) }) },
    input: { type: 'object', properties: { name: { type: 'string' } } },
    handler: ({ name = 'nobody' }) => `this was for ${name}`,
  }),
]
