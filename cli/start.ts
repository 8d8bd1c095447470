// `mcp-host start`: serves until it is told to stop, then drains and exits 0.
import { createLogger, type Host, loadHost } from '../core/create-host.ts'
import type { VerbOptions } from './main.ts'
import { startPage } from './start-page.ts'

/** Resolves with the first of these signals. */
function nextSignal(...signals: NodeJS.Signals[]): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    for (const signal of signals) process.once(signal, resolve)
  })
}

async function drain(host: Host, signal: NodeJS.Signals) {
  void nextSignal('SIGTERM', 'SIGINT').then(() => process.exit(1))
  const closing = host.close()
  console.log(`${signal}: draining; a second signal ends at once`)
  const { finished, cancelled } = await closing
  console.log(`stopped; running requests: ${finished} finished, ${cancelled} cancelled`)
}

export async function start({ config, verbose }: VerbOptions): Promise<void> {
  let listening = false
  const signalled = nextSignal('SIGTERM', 'SIGINT').then(signal => {
    // Nothing to drain yet; and a start that hangs must end too.
    if (!listening) process.exit(1)
    return signal
  })
  const log = createLogger({ verbose })
  const host = await loadHost({ cwd: process.cwd(), ...(config !== undefined && { file: config }) }, log)
  try {
    await host.listen()
  } catch (error) {
    // What it cannot close of a half-started host is not the news.
    await host.close().catch(() => undefined)
    throw error
  }
  listening = true
  // A promise that a tool left behind must not end every other caller's work.
  process.on('unhandledRejection', err => {
    // A handler that asked and did not wait is no failure: it runs again when the answer is there.
    if (err instanceof Error && err.name === 'AwaitingInput') return
    log.error({ err }, 'a promise was rejected and nobody handled it')
  })
  console.log(startPage(host))
  await drain(host, await signalled)
  process.exit(0)
}
