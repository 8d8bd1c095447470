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

/** A scrape that finds no answer in time has what was answered last, to a scrape before: a condition that hangs must not hide. */
export function createReadinessReader({ readiness }: Pick<PluginHost, 'readiness'>): () => Promise<Metric> {
  let checks: Readonly<Record<string, boolean>> = {}

  async function ask() {
    const found = await readiness()
    checks = found.checks
  }

  return async () => {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>(resolve => {
      timer = setTimeout(resolve, PATIENCE)
    })
    await Promise.race([ask(), late])
    clearTimeout(timer)
    const values = Object.entries(checks).map(([check, holds]) => ({ labels: { check }, value: holds ? 1 : 0 }))
    return { ...FACTS, values }
  }
}
