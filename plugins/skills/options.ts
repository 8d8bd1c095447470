// The options of `plugins.skills`.
import { closed, words } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'

export const optionsSchema = closed(
  {
    folder: words('The folder of the skills, relative to the config. Each skill is a folder with a SKILL.md.'),
  },
  { description: 'Serves folders with a SKILL.md as skills.', required: ['folder'] },
)

export interface SkillsOptions extends OptionsOf<typeof optionsSchema> {}
