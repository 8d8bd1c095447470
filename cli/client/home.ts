// Where the logins of a person at this machine are kept.
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The home directory of the user. */
export const homeOf = (env: NodeJS.ProcessEnv): string =>
  env[process.platform === 'win32' ? 'USERPROFILE' : 'HOME'] || homedir()

/**
 * The directory of token files: `tokens` in `MCP_HOST_HOME`, else in `mcp-host` of the person's configuration
 * (`XDG_CONFIG_HOME`, default `~/.config`).
 */
export function tokenDirectory(env: NodeJS.ProcessEnv): string {
  const configuration = env['XDG_CONFIG_HOME'] || join(homeOf(env), '.config')
  return join(env['MCP_HOST_HOME'] || join(configuration, 'mcp-host'), 'tokens')
}
