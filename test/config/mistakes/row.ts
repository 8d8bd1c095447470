// What a row of the table of mistakes is, and the files that it is written with: a config that works, of which one part is
// wrong. The comment HERE marks the line that the answer must name.

export interface Row {
  readonly mistake: string
  /** By name; the config is among them. */
  readonly files: Readonly<Record<string, string>>
  /** `file:line`, where no HERE can stand; a file alone for what has no line. */
  readonly at?: string
  /** Why there is no line to tell. */
  readonly noLine?: string
  /** What the message names: the value or key, and what fixes it. Not its wording. */
  readonly names: readonly string[]
  /** Default: an error. */
  readonly severity?: 'warning'
  /** Errors that it is, together with others that it has to be. Default 1. */
  readonly errors?: number
  readonly env?: Readonly<Record<string, string>>
}

const CORE = new URL('../../../core/index.ts', import.meta.url).href
export const FOLDER = new URL('../../..', import.meta.url).pathname

/** A module of tools, whose first line imports what it takes. */
export const tools = (text: string, extension = 'mjs'): Record<string, string> => ({
  [`tools.${extension}`]: `import { defineTool, defineResource, definePrompt } from '${CORE}'\n${text}`,
})

export const GOOD_TOOL = "export const echo = defineTool({ name: 'echo', handler: () => 'x' })"

const PARTS = {
  server: 'server: { name: a, version: "1" }',
  toolsets: 'toolsets: { a: ./tools.mjs }',
  routes: 'routes: { /: { toolsets: a } }',
  plugins: 'plugins: { transport-streamable: {} }',
  more: '',
}

/** A YAML config; a part that is given stands in the place of the one that works. */
export const yaml = (parts: Partial<typeof PARTS> = {}): Record<string, string> => ({
  'mcp.config.yaml': `${Object.values({ ...PARTS, ...parts }).join('\n')}\n`,
})

/** A YAML config with tools that work. */
export const config = (parts: Partial<typeof PARTS>): Record<string, string> => ({
  ...yaml(parts),
  ...tools(GOOD_TOOL),
})

/** Options of a plugin, on lines of their own, beside the transport. */
export const withPlugin = (text: string, parts: Partial<typeof PARTS> = {}): Record<string, string> =>
  config({ plugins: `plugins:\n  transport-streamable: {}\n${text}`, ...parts })

/** A config in code. */
export const code = (text: string, extension = 'ts'): Record<string, string> => ({
  [`mcp.config.${extension}`]: `import { defineConfig, defineTool, definePlugin } from '${CORE}'\n${text}`,
})

/** A config of tools that are written in this text. */
export const ofTools = (text: string): Record<string, string> => ({ ...yaml(), ...tools(text) })
