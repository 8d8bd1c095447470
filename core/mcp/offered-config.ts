// What of the config each caller is offered, for a reload to replace.
import type { ConfigureSession, RunSession, ServerSettings } from './configure-session.ts'

/** What offers are made of beside the definitions. A reload replaces it, and counts. */
export interface OfferedConfig {
  now: {
    readonly server: ServerSettings
    readonly configureSession?: ConfigureSession
    readonly runSession?: RunSession
  }
  reloads: number
}
