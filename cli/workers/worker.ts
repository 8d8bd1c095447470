// One of several processes that serve a config: the same host as alone, started, told to leave and replaced by the
// primary (supervisor.ts), whose port it shares.
import cluster from 'node:cluster'
import { filesRead } from '../../core/config/files-read.ts'
import type { CloseReport, ProcessLog } from '../../core/create-host.ts'
import { errorText, StartError } from '../../core/index.ts'
import type { CommandContext, ProcessEvents } from '../context.ts'
import { type CliLog, openLog } from '../log.ts'
import {
  onCrash,
  type Served,
  type ServeSettings,
  serve,
  surviveRejections,
  surviveStdout,
  tellParent,
} from '../serve.ts'
import type { StartOptions } from '../verb.ts'
import { readConfigFiles } from './config-files.ts'
import { hubOfPrimary } from './connect-workers.ts'
import { createInEveryProcess } from './every-process.ts'
import { FIRST_WORKER, isOrder, isPulse, type Order, PRIMARY, type Told } from './message.ts'
import { createNeighbours } from './neighbours.ts'
import { startWatchdog } from './watchdog.ts'

const tell = (message: Told) => tellParent(message)

type Stop = Extract<Order, { mcpHost: 'stop' }>
const STOP: Stop = { mcpHost: 'stop' }

interface Orders {
  readonly stop: Promise<Stop>
  readonly retire: Promise<void>
  readonly leave: Promise<void>
}

/** Whom to obey: the primary, and SIGTERM sent to this process alone. */
function listenForOrders(): Orders {
  const obey = new Map<Order['mcpHost'], (order: Order) => void>()
  const heard = <Heard>(order: Order['mcpHost']) =>
    new Promise<Heard>(resolve => obey.set(order, told => resolve(told as Heard)))
  process.on('message', message => {
    if (isPulse(message)) void tell({ mcpHost: 'awake' })
    if (!isOrder(message)) return
    if (message.mcpHost !== 'leave') void tell({ mcpHost: 'heard' })
    obey.get(message.mcpHost)?.(message)
  })
  process.on('SIGTERM', () => obey.get('retire')?.({ mcpHost: 'retire' }))
  // A terminal sends these to the whole group of processes; the primary decides what they mean.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
  return { stop: heard<Stop>('stop'), retire: heard<void>('retire'), leave: heard<void>('leave') }
}

/** What runs here may end though the primary is gone; without this node:cluster ends the process at once. */
function outliveThePrimary(gone: () => void) {
  const { worker } = cluster
  worker?.once('disconnect', () => {
    worker.exitedAfterDisconnect = true
    gone()
  })
}

/** Says why this worker ends, unless it was told to: then the end of the primary is no news. */
async function tellOrphaned(orphaned: Promise<void>, { stop, leave }: Orders, log: ProcessLog): Promise<void> {
  const told = Promise.race([stop, leave]).then(() => true)
  if (!(await Promise.race([told, orphaned.then(() => false)]))) {
    log.warn({}, 'the primary is gone: this worker drains and ends')
  }
}

/** Resolves when this worker crashed: the primary starts another meanwhile. One that does not serve yet ends at once. */
const whenFailing = (log: ProcessLog, events: ProcessEvents, isServing: () => boolean): Promise<void> =>
  new Promise(resolve => {
    onCrash(log, events, error => {
      process.exitCode = 1
      const told = tell({ mcpHost: 'failing', problem: errorText(error) })
      if (isServing()) resolve()
      else void Promise.all([told, log.flush()]).then(() => process.exit())
    })
  })

async function startHost(
  config: string | undefined,
  log: CliLog,
  context: CommandContext,
  settings: ServeSettings,
): Promise<Served> {
  try {
    const others = { inEveryProcess: createInEveryProcess(tell), neighbours: createNeighbours(hubOfPrimary()) }
    const served = await serve(config, log, context, { ...settings, ...others })
    surviveRejections(log, context.process)
    return served
  } catch (error) {
    // Of the first worker the operator hears as of a process alone; the primary logs what is wrong with later ones.
    if (process.env[FIRST_WORKER] === 'yes') throw error
    await tell({ mcpHost: 'failed', problem: errorText(error) })
    return process.exit(error instanceof StartError ? error.exitCode : 1)
  }
}

/** Serves as one of `count` processes until it is told to leave. */
export async function work(
  count: number,
  options: StartOptions,
  context: CommandContext,
  settings: ServeSettings,
): Promise<undefined> {
  const watchdog = startWatchdog(Number(process.env[PRIMARY]))
  const log = openLog(options, context, process.pid)
  surviveStdout(log, context)
  const orders = listenForOrders()
  const { stop, retire, leave } = orders
  let serving = false
  const failing = whenFailing(log, context.process, () => serving)
  const { host, file } = await startHost(options.config, log, context, { ...settings, processes: count })
  serving = true
  const orphaned = new Promise<void>(outliveThePrimary)
  void orphaned.then(watchdog.heard)
  void tellOrphaned(orphaned, orders, log)
  const { url, routes } = host
  await tell({ mcpHost: 'ready', url, routes, file, files: await readConfigFiles([...filesRead]) })
  const over = Promise.race([stop, orphaned.then(() => STOP)])
  const leaving = Promise.race([retire, failing]).then(() => Promise.race([over, host.handOver().then(() => STOP)]))
  const { handOver } = await Promise.race([over, leaving])
  const report: CloseReport = await host.close({ ...(handOver !== undefined && { handOver }) })
  await tell({ mcpHost: 'drained', ...report })
  // What the primary had handed over before it knew that nothing is accepted here is given back first.
  await Promise.race([leave, orphaned])
  await log.flush()
  process.exit()
}
