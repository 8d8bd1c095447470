// The plugin `upstream`: serves existing MCP servers as toolsets.
import { definePlugin, type InternalExamination } from '../../core/internal.ts'
import { examineServers } from './examine.ts'
import { OPTIONS, type UpstreamOptions } from './options.ts'
import { setUpUpstreams } from './set-up.ts'

export type { UpstreamOptions } from './options.ts'

export const upstream = definePlugin<UpstreamOptions>({
  options: OPTIONS,
  provides: ['toolsets'],
  setup: setUpUpstreams,
  examine: (options, about) => examineServers(options, about as InternalExamination),
})
