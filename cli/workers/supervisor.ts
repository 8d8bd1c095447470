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
import { isFromWorker, type Serving, STOP_TIMEOUT } from './message.ts'
import { startWorker, stopWorker, type WorkerEnd, type WorkerProcess } from './worker-process.ts'
import { createSlot, type WorkerSlot } from './worker-slot.ts'

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

async function drain(slots: readonly WorkerSlot[], handOver: boolean, log: Logger) {
  const running = slots.flatMap(({ processes }) => [...processes])
  for (const slot of slots) slot.close()
  const order = { mcpHost: 'stop', ...(!handOver && { handOver }) } as const
  const ends = await Promise.all(
    running.map(async worker => {
      // A starting worker has nothing to drain, and its startup can hang.
      if (!worker.serving) worker.kill()
      const end = await (worker.serving ? stopWorker(worker, order, STOP_TIMEOUT, log) : worker.ended)
      return { pid: worker.pid, served: worker.serving !== undefined, ...end }
    }),
  )
  for (const { pid, code, signal } of ends.filter(({ report, served }) => served && !report)) {
    log.error({ code: 'MH3124', worker: pid, exitCode: code, signal }, 'a worker ended before it was drained')
  }
  const sum = (count: (end: WorkerEnd) => number | undefined) => ends.reduce((all, end) => all + (count(end) ?? 0), 0)
  return { finished: sum(({ report }) => report?.finished), cancelled: sum(({ report }) => report?.cancelled) }
}

function createReload(slots: readonly WorkerSlot[], log: Logger) {
  let state: 'waiting' | 'idle' | 'busy' | 'ended' = 'waiting'
  let isRequested = false

  async function replaceAll() {
    log.info({ code: 'MH3107', workers: slots.length }, 'reloading: new workers read the config')
    for (const [replaced, slot] of slots.entries()) {
      const outcome = await slot.replace()
      if (isRequested || state === 'ended') return
      if ('end' in outcome) {
        const { code, signal, problem } = outcome.end
        log.error(
          { code: 'MH3101', exitCode: code, signal, problem, replaced, workers: slots.length },
          'Reload failed: a new worker could not start. The old workers continue to serve.',
        )
        return
      }
      log.info(
        { code: 'MH3125', worker: slot.pid, url: outcome.serving.url, replaced: replaced + 1 },
        'replaced a worker',
      )
    }
    log.info({ code: 'MH3103', workers: slots.length }, 'Reloaded')
  }

  async function run() {
    if (state !== 'idle') return
    state = 'busy'
    while (isRequested && state === 'busy') {
      isRequested = false
      await replaceAll()
    }
    if (state === 'busy') state = 'idle'
  }

  return {
    request() {
      isRequested = true
      for (const slot of slots) slot.cancelReplacement()
      void run()
    },
    enable() {
      state = 'idle'
      void run()
    },
    isBusy: () => state === 'busy',
    end() {
      state = 'ended'
    },
  }
}

/** Warns about workers with different file versions: a replacement for a dead worker reads the current files. */
function warnOfDifferences(slots: readonly WorkerSlot[], log: Logger): void {
  const read = slots.flatMap(({ info }) => (info ? [info.digests] : []))
  const files = [...new Set(read.flatMap(digests => Object.keys(digests)))]
  const changed = files.filter(file => new Set(read.map(digests => digests[file])).size > 1).sort()
  if (changed.length === 0) return
  const workers = slots.flatMap(({ pid }) => pid ?? [])
  log.warn(
    { code: 'MH3126', changed, workers },
    'the workers serve different configs, because files changed between their starts: send SIGHUP to this process',
  )
}

/** Serves with `count` workers until a signal, then drains them and exits 0. */
export async function supervise(count: number, options: StartOptions, context: CommandContext): Promise<undefined> {
  const log = openLog(options, context, { pid: process.pid })
  surviveStdout(log, context)
  const slots: WorkerSlot[] = []
  const serving = () => slots.filter(({ pid }) => pid !== undefined).length
  let stage: 'starting' | 'serving' | 'stopping' = 'starting'
  const killAll = () => {
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL')
    process.exit(1)
  }
  const signalled = nextSignal(context.process, 'SIGTERM', 'SIGINT').then(signal => {
    if (stage === 'starting') killAll()
    return signal
  })
  const reload = createReload(slots, log)
  process.on('SIGHUP', reload.request)
  cluster.on('message', (_worker, message) => {
    if (isFromWorker(message) && message.mcpHost === 'reload') reload.request()
  })

  cluster.schedulingPolicy = cluster.SCHED_RR
  connectWorkers(log)
  const first = await startFirst()
  stage = 'serving'
  // Configs differ while a reload replaces the workers.
  const onRefilled = () => {
    if (!reload.isBusy()) warnOfDifferences(slots, log)
  }
  for (let index = 0; index < count; index++) slots.push(createSlot({ start: startWorker, log, serving, onRefilled }))
  void Promise.all(slots.map((slot, index) => slot.fill(index === 0 ? first.worker : startWorker()))).then(() => {
    if (stage === 'stopping') return
    const processes = { primary: process.pid, workers: slots.flatMap(({ pid }) => pid ?? []) }
    context.show(startPage(first.serving, first.serving.file, context, { processes }))
    reload.enable()
  })

  const signal = await signalled
  stage = 'stopping'
  reload.end()
  void nextSignal(context.process, 'SIGTERM', 'SIGINT').then(killAll)
  // After Ctrl-C no other node takes over, so idle connections are closed at once.
  const drained = drain(slots, signal !== 'SIGINT', log)
  context.print(`${signal}: draining; a second signal stops immediately`)
  const { finished, cancelled } = await drained
  context.print(`stopped; running requests: ${finished} finished, ${cancelled} cancelled`)
  process.exit(0)
}
