// What prom-client knows of this process: memory, CPU, event loop, garbage collection, files. It watches for as long as the
// process lives, so it begins once, whatever hosts come and go in it.
import type { Registry } from 'prom-client'
import type { Metric } from './series.ts'

let watched: Promise<Registry> | undefined

async function watch(): Promise<Registry> {
  const { default: prometheus } = await import('prom-client')
  const register = new prometheus.Registry()
  prometheus.collectDefaultMetrics({ register })
  return register
}

/** Begins to watch, where nobody did. */
export async function watchProcess(): Promise<void> {
  watched ??= watch()
  await watched
}

/** Nothing, as long as nobody watches. */
export async function readProcess(): Promise<readonly Metric[]> {
  const register = await watched
  return register ? ((await register.getMetricsAsJSON()) as unknown as Metric[]) : []
}
