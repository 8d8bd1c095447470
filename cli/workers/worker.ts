// One of several processes that serve a config: the same host as alone, started, told to leave and replaced by the
// primary (supervisor.ts), whose port it shares.
import cluster from 'node:cluster'
import { createLogger, type Host, type ProcessLog } from '../../core/create-host.ts'
import { errorText, StartError } from '../../core/index.ts'
import type { VerbOptions } from '../main.ts'
import { nextCrash, serve, surviveRejections } from '../serve.ts'
import { FIRST_WORKER, isOrder, type Order, type Told } from './message.ts'

/** Resolves once the primary has it, or is gone. */
function tell(message: Told): Promise<void> {
  return new Promise(resolve => {
    if (process.connected && process.send) process.send(message, () => resolve())
    else resolve()
  })
}

/** Whom to obey: the primary, and SIGTERM sent to this process alone. */
function listenForOrders(): Record<Order['mcpHost'], Promise<void>> {
  const obey = new Map<Order['mcpHost'], () => void>()
  const heard = (order: Order['mcpHost']) => new Promise<void>(resolve => obey.set(order, resolve))
  process.on('message', message => {
    if (isOrder(message)) obey.get(message.mcpHost)?.()
  })
  process.on('SIGTERM', () => obey.get('retire')?.())
  // A terminal sends these to the whole group of processes; the primary decides what they mean.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
  return { stop: heard('stop'), retire: heard('retire'), leave: heard('leave') }
}

/** What runs here may end though the primary is gone; without this node:cluster ends the process at once. */
function outliveThePrimary(gone: () => void) {
  const { worker } = cluster
  worker?.once('disconnect', () => {
    worker.exitedAfterDisconnect = true
    gone()
  })
}

async function startHost(count: number, config: string | undefined, log: ProcessLog): Promise<Host> {
  try {
    const host = await serve(config, log, count)
    surviveRejections(log)
    return host
  } catch (error) {
    // Of the first worker the operator hears as of a process alone; the primary logs what is wrong with later ones.
    if (process.env[FIRST_WORKER] === 'yes') throw error
    await tell({ mcpHost: 'failed', problem: errorText(error) })
    return process.exit(error instanceof StartError ? error.exitCode : 1)
  }
}

/** Serves as one of `count` processes until it is told to leave. */
export async function work(count: number, options: VerbOptions): Promise<void> {
  const { stop, retire, leave } = listenForOrders()
  const log = createLogger({ verbose: options.verbose, pid: process.pid })
  const host = await startHost(count, options.config, log)
  let exitCode = 0
  const crashed = nextCrash(log).then(() => {
    exitCode = 1
  })
  const orphaned = new Promise<void>(outliveThePrimary)
  await tell({ mcpHost: 'ready', url: host.url, routes: host.routes })
  const over = Promise.race([stop, orphaned])
  // One that crashed leaves what comes to the others, as one that is replaced.
  await Promise.race([over, Promise.race([retire, crashed]).then(() => Promise.race([over, host.handOver()]))])
  const report = await host.close()
  await tell({ mcpHost: 'drained', ...report })
  // What the primary had handed over before it knew that nothing is accepted here is given back first.
  await Promise.race([leave, orphaned])
  await log.flush()
  process.exit(exitCode)
}
