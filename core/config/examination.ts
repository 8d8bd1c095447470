// What a plugin finds out about what it depends on, while nothing is served: `examine` of plugins, for `mcp-host doctor`.
import type { Path } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'

/** One thing that was looked at. No text of it may have a secret. */
export interface PluginFinding {
  /** What it was, in a word or two, such as `redirect URI`. */
  readonly check: string
  /** `wrong`: it will not work. A `note` may be as its operator wants it. */
  readonly level: 'ok' | 'note' | 'wrong'
  readonly text: string
  /** What to change, and where. */
  readonly fix?: string
}

/** What `examine` is told of the config that its options are in. */
export interface Examination {
  /** The keys that lead to the options. */
  readonly at: Path
  /** Where the config is: paths in it are relative to this. */
  readonly directory: string
  readonly log: Logger
  /** The URL of a fixed path, as `PluginHost.url`; undefined where the config says neither `http.publicUrl` nor a port. */
  url(path: string): string | undefined
}
