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
  console.log(`${signal}: draining; a second signal ends at once`)
  void nextSignal('SIGTERM', 'SIGINT').then(() => process.exit(1))
  const { finished, cancelled } = await host.close()
  console.log(`stopped: ${finished} running requests finished, ${cancelled} were cancelled`)
}

export async function start({ config, verbose }: VerbOptions): Promise<void> {
  const signalled = nextSignal('SIGTERM', 'SIGINT')
  const log = createLogger({ verbose })
  const host = await loadHost({ cwd: process.cwd(), ...(config !== undefined && { file: config }) }, log)
  await host.listen()
  console.log(startPage(host))
  await drain(host, await signalled)
  process.exit(0)
}
