// The plugin `skills` (extension io.modelcontextprotocol/skills, SEP-2640): serves folders of instructions for agents.
import { definePlugin } from '../../core/internal.ts'
import { optionsSchema, type SkillsOptions } from './options.ts'

export type { SkillsOptions } from './options.ts'

export const skills = definePlugin<SkillsOptions>({
  options: optionsSchema,
  async setup(host, options) {
    const { setUpSkills } = await import('./set-up.ts')
    await setUpSkills(host, options)
  },
})
