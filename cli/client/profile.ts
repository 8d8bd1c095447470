// The option --profile, which every verb about a login has.
import { shellWord } from '../shell-word.ts'
import type { VerbOptionTable } from '../verb.ts'

export const PROFILE_OPTION = {
  profile: { type: 'string', value: '<name>', help: 'one of several logins at the same server' },
} as const satisfies VerbOptionTable

/** The command that logs in, as a person would type it. */
export const loginCommand = (url: string, profile: string | undefined): string =>
  `mcp-host login ${shellWord(url)}${profile === undefined ? '' : ` --profile ${shellWord(profile)}`}`
