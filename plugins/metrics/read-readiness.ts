// Whether the host is ready, and each condition of it, as a metric: what the probes of a load balancer see.
import type { PluginHost } from '../../core/index.ts'
import type { Metric } from './series.ts'

/** How long a scrape waits for the conditions, milliseconds: some of them ask others. */
const PATIENCE = 1_000

export const READY = 'mcp_host_ready'

const FACTS = {
  name: READY,
  help: '1 where a condition of readiness holds, else 0; accepting is 0 while the host drains.',
  type: 'gauge',
  aggregator: 'min',
} as const

export async function readReadiness({ readiness }: Pick<PluginHost, 'readiness'>): Promise<Metric> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(resolve, PATIENCE, undefined)
  })
  const found = await Promise.race([readiness(), late])
  clearTimeout(timer)
  const values = Object.entries(found?.checks ?? {}).map(([check, holds]) => ({
    labels: { check },
    value: holds ? 1 : 0,
  }))
  return { ...FACTS, values }
}
