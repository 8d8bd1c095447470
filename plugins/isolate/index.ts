// The plugin `isolate`: runs tools with `isolate` in worker processes, which start on the first call.
import { definePlugin } from '../../core/internal.ts'
import { shuttingDown } from '../../core/transport.ts'
import type { Pools } from './pools.ts'

const ENDED = {
  name: 'mcp_host_isolated_calls_ended_total',
  help: 'Isolated tools whose process was terminated or replaced, by tool and by the limit that was exceeded.',
  labels: ['tool', 'over'],
}
const PROCESSES = { name: 'mcp_host_isolated_processes', help: 'Worker processes of isolated tools.' }

export const isolate = definePlugin({
  provides: ['isolation'],
  setup(host) {
    const ended = host.metrics.counter(ENDED)
    let pools: Pools | undefined
    let opening: Promise<Pools> | undefined
    let isClosed = false
    host.metrics.gauge(PROCESSES, () => pools?.size() ?? 0)

    async function open(): Promise<Pools> {
      const { createPools } = await import('./pools.ts')
      pools = createPools(host, ended)
      return pools
    }

    host.provide('isolation', {
      async run(isolated) {
        opening ??= open()
        const { run } = await opening
        if (isClosed) throw shuttingDown()
        return run(isolated)
      },
    })
    host.onClose(async () => {
      isClosed = true
      await (await opening)?.close()
    })
  },
})
