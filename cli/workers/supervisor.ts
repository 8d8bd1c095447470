// The primary of `mcp-host start --workers N`: seats N workers on one port, keeps the seats filled, reloads on SIGHUP and
// ends on SIGTERM or SIGINT. It loads nothing of the config: no tool can take it down.
import cluster from 'node:cluster'
import { createLogger, type Logger } from '../../core/create-host.ts'
import { StartError } from '../../core/index.ts'
import type { VerbOptions } from '../main.ts'
import { nextSignal } from '../serve.ts'
import { workersPage } from '../start-page.ts'
import type { Serving } from './message.ts'
import { createReload } from './reload.ts'
import { createSeat, type Seat } from './seat.ts'
import { startWorker, type WorkerEnd, type WorkerProcess } from './worker-process.ts'

const processesOf = (seats: readonly Seat[]) => seats.flatMap(({ processes }) => [...processes])

/** The first worker tries the config for all of them: what is wrong is told once, by it, and nobody else starts. */
async function startFirst(): Promise<{ worker: WorkerProcess; serving: Serving }> {
  const worker = startWorker(true)
  const serving = await worker.ready
  if (serving) return { worker, serving }
  const { code, signal, problem } = await worker.ended
  if (problem !== undefined) throw new StartError(`no worker can be started: ${problem}`)
  if (signal !== null) throw new StartError(`the first worker was ended by ${signal} before it served`)
  return process.exit(code ?? 1)
}

/** Lets every worker drain as a host alone would, and says what became of their requests. */
async function drain(seats: readonly Seat[], log: Logger) {
  const running = processesOf(seats)
  for (const seat of seats) seat.close()
  for (const worker of running) {
    // Nothing to drain yet; and a start that hangs must end too.
    if (worker.serving) worker.order('stop')
    else worker.kill()
  }
  const ends = await Promise.all(running.map(reportOf))
  for (const { pid, code, signal } of ends.filter(({ report, served }) => served && !report)) {
    log.error({ worker: pid, code, signal }, 'a worker ended before it had drained')
  }
  const sum = (count: (end: WorkerEnd) => number | undefined) => ends.reduce((all, end) => all + (count(end) ?? 0), 0)
  return { finished: sum(({ report }) => report?.finished), cancelled: sum(({ report }) => report?.cancelled) }
}

const reportOf = async (worker: WorkerProcess) => ({
  pid: worker.pid,
  served: worker.serving !== undefined,
  ...(await worker.ended),
})

/** Serves with `count` workers until it is told to stop, then drains them and exits 0. */
export async function supervise(count: number, { verbose }: VerbOptions): Promise<void> {
  const log = createLogger({ verbose, pid: process.pid })
  const seats: Seat[] = []
  const serving = () => seats.filter(({ pid }) => pid !== undefined).length
  let stage: 'starting' | 'serving' | 'stopping' = 'starting'
  const killAll = () => {
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL')
    process.exit(1)
  }
  const signalled = nextSignal('SIGTERM', 'SIGINT').then(signal => {
    if (stage === 'starting') killAll()
    return signal
  })
  const reload = createReload(seats, log)
  process.on('SIGHUP', reload.ask)

  cluster.schedulingPolicy = cluster.SCHED_RR
  const first = await startFirst()
  stage = 'serving'
  for (let place = 0; place < count; place++) seats.push(createSeat({ start: startWorker, log, serving }))
  void Promise.all(seats.map((seat, place) => seat.fill(place === 0 ? first.worker : startWorker()))).then(() => {
    if (stage === 'stopping') return
    console.log(workersPage(first.serving, { primary: process.pid, workers: seats.flatMap(({ pid }) => pid ?? []) }))
    reload.allow()
  })

  const signal = await signalled
  stage = 'stopping'
  reload.end()
  void nextSignal('SIGTERM', 'SIGINT').then(killAll)
  const drained = drain(seats, log)
  console.log(`${signal}: draining; a second signal ends at once`)
  const { finished, cancelled } = await drained
  console.log(`stopped; running requests: ${finished} finished, ${cancelled} cancelled`)
  process.exit(0)
}
