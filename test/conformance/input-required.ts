// Conformance tools that send requests to the client (elicitation, sampling, roots). The same handlers serve
// `input_required` results (2026-07-28) and requests on the stream (sessions).
import { setTimeout as delay } from 'node:timers/promises'
import { defineTool, type ElicitParams, type ElicitResult, type SampleParams, type SampleResult } from 'mcp-host'

/** A form with one field that must be filled in. */
const askFor = (message: string, field: string, type: 'string' | 'boolean' = 'string'): ElicitParams => ({
  message,
  requestedSchema: { type: 'object', properties: { [field]: { type } }, required: [field] },
})

const askModel = (text: string, maxTokens = 100): SampleParams => ({
  messages: [{ role: 'user', content: { type: 'text', text } }],
  maxTokens,
})

const describe = ({ action, content = {} }: ElicitResult) => `action=${action}, content=${JSON.stringify(content)}`

/** The field of an accepted form; a dash where there is none. */
const field = ({ content }: ElicitResult, name: string) => String(content?.[name] ?? '-')

const textOf = ({ content }: SampleResult) =>
  [content]
    .flat()
    .flatMap(({ text }) => (text ? [String(text)] : []))
    .join('')

const singleAsks = [
  defineTool({
    name: 'test_input_required_result_elicitation',
    description: 'Asks the user for a name and greets.',
    async handler(_args, ctx) {
      const answer = await ctx.elicit(askFor('What is your name?', 'name'), { key: 'user_name' })
      return `Hello, ${field(answer, 'name')}!`
    },
  }),
  defineTool({
    name: 'test_input_required_result_sampling',
    description: 'Asks the model for a capital.',
    handler: async (_args, ctx) =>
      textOf(await ctx.sample(askModel('What is the capital of France?'), { key: 'capital_question' })),
  }),
  defineTool({
    name: 'test_input_required_result_list_roots',
    description: 'Asks the client for its roots and names them.',
    async handler(_args, ctx) {
      const { roots } = await ctx.roots({ key: 'client_roots' })
      return `Roots: ${roots.map(({ uri, name }) => `${name ?? 'unnamed'} (${uri})`).join(', ')}`
    },
  }),
  defineTool({
    name: 'test_input_required_result_request_state',
    description: 'Asks for a confirmation; its retry must bring back the state that the host sealed.',
    async handler(_args, ctx) {
      // The host refuses a state that it did not seal, so a retry that gets here brought a good one.
      const answer = await ctx.elicit(askFor('Please confirm', 'ok', 'boolean'), { key: 'confirm' })
      return `state-ok: ${field(answer, 'ok')}`
    },
  }),
  defineTool({
    name: 'test_input_required_result_tampered_state',
    description: 'Asks for a confirmation; a retry with another state than the host sealed never gets here.',
    async handler(_args, ctx) {
      const answer = await ctx.elicit(askFor('Please confirm', 'ok', 'boolean'), { key: 'confirm' })
      return `Confirmed: ${field(answer, 'ok')}`
    },
  }),
]

const severalAsks = [
  defineTool({
    name: 'test_input_required_result_multiple_inputs',
    description: 'Asks the user, the model and for the roots, all at once.',
    async handler(_args, ctx) {
      const [name, greeting, { roots }] = await Promise.all([
        ctx.elicit(askFor('What is your name?', 'name'), { key: 'user_name' }),
        ctx.sample(askModel('Generate a greeting', 50), { key: 'greeting' }),
        ctx.roots({ key: 'client_roots' }),
      ])
      return `${textOf(greeting)} ${field(name, 'name')} has ${roots.length} root(s).`
    },
  }),
  defineTool({
    name: 'test_input_required_result_multi_round',
    description: 'Asks the user twice, one question after the other.',
    async handler(_args, ctx) {
      const first = await ctx.elicit(askFor('Step 1: What is your name?', 'name'), { key: 'step1' })
      const second = await ctx.elicit(askFor('Step 2: What is your favorite color?', 'color'), { key: 'step2' })
      return `${field(first, 'name')} likes ${field(second, 'color')}.`
    },
  }),
  defineTool({
    name: 'test_input_required_result_capabilities',
    description: 'Asks only in the ways that the client declared.',
    async handler(_args, ctx) {
      const { elicitation, sampling } = ctx.client.capabilities
      const [answer, words] = await Promise.all([
        elicitation && ctx.elicit(askFor('What is your name?', 'name'), { key: 'user_name' }),
        sampling && ctx.sample(askModel('Generate a greeting', 50), { key: 'greeting' }),
      ])
      return `User: ${answer ? field(answer, 'name') : 'not asked'}. Model: ${words ? textOf(words) : 'not asked'}.`
    },
  }),
]

const capabilityTools = [
  defineTool({
    name: 'test_missing_capability',
    description: 'Always needs the client to sample.',
    handler: async (_args, ctx) => textOf(await ctx.sample(askModel('Say something'))),
  }),
  defineTool({
    name: 'test_streaming_elicitation',
    description: 'Asks the user on an answer that has become a stream.',
    async handler(_args, ctx) {
      // An answer that is not ready after 250 ms is a stream by then; the suite hangs up after 600 ms.
      await delay(300, undefined, { signal: ctx.signal })
      return `Hello, ${field(await ctx.elicit(askFor('What is your name?', 'name')), 'name')}!`
    },
  }),
]

const onSessions = [
  defineTool({
    name: 'test_sampling',
    description: 'Hands a prompt to the client’s model.',
    input: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
    handler: async ({ prompt }, ctx) => `LLM response: ${textOf(await ctx.sample(askModel(prompt)))}`,
  }),
  defineTool({
    name: 'test_elicitation',
    description: 'Asks the user who they are.',
    input: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
    async handler({ message }, ctx) {
      const username = { type: 'string', description: 'How the user wants to be called' }
      const email = { type: 'string', description: 'Where the user reads mail' }
      const answer = await ctx.elicit({
        message,
        requestedSchema: { type: 'object', properties: { username, email }, required: ['username', 'email'] },
      })
      return `User response: ${describe(answer)}`
    },
  }),
]

const defaults: ElicitParams = {
  message: 'Please review the values',
  requestedSchema: {
    type: 'object',
    properties: {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    },
  },
}

const titled = (...titles: string[]) => titles.map((title, index) => ({ const: `value${index + 1}`, title }))
const options = ['option1', 'option2', 'option3']
const enums: ElicitParams = {
  message: 'Please choose',
  requestedSchema: {
    type: 'object',
    properties: {
      untitledSingle: { type: 'string', enum: options },
      titledSingle: { type: 'string', oneOf: titled('First Option', 'Second Option', 'Third Option') },
      legacyEnum: {
        type: 'string',
        enum: ['opt1', 'opt2', 'opt3'],
        enumNames: ['Option One', 'Option Two', 'Option Three'],
      },
      untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
      titledMulti: { type: 'array', items: { anyOf: titled('First Choice', 'Second Choice', 'Third Choice') } },
    },
  },
}

const formTools = [
  defineTool({
    name: 'test_elicitation_sep1034_defaults',
    description: 'Asks the user with a form whose fields all have defaults.',
    handler: async (_args, ctx) => `Elicitation completed: ${describe(await ctx.elicit(defaults))}`,
  }),
  defineTool({
    name: 'test_elicitation_sep1330_enums',
    description: 'Asks the user with a form of every kind of choice.',
    handler: async (_args, ctx) => `Elicitation completed: ${describe(await ctx.elicit(enums))}`,
  }),
]

export const inputRequiredTools = [...singleAsks, ...severalAsks, ...capabilityTools, ...onSessions, ...formTools]
