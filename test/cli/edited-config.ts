// A config whose tool files a test edits while the host runs. GREETING is its instructions.
import { CORE } from './run-cli.ts'

export interface EditedParts {
  /** The files of the toolset `talk`, and the route that serves it. */
  readonly tools: string
  readonly path: string
  /** JavaScript in front of the config. */
  readonly before?: string
  /** Properties of `plugins`, beside the transport. */
  readonly plugins?: string
}

/** The text of an `mcp.config.ts`. */
export const editedConfig = ({ tools, path, before = '', plugins = '' }: EditedParts): string =>
  `import { defineConfig } from '${CORE}'
${before}
export default defineConfig({
  server: { name: 'edited', version: '1.0.0', instructions: process.env['GREETING'] },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { talk: '${tools}' },
  routes: { '${path}': { toolsets: 'talk' } },
  plugins: { 'transport-streamable': {}, ${plugins} },
})
`
