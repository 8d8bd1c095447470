// The options of `plugins.skills`.
import type { OptionsOf } from '../../core/plugin.ts'

export const optionsSchema = {
  type: 'object',
  description: 'Serves folders with a SKILL.md as skills.',
  additionalProperties: false,
  required: ['folder'],
  properties: {
    folder: {
      type: 'string',
      description: 'The folder of the skills, relative to the config. Each skill is a folder with a SKILL.md.',
    },
  },
} as const

export interface SkillsOptions extends OptionsOf<typeof optionsSchema> {}
