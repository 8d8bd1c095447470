// The built-in plugins, by the name that a config uses. A plugin may be deleted with its line here.
import { type HealthOptions, health } from './health/index.ts'
import { type TransportSseOptions, transportSse } from './transport-sse/index.ts'
import { type TransportStreamableOptions, transportStreamable } from './transport-streamable/index.ts'

export const builtInPlugins = {
  'transport-streamable': transportStreamable,
  'transport-sse': transportSse,
  health,
}

/** The same names with their options, for `defineConfig`. */
export interface BuiltInOptions {
  'transport-streamable': TransportStreamableOptions
  'transport-sse': TransportSseOptions
  health: HealthOptions
}
