// `mcp-host dev`: serves a config during development and reloads edits without a restart where possible.
import type { CommandContext } from './context.ts'
import type { DevOptions } from './dev/server.ts'
import { DEV_SERVER } from './dev/server.ts'
import { CONFIG_OPTION, defineVerb, ENV_FILE_OPTION, LOG_OPTIONS } from './verb.ts'

const NOTES = `Keys, at a terminal:
  r  restart: for what a running server cannot take, such as a port or a new plugin
  o  open the first address in the browser
  q  drain and end

.env beside the config is read where no --env-file is given. NODE_ENV is "development" unless it is set. A broken edit
changes nothing: it is shown with its place, and what was served goes on.`

async function dev(options: DevOptions, _positionals: readonly string[], context: CommandContext): Promise<void> {
  const { envFilesOf, watchAndServe } = await import('./dev/terminal.ts')
  const role = process.env[DEV_SERVER]
  if (role === undefined || !process.send) return watchAndServe(options, context)
  delete process.env[DEV_SERVER]
  const [{ serveForDevelopment }, { createEnvFiles }] = await Promise.all([
    import('./dev/server.ts'),
    import('./config.ts'),
  ])
  const env = createEnvFiles(envFilesOf(options, context), context)
  await serveForDevelopment(options, context, env, role === 'keys')
}

export const devVerb = defineVerb({
  summary: 'serve the config while you write it: takes each edit without a restart',
  options: { ...CONFIG_OPTION, ...ENV_FILE_OPTION, ...LOG_OPTIONS },
  instead: { port: 'where it listens is said by http.port of the config', host: 'see http.host of the config' },
  notes: NOTES,
  run: dev,
})
