// The threads of a host's isolated tools, which are loaded with the first call of one: a host without such tools has none.
import type { Clock } from '../http/clock.ts'
import { shuttingDown } from '../http/errors.ts'
import type { Figures } from '../kernel/figures.ts'
import type { Logger } from '../kernel/log.ts'
import type { Definition } from '../mcp/define.ts'
import type { IsolatedCall, Isolation } from '../mcp/isolation.ts'
import type { Pools } from './pools.ts'

export interface IsolationSettings {
  /** Milliseconds. */
  readonly fetchTimeout: number
  readonly log: Logger
  readonly clock: Clock
  readonly figures: Pick<Figures, 'counter' | 'gauge'>
}

/** The threads of one host. */
export interface HostIsolation extends Isolation {
  /** After a reload: the threads of other modules end when their calls have. */
  keepOnly(definitions: Iterable<Definition>): void
  /** Ends all threads, whatever runs in them. */
  close(): Promise<void>
}

const ENDED = {
  name: 'mcp_host_isolated_calls_ended_total',
  help: 'Threads of isolated tools that were ended, by the tool and by what was over.',
  labels: ['tool', 'over'],
}
const THREADS = { name: 'mcp_host_isolated_threads', help: 'Threads of isolated tools.' }

export function createIsolation({ fetchTimeout, log, clock, figures }: IsolationSettings): HostIsolation {
  const ended = figures.counter(ENDED)
  let opening: Promise<Pools> | undefined
  let pools: Pools | undefined
  let isClosed = false
  figures.gauge(THREADS, () => pools?.countThreads() ?? 0)

  async function open(): Promise<Pools> {
    const { openPools } = await import('./pools.ts')
    pools = await openPools({ fetchTimeout, log, clock, ended })
    return pools
  }

  return {
    async run(isolated: IsolatedCall) {
      if (isClosed) throw shuttingDown()
      if (pools) return pools.run(isolated)
      opening ??= open()
      return (await opening).run(isolated)
    },
    keepOnly: definitions => pools?.keepOnly(definitions),
    async close() {
      isClosed = true
      await (await opening)?.close()
    },
  }
}
