// `mcp-host dev`: serves a config during development and reloads edits without a restart where possible.

import { CONFIG_OPTION, defineCommand, ENV_FILE_OPTION, LISTEN_OPTIONS, LOG_OPTIONS } from './command.ts'
import { DEV_SERVER, KEY_HELP } from './dev/messages.ts'

const NOTES = `Keys in a terminal:
${KEY_HELP}

Without --env-file, dev reads .env next to the config. NODE_ENV defaults to "development". If a port is in use, dev uses the next free one. After an invalid change, dev reports the error and continues to serve the previous version.`

export const devCommand = defineCommand({
  summary: 'Serve the config and reload it after each change',
  example: '--port 3001',
  options: { ...CONFIG_OPTION, ...LISTEN_OPTIONS, ...ENV_FILE_OPTION, ...LOG_OPTIONS },
  notes: NOTES,
  async run(options, _positionals, context) {
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
  },
})
