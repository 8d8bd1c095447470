// What `mcp-host dev` was given, in both of its processes.

export interface DevOptions {
  readonly config: string | undefined
  readonly verbose: boolean
  /** Undefined: `.env` beside the config, where there is one. */
  readonly envFiles: readonly string[] | undefined
}
