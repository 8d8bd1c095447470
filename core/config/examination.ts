// Types for `examine` of plugins, which `mcp-host doctor` runs without a server.
import type { Path } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'

/** One finding. Its texts must not contain secrets. */
export interface PluginFinding {
  /** The checked subject in a word or two, such as `redirect URI`. */
  readonly check: string
  /** `wrong`: does not work. `note`: possibly intended. */
  readonly level: 'ok' | 'note' | 'wrong'
  readonly text: string
  /** The required change and its location. */
  readonly fix?: string
}

/** The config that contains the options. */
export interface Examination {
  readonly at: Path
  /** The config folder, to which its paths are relative. */
  readonly directory: string
  readonly log: Logger
  /** The URL of a fixed path, like `PluginHost.url`. Undefined without `http.publicUrl` and port. */
  url(path: string): string | undefined
}
