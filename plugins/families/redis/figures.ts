// What a connection to Redis is measured by. For connection.ts.
import type { PluginHost } from '../../../core/index.ts'

/** `refused`: Redis answered that it will not. `unavailable`: it did not answer in time, or could not be asked. */
export type Measure = (milliseconds: number, outcome: 'ok' | 'refused' | 'unavailable') => void

export function createMeasure({ figures }: Pick<PluginHost, 'figures'>, redis: string): Measure {
  const tell = figures.histogram({
    name: 'mcp_host_redis_duration_seconds',
    help: 'How long Redis took to answer what a request waits for, or how long was waited for it in vain.',
    labels: ['redis', 'outcome'],
  })
  return (milliseconds, outcome) => tell(milliseconds / 1_000, { redis, outcome })
}

export function offerHealth(
  { figures }: Pick<PluginHost, 'figures'>,
  redis: string,
  connection: { readonly healthy: boolean },
): void {
  figures.gauge(
    {
      name: 'mcp_host_redis_up',
      help: '1 where Redis answers and does what is asked of it, else 0.',
      labels: ['redis'],
    },
    () => [[connection.healthy ? 1 : 0, { redis }]],
  )
}
