// Conformance tools without requests to the client: every kind of content, progress, logging, errors, schemas, header
// parameters, and lists that change. input-required.ts has the others.
import { setTimeout as delay } from 'node:timers/promises'
import { type CallContext, definePrompt, defineTool, ToolError } from 'mcp-host'
import { RED_PIXEL, SILENCE } from './samples.ts'

/** Milliseconds between two notifications of one call, so that they cannot leave in one piece. */
const STEP = 50
/** Milliseconds after which an answer that is not ready has become a stream. */
const LONGER_THAN_JSON = 400

const wait = (milliseconds: number, { signal }: CallContext) => delay(milliseconds, undefined, { signal })

const contentTools = [
  defineTool({
    name: 'test_simple_text',
    description: 'Answers with one line of text.',
    handler: () => 'This is a simple text response for testing.',
  }),
  defineTool({
    name: 'test_image_content',
    description: 'Answers with a picture.',
    handler: () => [{ type: 'image', data: RED_PIXEL, mimeType: 'image/png' }],
  }),
  defineTool({
    name: 'test_audio_content',
    description: 'Answers with a sound.',
    handler: () => [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }],
  }),
  defineTool({
    name: 'test_embedded_resource',
    description: 'Answers with a resource inside the result.',
    handler: () => [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }),
  defineTool({
    name: 'test_multiple_content_types',
    description: 'Answers with text, a picture and a resource.',
    handler: () => [
      { type: 'text', text: 'Multiple content types test:' },
      { type: 'image', data: RED_PIXEL, mimeType: 'image/png' },
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: JSON.stringify({ test: 'data', value: 123 }),
        },
      },
    ],
  }),
  defineTool({
    name: 'test_error_handling',
    description: 'Always fails, with a text for the model.',
    handler() {
      throw new ToolError('This tool intentionally returns an error for testing')
    },
  }),
]

const notifyingTools = [
  defineTool({
    name: 'test_tool_with_progress',
    description: 'Reports progress three times.',
    async handler(_args, ctx) {
      ctx.progress(0, 100)
      await wait(STEP, ctx)
      ctx.progress(50, 100)
      await wait(STEP, ctx)
      ctx.progress(100, 100)
      return 'Progress was reported three times.'
    },
  }),
  defineTool({
    name: 'test_tool_with_logging',
    description: 'Logs three times, at level info.',
    async handler(_args, ctx) {
      ctx.log('info', 'Tool execution started')
      await wait(STEP, ctx)
      ctx.log('info', 'Tool processing data')
      await wait(STEP, ctx)
      ctx.log('info', 'Tool execution completed')
      return 'Three messages were logged.'
    },
  }),
  defineTool({
    name: 'test_logging_tool',
    description: 'Logs once, at level info.',
    handler(_args, ctx) {
      ctx.log('info', 'Logged for those who asked for it')
      return 'One message was logged.'
    },
  }),
  defineTool({
    name: 'test_reconnection',
    description: 'Closes its connection half-way; the answer is there for a client that comes back.',
    async handler(_args, ctx) {
      ctx.disconnect(100)
      await wait(LONGER_THAN_JSON, ctx)
      return 'The answer came on a stream.'
    },
  }),
]

const schemaTools = [
  defineTool({
    name: 'json_schema_2020_12_tool',
    description: 'Takes a contact described with references, composition and conditions.',
    input: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $defs: {
        address: {
          $anchor: 'postalAddress',
          type: 'object',
          properties: { street: { type: 'string' }, city: { type: 'string' } },
        },
      },
      type: 'object',
      properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      // biome-ignore lint/suspicious/noThenProperty: it is a keyword of JSON Schema
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
    handler: ({ phone, email }) => `The contact is reached at ${phone ?? email}.`,
  }),
  defineTool({
    // The suite calls the first tool of the list without arguments and expects a result: this one comes first.
    name: 'echo_header_parameter',
    description: 'Answers with its argument, which also travels in a header.',
    input: {
      type: 'object',
      properties: { region: { type: 'string', description: 'Any text.', 'x-mcp-header': 'Region' } },
    },
    handler: ({ region }) => `The region is ${region ?? 'not given'}.`,
  }),
]

const addedTool = defineTool({
  name: 'test_added_tool',
  description: 'Comes and goes with test_trigger_tool_change.',
  handler: () => 'I was added while the host runs.',
})
const addedPrompt = definePrompt({
  name: 'test_added_prompt',
  description: 'Comes and goes with test_trigger_prompt_change.',
  handler: () => 'I was added while the host runs.',
})

const changingTools = [
  defineTool({
    name: 'test_trigger_tool_change',
    description: 'Adds a tool, or removes it when it is there.',
    handler(_args, { host }) {
      const removed = host.tools.remove(addedTool.name)
      if (!removed) host.tools.add(addedTool)
      return `A tool was ${removed ? 'removed' : 'added'}.`
    },
  }),
  defineTool({
    name: 'test_trigger_prompt_change',
    description: 'Adds a prompt, or removes it when it is there.',
    handler(_args, { host }) {
      const removed = host.prompts.remove(addedPrompt.name)
      if (!removed) host.prompts.add(addedPrompt)
      return `A prompt was ${removed ? 'removed' : 'added'}.`
    },
  }),
]

export const tools = [...contentTools, ...notifyingTools, ...schemaTools, ...changingTools]
