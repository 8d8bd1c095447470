// The primary process of `mcp-host start --workers N`: starts, replaces, reloads and stops workers. It loads nothing of the
// config.
import cluster from 'node:cluster'
import type { Logger } from '../../core/kernel/log.ts'
import { StartError } from '../../core/plugin.ts'
import type { StartOptions } from '../command.ts'
import type { CommandContext } from '../context.ts'
import { openLog } from '../log.ts'
import { nextSignal, surviveStdout } from '../serve.ts'
import { startPage } from '../start-page.ts'
import { connectWorkers } from './hub.ts'
import { isFromWorker, type Serving, STOPPING_TIME } from './message.ts'
import { createSeat, type Seat } from './seat.ts'
import { endInTime, startWorker, type WorkerEnd, type WorkerProcess } from './worker-process.ts'

/** Starts one worker before all others, so that an invalid config is reported once. */
async function startFirst(): Promise<{ worker: WorkerProcess; serving: Serving }> {
  const worker = startWorker(true)
  const serving = await worker.ready
  if (serving) return { worker, serving }
  const { code, signal, problem } = await worker.ended
  if (problem !== undefined) throw new StartError('MH3120', `no worker can be started: ${problem}`)
  if (signal !== null) throw new StartError('MH3120', `the first worker was ended by ${signal} before it served`)
  return process.exit(code ?? 1)
}

async function drain(seats: readonly Seat[], handOver: boolean, log: Logger) {
  const running = seats.flatMap(({ processes }) => [...processes])
  for (const seat of seats) seat.close()
  const order = { mcpHost: 'stop', ...(!handOver && { handOver }) } as const
  const ends = await Promise.all(
    running.map(async worker => {
      // A starting worker has nothing to drain, and its startup can hang.
      if (!worker.serving) worker.kill()
      const end = await (worker.serving ? endInTime(worker, order, STOPPING_TIME, log) : worker.ended)
      return { pid: worker.pid, served: worker.serving !== undefined, ...end }
    }),
  )
  for (const { pid, code, signal } of ends.filter(({ report, served }) => served && !report)) {
    log.error({ code: 'MH3124', worker: pid, exitCode: code, signal }, 'a worker ended before it was drained')
  }
  const sum = (count: (end: WorkerEnd) => number | undefined) => ends.reduce((all, end) => all + (count(end) ?? 0), 0)
  return { finished: sum(({ report }) => report?.finished), cancelled: sum(({ report }) => report?.cancelled) }
}

function createReload(seats: readonly Seat[], log: Logger) {
  let state: 'waiting' | 'idle' | 'busy' | 'over' = 'waiting'
  let asked = false

  async function replaceAll() {
    log.info({ code: 'MH3107', workers: seats.length }, 'reloading: new workers read the config')
    for (const [replaced, seat] of seats.entries()) {
      const outcome = await seat.replace()
      if (asked || state === 'over') return
      if ('end' in outcome) {
        const { code, signal, problem } = outcome.end
        log.error(
          { code: 'MH3101', exitCode: code, signal, problem, replaced, workers: seats.length },
          'Reload failed: a new worker could not start. The old workers continue to serve.',
        )
        return
      }
      log.info(
        { code: 'MH3125', worker: seat.pid, url: outcome.serving.url, replaced: replaced + 1 },
        'replaced a worker',
      )
    }
    log.info({ code: 'MH3103', workers: seats.length }, 'Reloaded')
  }

  async function run() {
    if (state !== 'idle') return
    state = 'busy'
    while (asked && state === 'busy') {
      asked = false
      await replaceAll()
    }
    if (state === 'busy') state = 'idle'
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
    isBusy: () => state === 'busy',
    end() {
      state = 'over'
    },
  }
}

/** Warns about workers with different file versions: a replacement for a dead worker reads the current files. */
function warnOfDifferences(seats: readonly Seat[], log: Logger): void {
  const read = seats.flatMap(({ now }) => (now ? [now.digests] : []))
  const files = [...new Set(read.flatMap(digests => Object.keys(digests)))]
  const changed = files.filter(file => new Set(read.map(digests => digests[file])).size > 1).sort()
  if (changed.length === 0) return
  const workers = seats.flatMap(({ pid }) => pid ?? [])
  log.warn(
    { code: 'MH3126', changed, workers },
    'the workers serve different configs, because files changed between their starts: send SIGHUP to this process',
  )
}

/** Serves with `count` workers until a signal, then drains them and exits 0. */
export async function supervise(count: number, options: StartOptions, context: CommandContext): Promise<undefined> {
  const log = openLog(options, context, { pid: process.pid })
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
  const reload = createReload(seats, log)
  process.on('SIGHUP', reload.ask)
  cluster.on('message', (_worker, message) => {
    if (isFromWorker(message) && message.mcpHost === 'reload') reload.ask()
  })

  cluster.schedulingPolicy = cluster.SCHED_RR
  connectWorkers(log)
  const first = await startFirst()
  stage = 'serving'
  // Configs differ while a reload replaces the workers.
  const refilled = () => {
    if (!reload.isBusy()) warnOfDifferences(seats, log)
  }
  for (let place = 0; place < count; place++) seats.push(createSeat({ start: startWorker, log, serving, refilled }))
  void Promise.all(seats.map((seat, place) => seat.fill(place === 0 ? first.worker : startWorker()))).then(() => {
    if (stage === 'stopping') return
    const processes = { primary: process.pid, workers: seats.flatMap(({ pid }) => pid ?? []) }
    context.show(startPage(first.serving, first.serving.file, context, { processes }))
    reload.allow()
  })

  const signal = await signalled
  stage = 'stopping'
  reload.end()
  void nextSignal(context.process, 'SIGTERM', 'SIGINT').then(killAll)
  // After Ctrl-C no other node takes over, so idle connections are closed at once.
  const drained = drain(seats, signal !== 'SIGINT', log)
  context.print(`${signal}: draining; a second signal stops immediately`)
  const { finished, cancelled } = await drained
  context.print(`stopped; running requests: ${finished} finished, ${cancelled} cancelled`)
  process.exit(0)
}
