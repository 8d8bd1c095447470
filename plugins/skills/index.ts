// The plugin `skills` (extension io.modelcontextprotocol/skills, SEP-2640): serves folders of instructions for agents.
import { type BuiltInOptions, definePlugin } from '../../core/index.ts'

export type SkillsOptions = BuiltInOptions['skills']

export const skills = definePlugin<SkillsOptions>({
  options: {
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
  },
  async setup(host, options) {
    const { setUpSkills } = await import('./set-up.ts')
    await setUpSkills(host, options)
  },
})
