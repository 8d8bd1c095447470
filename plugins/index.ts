// The built-in plugins, by the name that a config uses. A plugin may be deleted with its line here.
import { type HealthOptions, health } from './health/index.ts'
import { type TransportStreamableOptions, transportStreamable } from './transport-streamable/index.ts'

export const builtInPlugins = {
  'transport-streamable': transportStreamable,
  health,
}

/** The same names with their options, for `defineConfig`. */
export interface BuiltInOptions {
  'transport-streamable': TransportStreamableOptions
  health: HealthOptions
}
