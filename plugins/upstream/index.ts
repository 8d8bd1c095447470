// The plugin `upstream`: serves existing MCP servers as toolsets.
import { definePlugin } from '../../core/internal.ts'
import { examineServers } from './examine.ts'
import { OPTIONS, type UpstreamOptions } from './options.ts'
import { setUpUpstreams } from './set-up.ts'

export type { UpstreamOptions } from './options.ts'

export const upstream = definePlugin<UpstreamOptions>({
  options: OPTIONS,
  provides: ['toolsets'],
  setup: setUpUpstreams,
  examine: examineServers,
})
