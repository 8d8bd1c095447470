// A config for `mcp-host stdio`, with two toolsets.

export interface StdioParts {
  /** The URL of the core's modules. */
  readonly core: string
  readonly routes: string
  readonly plugins: string
  /** JavaScript: the tools of the toolset `all`. */
  readonly tools: string
  /** JavaScript in front of the config. */
  readonly before?: string
}

/** The text of an `mcp.config.mjs`. */
export const stdioConfig = ({ core, routes, plugins, tools, before = '' }: StdioParts): string =>
  `import { defineTool, definePlugin } from '${core}'
${before}
export default {
  server: { name: 'stdio-test', version: '1.0.0' },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { all: ${tools}, other: [defineTool({ name: 'other', handler: () => 'other' })] },
  routes: ${routes},
  plugins: ${plugins},
}
`
