// Where the logins of a person at this machine are kept.
import { homedir } from 'node:os'
import { join } from 'node:path'

/**
 * The directory of token files: `tokens` in `MCP_HOST_HOME`, else in `mcp-host` of the person's configuration
 * (`XDG_CONFIG_HOME`, default `~/.config`).
 */
export function tokenDirectory(env: NodeJS.ProcessEnv = process.env): string {
  const configuration = env['XDG_CONFIG_HOME'] || join(homedir(), '.config')
  return join(env['MCP_HOST_HOME'] || join(configuration, 'mcp-host'), 'tokens')
}
