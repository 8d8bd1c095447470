// `mcp-host start`: serves until it is told to stop, then drains and exits 0. With `--workers`, several processes do.
import cluster from 'node:cluster'
import { createLogger, type Host } from '../core/create-host.ts'
import type { VerbOptions } from './main.ts'
import { nextSignal, serve, surviveRejections } from './serve.ts'
import { startPage } from './start-page.ts'
import { parseCount } from './workers/count.ts'
import { supervise } from './workers/supervisor.ts'
import { work } from './workers/worker.ts'

/** SIGHUP is a terminal that closes, or somebody who expects a reload: workers have that, one process has not. */
const ENDING = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

async function drain(host: Host, signal: NodeJS.Signals) {
  void nextSignal(...ENDING).then(() => process.exit(1))
  // At a terminal nobody waits for the connections of others, and nobody else serves them.
  const closing = host.close(signal === 'SIGINT' ? { handOver: false } : {})
  console.log(`${signal}: draining; a second signal ends at once`)
  const { finished, cancelled } = await closing
  console.log(`stopped; running requests: ${finished} finished, ${cancelled} cancelled`)
}

async function serveAlone({ config, verbose }: VerbOptions): Promise<void> {
  let listening = false
  const signalled = nextSignal(...ENDING).then(signal => {
    // Nothing to drain yet; and a start that hangs must end too.
    if (!listening) process.exit(1)
    return signal
  })
  const log = createLogger({ verbose })
  const host = await serve(config, log)
  listening = true
  surviveRejections(log)
  console.log(startPage(host))
  await drain(host, await signalled)
  process.exit(0)
}

export async function start(options: VerbOptions): Promise<void> {
  if (options.workers === undefined) return serveAlone(options)
  const count = parseCount(options.workers)
  return cluster.isWorker ? work(count, options) : supervise(count, options)
}
