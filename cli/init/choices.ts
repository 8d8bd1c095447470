// What somebody who begins a project chooses: by flags, by answers at a terminal, or not at all.

export type ConfigFormat = 'ts' | 'yaml'

/** `file`: on this machine, for a restart and for workers. `redis`: for several machines. `memory`: until the process ends. */
export const STORES = ['file', 'redis', 'memory'] as const
export type Store = (typeof STORES)[number]

export interface Choices {
  /** As it was written; relative to the working directory. */
  readonly folder: string
  /** Of the package, and of the server where it is one. Any text, until it was made a name. */
  readonly name: string
  readonly format: ConfigFormat
  readonly isProtected: boolean
  readonly store: Store
  /** A plugin to publish, instead of a server. */
  readonly isPlugin: boolean
}

/** What flags said; the rest is asked, or takes its default. */
export type Given = Partial<Choices>

export const DEFAULT_NAME = 'my-server'
export const DEFAULT_PLUGIN_NAME = 'mcp-host-example'
