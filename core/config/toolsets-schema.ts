// The schemas of toolsets, and of the toolsets that a route serves. For host-schema.ts.
import type { JsonSchema } from '../mcp/protocol.ts'
import { closed, flag, list, text } from './schema-parts.ts'

export const TOOLSET_NAME_PATTERN = '^[^:/][^/]*$'

const modulePath = text('A module path or glob, relative to the config.', { examples: ['./tools/*.ts'] })
const definition: JsonSchema = { type: 'object', description: 'What defineTool, defineResource or definePrompt made.' }

const toolsetSources = [modulePath, definition, list({ anyOf: [modulePath, definition] }, 'Several of these.')]

export const toolsets: JsonSchema = {
  type: 'object',
  description: 'Named groups of tools, resources and prompts; routes say which they serve.',
  propertyNames: { pattern: TOOLSET_NAME_PATTERN },
  additionalProperties: {
    tsType: 'ToolsetSource',
    anyOf: [
      ...toolsetSources,
      closed(
        {
          from: { anyOf: toolsetSources, description: 'What the toolset is made of.' },
          internal: flag("Routes with toolsets: ':name' do not reach it.", { default: false }),
        },
        { required: ['from'], description: 'A toolset with settings.' },
      ),
    ],
  },
  examples: [{ clock: './tools/clock.ts' }],
}

export const routeToolsets: JsonSchema = {
  anyOf: [
    text('The name of a toolset.'),
    list(text('The name of a toolset.'), 'The name of a toolset; each of them', { minItems: 1 }),
    closed(
      {
        param: text('A parameter of the path.', { pattern: '^[A-Za-z_]\\w*$' }),
        of: list(text('The name of a toolset.'), 'Toolsets that the parameter can name.', { minItems: 1 }),
      },
      { required: ['param', 'of'], description: 'The toolset that a parameter of the path names.' },
    ),
  ],
  description:
    "Toolsets served here. { param, of } takes the toolset that the path's parameter names; ':name' takes any but internal ones.",
  examples: [['clock']],
}
