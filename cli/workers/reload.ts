// SIGHUP: every seat gets a new worker, which reads the config anew, one seat after the other; a config that cannot be
// served stops that at its first worker, and the old ones go on.
import type { Logger } from '../../core/create-host.ts'
import type { Seat } from './seat.ts'

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
