// Messages between the two processes of `mcp-host dev`, marked by `mcpHostDev`, and the keys. Loads nothing of the host.
export const KEY_HELP = `  r  restart, for changes that cannot be reloaded, such as a port or a new plugin
  o  open the console in the browser; the first URL if the config has \`console: false\`
  e  open the first URL in the browser
  q  quit
  ?  print this list`

/** Environment variable of the serving process: `keys` if the user can press keys, otherwise `yes`. */
export const DEV_SERVER = 'MCP_HOST_DEV_SERVER'

export type DevReport =
  | { readonly mcpHostDev: 'files'; readonly files: readonly string[] }
  | { readonly mcpHostDev: 'serving' | 'open'; readonly page: string }

export interface DevOrder {
  readonly mcpHostDev: 'reload' | 'open' | 'stop'
  /** Printed before the outcome; omitted if there is no outcome. */
  readonly change?: string
}

const isOurs = (message: unknown) => typeof message === 'object' && message !== null && 'mcpHostDev' in message
export const isDevReport = (message: unknown): message is DevReport => isOurs(message)
export const isDevOrder = (message: unknown): message is DevOrder => isOurs(message)
