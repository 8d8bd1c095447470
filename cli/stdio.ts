// `mcp-host stdio`: serves one route of the config to the program that started this process, until that ends its input.
import { type Logger, loadConfig } from '../core/create-host.ts'
import { HostError, StartError } from '../core/http/errors.ts'
import type { ServedLine, StdioEnds } from '../plugins/transport-stdio/index.ts'
import { openLog } from './log.ts'
import { nextSignal, onCrash, surviveRejections } from './serve.ts'
import { findPlace, type ServedPlace, type StdioHost, stdioHostOf } from './stdio/stdio-host.ts'
import { CONFIG_OPTION, defineVerb, LOG_OPTIONS } from './verb.ts'

export interface StdioSettings {
  readonly config: string | undefined
  readonly route: string | undefined
  readonly cwd: string
}

/** A client that is served. */
export interface Serving {
  /** Resolves when the client has ended its input or is gone. */
  readonly ended: Promise<void>
  /** Lets what runs end, as the host's `close` does, then ends the line. */
  close(): Promise<void>
}

/** The config may ask for a user, and nobody at stdio can be asked for a token. */
function refused(path: string, thrown: unknown): unknown {
  if (!HostError.is(thrown)) return thrown
  const fix = "say who calls: plugins['transport-stdio'].user, with what the route's `authorize` needs"
  return new StartError(`routes['${path}'] refuses this client: ${thrown.message}; ${fix}`, {
    exitCode: 2,
    cause: thrown,
  })
}

/** What `act` gives for the route. */
function onPlace<Value>(made: StdioHost, route: string | undefined, act: (place: ServedPlace) => Value): Value {
  const place = findPlace(made, route)
  try {
    return act(place)
  } catch (thrown) {
    throw refused(place.path, thrown)
  }
}

function connect(made: StdioHost, route: string | undefined, ends: StdioEnds): ServedLine {
  return onPlace(made, route, ({ path, params }) => made.transport.connect(path, params, ends))
}

/** Throws a StartError where `serveStdio` would, before anything is started. */
export async function checkStdio({ config, route, cwd }: StdioSettings, log: Logger): Promise<void> {
  const made = await stdioHostOf(await loadConfig({ cwd, ...(config !== undefined && { file: config }) }), log)
  try {
    onPlace(made, route, ({ path, params }) => made.transport.admit(path, params))
  } finally {
    await made.host.close({ grace: 0 })
  }
}

/** Throws a StartError for what cannot be served; then nothing was read of the client. */
export async function serveStdio(
  { config, route, cwd }: StdioSettings,
  ends: StdioEnds,
  log: Logger,
): Promise<Serving> {
  const loaded = await loadConfig({ cwd, ...(config !== undefined && { file: config }) })
  const made = await stdioHostOf(loaded, log)
  const { host } = made
  try {
    // Before anything is opened that a wrong --route would leave behind.
    findPlace(made, route)
    await host.start()
    const line = connect(made, route, ends)
    return {
      ended: line.ended,
      async close() {
        await host.close({ handOver: false })
        await line.close()
      },
    }
  } catch (error) {
    // What it cannot close of a half-started host is not the news.
    await host.close({ grace: 0 }).catch(() => undefined)
    throw error
  }
}

const ENDING = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

export const stdioVerb = defineVerb({
  summary: 'serve one route of the config over stdin and stdout, to the program that starts it',
  options: {
    ...CONFIG_OPTION,
    ...LOG_OPTIONS,
    route: { type: 'string', value: '<path>', help: 'which route; may be left out where there is one' },
  },
  notes: `For desktop clients: "command": "mcp-host", "args": ["stdio", "--config", "/home/me/tools/mcp.config.ts"].
Who calls is said by plugins['transport-stdio'].user of the config; default: nobody. What tools print goes to stderr.`,
  async run({ config, route, ...logging }, _positionals, context) {
    const { process: events, stdin: input, cwd } = context
    const output = context.stdout
    const ending = nextSignal(events, ...ENDING)
    let serving = false
    void ending.then(() => {
      if (!serving) return context.exit(1)
      void nextSignal(events, ...ENDING).then(() => context.exit(1))
    })
    const log = openLog(logging, context)
    const served = await serveStdio({ config, route, cwd }, { input, output }, log)
    serving = true
    surviveRejections(log, events)
    const crashed = new Promise<'crash'>(resolve => onCrash(log, events, () => resolve('crash')))
    const why = await Promise.race([served.ended, ending, crashed])
    await served.close()
    await log.flush()
    return why === 'crash' ? 1 : 0
  },
})
