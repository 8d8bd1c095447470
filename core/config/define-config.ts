// The config in types: what an operator writes. Its keys are written in host-schema.ts, from which they are made.
import type { Config } from './config-types.ts'

export type { Duration, Size } from '../mcp/units.ts'
export type * from './config-parts.ts'
export type * from './config-types.ts'
export type { BuiltInOptions, FilledOptions } from './plugin-options.ts'

/**
 * Returns its argument: it is there for the types, which complete and check the config in an editor. `Sections` are the
 * top-level keys that plugins of your own declare.
 */
export const defineConfig = <Sections extends object = object>(config: Config & NoInfer<Sections>): Config & Sections =>
  config
