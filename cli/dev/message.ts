// What the two processes of `mcp-host dev` tell each other. The code of tools runs in the one that serves, and may send
// messages of its own: ours have a name that nobody else uses.

/** From the one that serves. */
export type DevTold =
  /** The files that its config is made of by now. */
  | { readonly mcpHostDev: 'files'; readonly files: readonly string[] }
  /** It listens; `page` is the address to look at first. */
  | { readonly mcpHostDev: 'serving'; readonly page: string }

/** To it. `stop`: drain and end. */
export interface DevOrder {
  readonly mcpHostDev: 'reload' | 'stop'
}

const nameOf = (message: unknown): unknown =>
  typeof message === 'object' && message !== null && 'mcpHostDev' in message ? message.mcpHostDev : undefined

export const isDevTold = (message: unknown): message is DevTold =>
  ['files', 'serving'].includes(String(nameOf(message)))

export const isDevOrder = (message: unknown): message is DevOrder =>
  ['reload', 'stop'].includes(String(nameOf(message)))

/** In the environment of the one that serves: `keys` where a person can press some, else `yes`. */
export const DEV_SERVER = 'MCP_HOST_DEV_SERVER'
