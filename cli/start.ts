// `mcp-host start`: serves until it is told to stop, then drains and exits 0. With `--workers`, several processes do.
import cluster from 'node:cluster'
import type { Host } from '../core/create-host.ts'
import { openLog } from './log.ts'
import { nextSignal, onCrash, serve, surviveRejections } from './serve.ts'
import { startPage } from './start-page.ts'
import type { StartOptions } from './verb.ts'
import { parseCount } from './workers/count.ts'
import { supervise } from './workers/supervisor.ts'
import { work } from './workers/worker.ts'

/** SIGHUP is a terminal that closes, or somebody who expects a reload: workers have that, one process has not. */
const ENDING = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

async function drain(host: Host, why: NodeJS.Signals | 'crash') {
  void nextSignal(...ENDING).then(() => process.exit(1))
  // At a terminal nobody waits for the connections of others, and nobody else serves them.
  const closing = host.close(why === 'SIGINT' ? { handOver: false } : {})
  console.log(`${why}: draining; a second signal ends at once`)
  const { finished, cancelled } = await closing
  console.log(`stopped; running requests: ${finished} finished, ${cancelled} cancelled`)
}

async function serveAlone(options: StartOptions): Promise<void> {
  let listening = false
  const signalled = nextSignal(...ENDING).then(signal => {
    // Nothing to drain yet; and a start that hangs must end too.
    if (!listening) process.exit(1)
    return signal
  })
  const log = openLog(options)
  const { host, file } = await serve(options.config, log)
  listening = true
  surviveRejections(log)
  const crashed = new Promise<'crash'>(resolve => onCrash(log, () => resolve('crash')))
  console.log(startPage(host, file))
  const why = await Promise.race([signalled, crashed])
  await drain(host, why)
  await log.flush()
  process.exit(why === 'crash' ? 1 : 0)
}

export async function start(options: StartOptions): Promise<void> {
  if (options.workers === undefined) return serveAlone(options)
  const count = parseCount(options.workers)
  return cluster.isWorker ? work(count, options) : supervise(count, options)
}
