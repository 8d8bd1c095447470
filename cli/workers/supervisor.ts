// The primary of `mcp-host start --workers N`: seats N workers on one port, keeps the seats filled, reloads on SIGHUP and
// ends on SIGTERM or SIGINT. It loads nothing of the config: no tool can take it down.

import cluster from 'node:cluster'
import type { Logger } from '../../core/create-host.ts'
import { StartError } from '../../core/index.ts'
import type { CommandContext } from '../context.ts'
import { openLog } from '../log.ts'
import { nextSignal, surviveStdout } from '../serve.ts'
import { workersPage } from '../start-page.ts'
import type { StartOptions } from '../verb.ts'
import { differingFiles } from './config-files.ts'
import { connectWorkers } from './connect-workers.ts'
import { passQuestions } from './every-process.ts'
import { type Serving, STOPPING_TIME } from './message.ts'
import { createSeat, type Seat } from './seat.ts'
import { endInTime, startWorker, type WorkerEnd, type WorkerProcess } from './worker-process.ts'

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
async function drain(seats: readonly Seat[], handOver: boolean, log: Logger) {
  const running = processesOf(seats)
  for (const seat of seats) seat.close()
  const order = { mcpHost: 'stop', ...(!handOver && { handOver }) } as const
  const ends = await Promise.all(
    running.map(async worker => {
      // Nothing to drain yet; and a start that hangs must end too.
      if (!worker.serving) worker.kill()
      const end = await (worker.serving ? endInTime(worker, order, STOPPING_TIME, log) : worker.ended)
      return { pid: worker.pid, served: worker.serving !== undefined, ...end }
    }),
  )
  for (const { pid, code, signal } of ends.filter(({ report, served }) => served && !report)) {
    log.error({ worker: pid, code, signal }, 'a worker ended before it had drained')
  }
  const sum = (count: (end: WorkerEnd) => number | undefined) => ends.reduce((all, end) => all + (count(end) ?? 0), 0)
  return { finished: sum(({ report }) => report?.finished), cancelled: sum(({ report }) => report?.cancelled) }
}

/** Says where workers serve different configs: files that were changed are read by who starts later. */
function warnOfDifferences(seats: readonly Seat[], log: Logger) {
  const configs = seats.flatMap(({ now }) => (now ? [now.files] : []))
  const changed = differingFiles(configs)
  if (changed.length === 0) return
  const workers = seats.flatMap(({ pid }) => pid ?? [])
  log.warn(
    { changed, workers },
    'the workers serve different configs: files were changed and some of them had read them before; send SIGHUP to ' +
      'this process, and all of them read what is there now',
  )
}

/** Serves with `count` workers until it is told to stop, then drains them and exits 0. */
export async function supervise(count: number, options: StartOptions, context: CommandContext): Promise<undefined> {
  const log = openLog(options, context, process.pid)
  surviveStdout(log, context)
  const seats: Seat[] = []
  const serving = () => seats.filter(({ pid }) => pid !== undefined).length
  let stage: 'starting' | 'serving' | 'stopping' = 'starting'
  const killAll = () => {
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL')
    process.exit(1)
  }
  const signalled = nextSignal(context.process, 'SIGTERM', 'SIGINT').then(signal => {
    if (stage === 'starting') killAll()
    return signal
  })
  const compare = () => warnOfDifferences(seats, log)
  const reload = createReload(seats, log, compare)
  process.on('SIGHUP', reload.ask)

  cluster.schedulingPolicy = cluster.SCHED_RR
  passQuestions()
  connectWorkers(log)
  const first = await startFirst()
  stage = 'serving'
  for (let place = 0; place < count; place++)
    seats.push(createSeat({ start: startWorker, log, serving, refilled: reload.compare }))
  void Promise.all(seats.map((seat, place) => seat.fill(place === 0 ? first.worker : startWorker()))).then(() => {
    if (stage === 'stopping') return
    const processes = { primary: process.pid, workers: seats.flatMap(({ pid }) => pid ?? []) }
    context.print(workersPage(first.serving, processes, context))
    compare()
    reload.allow()
  })

  const signal = await signalled
  stage = 'stopping'
  reload.end()
  void nextSignal(context.process, 'SIGTERM', 'SIGINT').then(killAll)
  // At a terminal nobody waits for the connections of others, and nobody else serves them.
  const drained = drain(seats, signal !== 'SIGINT', log)
  context.print(`${signal}: draining; a second signal ends at once`)
  const { finished, cancelled } = await drained
  context.print(`stopped; running requests: ${finished} finished, ${cancelled} cancelled`)
  process.exit(0)
}

export interface Reload {
  /** Reloads; asked for while one is under way, begins again with the config as it is then. */
  readonly ask: () => void
  /** From now on: what was asked for before is done. */
  allow(): void
  /** Compares what the workers serve, unless a reload is changing it; then that does, at its end. */
  readonly compare: () => void
  /** Nothing is reloaded any more. */
  end(): void
}

/** `compare` says where workers serve different configs. */
export function createReload(seats: readonly Seat[], log: Logger, compare: () => void): Reload {
  let state: 'waiting' | 'idle' | 'busy' | 'over' = 'waiting'
  let asked = false

  /** One round over the seats. Ends early where it is asked for again, which its caller sees. */
  async function replaceAll() {
    log.info({ workers: seats.length }, 'reloading: new workers read the config')
    for (const [replaced, seat] of seats.entries()) {
      const outcome = await seat.replace()
      if (asked || state === 'over') return
      if ('end' in outcome) {
        const { code, signal, problem } = outcome.end
        log.error(
          { code, signal, ...(problem !== undefined && { problem }), replaced, workers: seats.length },
          'the reload failed: a new worker could not start; the old ones go on',
        )
        return
      }
      log.info({ worker: seat.pid, url: outcome.serving.url, replaced: replaced + 1 }, 'replaced a worker')
    }
    log.info({ workers: seats.length }, 'reloaded')
  }

  async function run() {
    if (state !== 'idle') return
    state = 'busy'
    while (asked) {
      asked = false
      await replaceAll()
      if (state !== 'busy') return
      if (!asked) compare()
    }
    state = 'idle'
  }

  return {
    ask() {
      asked = true
      for (const seat of seats) seat.giveUp()
      void run()
    },
    allow() {
      state = 'idle'
      void run()
    },
    compare() {
      if (state === 'idle') compare()
    },
    end() {
      state = 'over'
    },
  }
}
