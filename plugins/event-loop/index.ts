// Detects that the event loop is blocked, with the delay histogram of Node.js: a warning in the log and a counter.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { addCount, closed, definePlugin, duration } from '../../core/internal.ts'
import { type Call, type OptionsOf, parseDuration } from '../../core/plugin.ts'

/** How often the delay is read, milliseconds. */
const CHECK_EVERY = 1_000
const MAX_NAMES = 5

const BLOCKED = {
  name: 'mcp_host_event_loop_blocked_seconds_total',
  help: 'Time for which the event loop was blocked: each second, the longest delay above warnAfter.',
}

function nameOf({ method, params, view }: Call): string {
  const name = params['name']
  return method === 'tools/call' && typeof name === 'string' && view.tools.has(name) ? `tool ${name}` : method
}

const OPTIONS = closed(
  {
    warnAfter: duration('A longer delay of the event loop is logged.', { default: '200ms' }),
  },
  { description: 'Warns when the event loop is blocked, so that no other caller is served.' },
)

export interface EventLoopOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledEventLoopOptions extends OptionsOf<typeof OPTIONS, true> {}

export const eventLoop = definePlugin<EventLoopOptions, FilledEventLoopOptions>({
  options: OPTIONS,
  setup(host, { warnAfter }) {
    const limit = parseDuration(warnAfter)
    const delays = monitorEventLoopDelay({ resolution: 20 })
    const blocked = host.metrics.counter(BLOCKED)
    const running = new Map<string, number>()
    /** The histogram can record a delay one interval late, so calls of the previous interval count too. */
    let ended = new Set<string>()
    let endedBefore = new Set<string>()
    let cpu = process.cpuUsage()
    let cpuBefore = cpu
    let timer: ReturnType<typeof host.clock.setInterval> | undefined

    host.onCall(async (call, next) => {
      const name = nameOf(call)
      addCount(running, name, 1)
      try {
        return await next()
      } finally {
        addCount(running, name, -1)
        ended.add(name)
      }
    })

    function check() {
      const delay = delays.max / 1e6
      const { user, system } = process.cpuUsage(cpuBefore)
      cpuBefore = cpu
      cpu = process.cpuUsage()
      delays.reset()
      // If this process used little CPU time, the machine was busy or suspended.
      if (delay > limit && (user + system) / 1_000 > limit / 4) {
        blocked(delay / 1_000)
        const calls = [...new Set([...ended, ...endedBefore, ...running.keys()])].slice(0, MAX_NAMES)
        const fix = 'set `isolate: true` in the tool or in tools.limits, or divide its work'
        const fields = { ms: Math.round(delay), calls, fix }
        // Without a call, the host itself was working: a start or a reload.
        if (calls.length > 0)
          host.log.warn({ code: 'MH2610', ...fields }, 'The event loop was blocked: no other caller was served')
      }
      endedBefore = ended
      ended = new Set()
    }

    host.onStart(() => {
      delays.enable()
      cpu = process.cpuUsage()
      cpuBefore = cpu
      timer = host.clock.setInterval(check, CHECK_EVERY).unref()
    })
    host.onClose(() => {
      host.clock.clear(timer)
      delays.disable()
    })
  },
})
