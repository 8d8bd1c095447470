// What an operator writes under `plugins.skills`: the JSON Schema, and its type.
import type { BuiltInOptions, OptionsSchema } from '../../core/index.ts'

export type SkillsOptions = BuiltInOptions['skills']

export const optionsSchema: OptionsSchema<SkillsOptions> = {
  type: 'object',
  description: 'Serves folders with a SKILL.md as skills.',
  additionalProperties: false,
  required: ['folder'],
  properties: {
    folder: {
      type: 'string',
      description: 'The folder that skills are below, each a folder with a SKILL.md. Relative to the config.',
    },
  },
}
