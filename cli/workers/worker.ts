// A worker process: serves the config on the shared port and executes orders of the primary.
import cluster from 'node:cluster'
import { digestProject } from '../../core/config/module-graph.ts'
import type { ProcessLog } from '../../core/kernel/log.ts'
import type { CloseReport } from '../../core/kernel/shutdown.ts'
import { errorText, StartError } from '../../core/plugin.ts'
import { startThread } from '../../core/threads/start-thread.ts'
import type { StartOptions } from '../command.ts'
import type { OperatorLink } from '../console.ts'
import type { CommandContext, ProcessEvents } from '../context.ts'
import { type CliLog, openLog } from '../log.ts'
import {
  notifyParent,
  onCrash,
  type Served,
  type ServeSettings,
  serve,
  surviveRejections,
  surviveStdout,
} from '../serve.ts'
import { createHubClient, hubOfPrimary } from './hub-client.ts'
import { FIRST_WORKER, isFromPrimary, type Order, type StopOrder, type WorkerMessage } from './message.ts'

const notify = (message: WorkerMessage) => notifyParent(message)

const STOP: StopOrder = { mcpHost: 'stop' }

type Orders = ReturnType<typeof listenForOrders>

/** Orders come from the primary. A SIGTERM sent only to this process means `retire`. */
function listenForOrders() {
  const handlers = new Map<string, (order: Order) => void>()
  const receive = <Heard>(order: Order['mcpHost']) =>
    new Promise<Heard>(resolve => handlers.set(order, order => resolve(order as Heard)))
  process.on('message', message => {
    if (!isFromPrimary(message)) return
    if (message.mcpHost === 'ping') void notify({ mcpHost: 'pong' })
    if (message.mcpHost === 'stop' || message.mcpHost === 'retire') void notify({ mcpHost: 'acknowledged' })
    handlers.get(message.mcpHost)?.(message as Order)
  })
  process.on('SIGTERM', () => handlers.get('retire')?.({ mcpHost: 'retire' }))
  // A terminal sends these to all processes; the primary handles them.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
  return { stop: receive<StopOrder>('stop'), retire: receive<void>('retire'), leave: receive<void>('leave') }
}

/** Starts the watchdog thread. The returned function reports that this thread has detected the primary's end. */
function startWatchdog(): () => void {
  const noticed = new Int32Array(new SharedArrayBuffer(4))
  startThread('cli/workers/thread/main', {
    workerData: { primary: process.ppid, noticed },
    execArgv: [],
    env: {},
    resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 16 },
  }).unref()
  return () => void Atomics.store(noticed, 0, 1)
}

/** Resolves when the primary is gone. Without `exitedAfterDisconnect` node:cluster would then end the process at once. */
const waitForPrimaryEnd = () =>
  new Promise<void>(resolve => {
    const { worker } = cluster
    worker?.once('disconnect', () => {
      worker.exitedAfterDisconnect = true
      resolve()
    })
  })

async function logOrphaned(orphaned: Promise<void>, { stop, leave }: Orders, log: ProcessLog): Promise<void> {
  const isOrdered = Promise.race([stop, leave]).then(() => true)
  if (!(await Promise.race([isOrdered, orphaned.then(() => false)]))) {
    log.warn({ code: 'MH3127' }, 'the primary process ended: this worker drains and ends')
  }
}

/** Resolves after an uncaught error. A starting worker exits at once. */
const waitForCrash = (log: ProcessLog, events: ProcessEvents, isServing: () => boolean): Promise<void> =>
  new Promise(resolve => {
    onCrash(log, events, error => {
      process.exitCode = 1
      const sent = notify({ mcpHost: 'failing', problem: errorText(error) })
      if (isServing()) resolve()
      else void Promise.all([sent, log.flush()]).then(() => process.exit())
    })
  })

async function startHost(
  config: string | undefined,
  log: CliLog,
  context: CommandContext,
  settings: ServeSettings,
): Promise<Served> {
  try {
    const neighbours = createHubClient(hubOfPrimary())
    const { inEveryProcess } = neighbours
    const served = await serve(config, log, context, { ...settings, inEveryProcess, neighbours })
    surviveRejections(log, context.process)
    return served
  } catch (error) {
    // The first worker reports startup errors itself, like a single process; for later workers the primary logs them.
    if (process.env[FIRST_WORKER] === 'yes') throw error
    await notify({ mcpHost: 'failed', problem: errorText(error) })
    return process.exit(error instanceof StartError ? error.exitCode : 1)
  }
}

export async function work(
  count: number,
  options: StartOptions,
  context: CommandContext,
  settings: ServeSettings,
  link: OperatorLink,
): Promise<undefined> {
  const markNoticed = startWatchdog()
  const log = openLog(options, context, { pid: process.pid })
  surviveStdout(log, context)
  const orders = listenForOrders()
  const { stop, retire, leave } = orders
  let serving = false
  const failing = waitForCrash(log, context.process, () => serving)
  link.reload = () => notify({ mcpHost: 'reload' })
  const { host, file } = await startHost(options.config, log, context, link.connect({ ...settings, processes: count }))
  serving = true
  const orphaned = waitForPrimaryEnd()
  void orphaned.then(markNoticed)
  void logOrphaned(orphaned, orders, log)
  const { url, routes } = host
  await notify({ mcpHost: 'ready', url, routes, file, digests: await digestProject(file) })
  const stopping = Promise.race([stop, orphaned.then(() => STOP)])
  const leaving = Promise.race([retire, failing]).then(() => Promise.race([stopping, host.handOver().then(() => STOP)]))
  const { handOver } = await Promise.race([stopping, leaving])
  const report: CloseReport = await host.close({ ...(handOver !== undefined && { handOver }) })
  await notify({ mcpHost: 'drained', ...report })
  // The primary first takes back connections that were passed before it detected that this worker accepts none.
  await Promise.race([leave, orphaned])
  await log.flush()
  process.exit()
}
