// What became of a reload.

/** What a reload did, as keys of the config, and `MCP_HOST_SECRETS` for secrets that come from there. */
export interface ReloadReport {
  /** What takes effect at a restart alone. Where there is any, nothing was taken at all. */
  readonly restart: readonly string[]
  /** What differs and was taken; for a toolset, that its definitions do. */
  readonly taken: readonly string[]
  /** How many sessions and `subscriptions/listen` streams of this process were told that a list of theirs changed. */
  readonly told: number
}
