// The folder of the config, before it is read: `.env` lies there, and what is below it is watched.
import { existsSync, readdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Where the config is that the CLI would find from `cwd`; `cwd` where there is none. */
export function configFolder(config: string | undefined, cwd: string): string {
  if (config !== undefined) return dirname(resolve(cwd, config))
  for (let folder = cwd; ; folder = dirname(folder)) {
    const names = readdirSync(folder)
    if (names.some(name => name.startsWith('mcp.config.'))) return folder
    // As the search for the config, which ends at the nearest package.
    if (names.includes('package.json') || dirname(folder) === folder) return cwd
  }
}

/** Whether there is a config at all, as far as its name tells. */
export function hasConfig(config: string | undefined, cwd: string): boolean {
  if (config !== undefined) return existsSync(resolve(cwd, config))
  return readdirSync(configFolder(config, cwd)).some(name => name.startsWith('mcp.config.'))
}
