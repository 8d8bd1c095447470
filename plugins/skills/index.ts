// Skills (extension io.modelcontextprotocol/skills, SEP-2640): folders of instructions for agents. Their files are resources,
// and three methods list the skills, describe one, and list a folder.
import { definePlugin } from '../../core/index.ts'
import { optionsSchema, type SkillsOptions } from './options.ts'

export type { SkillsOptions } from './options.ts'

export const skills = definePlugin<SkillsOptions>({
  options: optionsSchema,
  async setup(host, options) {
    const { setUpSkills } = await import('./set-up.ts')
    await setUpSkills(host, options)
  },
})
