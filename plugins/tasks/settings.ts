// The options of the plugin as its parts read them.
import { type FilledOptions, type PluginHost, parseDuration, parseSize, StartError } from '../../core/index.ts'
import type { QueueOffer, TaskBounds } from '../../core/transport.ts'

export const TASKS_ID = 'io.modelcontextprotocol/tasks'

/** Shorter ones lapse while a store answers; longer ones would leave clients without word for more than 30 seconds. */
const SHORTEST_LEASE = 300
const LONGEST_LEASE = 20_000

/** Tasks of a holder that are kept, for each that may be open. */
const KEPT_PER_OPEN = 10

/** Times are milliseconds, sizes bytes. */
export interface TaskSettings {
  /** Whether this process runs tasks. */
  readonly runs: boolean
  readonly ttl: number
  readonly pollInterval: number
  readonly lease: number
  readonly maxSize: number
  /** In this process. */
  readonly concurrent: number
  readonly offered: Pick<QueueOffer, 'running' | 'runningPerHolder'>
  readonly bounds: TaskBounds
}

/** Reports a lease that makes no sense. */
export function settingsOf(options: FilledOptions['tasks'], { at, report }: PluginHost): TaskSettings {
  const lease = parseDuration(options.lease)
  if (lease < SHORTEST_LEASE || lease > LONGEST_LEASE) {
    report(new StartError(`lease is ${options.lease}; write 300ms to 20s, such as 15s`, { at: [...at, 'lease'] }))
  }
  return {
    runs: options.role !== 'front',
    ttl: parseDuration(options.ttl),
    pollInterval: parseDuration(options.pollInterval),
    lease,
    maxSize: parseSize(options.maxSize),
    concurrent: options.concurrent,
    offered: { running: options.perTool, runningPerHolder: options.perUser },
    bounds: {
      openPerHolder: options.openPerUser,
      keptPerHolder: KEPT_PER_OPEN * options.openPerUser,
      kept: options.kept,
    },
  }
}
