// A config with auth-bridge, and the findings of `mcp-host doctor --config` for it.

import type { BuiltInOptions } from '../../core/config/define-config.ts'
import type { PluginFinding } from '../../core/config/examination.ts'
import { examineConfig } from '../../core/create-host.ts'
import { type Config, defineTool } from '../../core/index.ts'
import { createTestLog } from '../support/start-host.ts'

type BridgeOptions = NonNullable<BuiltInOptions['auth-bridge']>
type Changes = Readonly<Record<string, unknown>>

export const PUBLIC = 'https://mcp.acme.example'
export const CALLBACK = `${PUBLIC}/auth/callback`
const now = defineTool({ name: 'now', handler: () => 'now' })

export const configOf = (
  provider: object,
  options: Changes = {},
  http: Config['http'] = { publicUrl: PUBLIC },
): Config => ({
  server: { name: 'a-host', version: '1' },
  secrets: ['a secret of the test, thirty-two characters long'],
  http,
  toolsets: { all: [now] },
  routes: { '/mcp': { toolsets: 'all', authorize: true } },
  plugins: {
    'transport-streamable': {},
    'auth-jwt': {},
    'resource-metadata': {},
    'auth-bridge': { provider, allow: { everyone: true }, ...options } as unknown as BridgeOptions,
  },
})

export const examine = (config: Config): Promise<PluginFinding[]> =>
  examineConfig({ file: '/nowhere/config', config, locate: () => undefined, isInline: true }, createTestLog())
