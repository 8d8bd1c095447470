// What a module may not do while it is loaded: end the process, or never finish. Either would be the end of a start, or of
// every later reload, without a word. For import-module.ts.
import { AsyncLocalStorage } from 'node:async_hooks'

/** How long a module and what it imports may take, milliseconds. */
const PATIENCE = 30_000
/** The same where somebody waits for the next version. */
const PATIENCE_OF_NEXT = 2_000

interface Loading {
  readonly since: number
  over: boolean
  giveUp(why: string): void
}

const running = new Set<Loading>()
const context = new AsyncLocalStorage<Loading>()
let exit = process.exit

/** Stands in for `process.exit`, for what is called by a module that is being loaded alone. */
function refuseExit(code?: number | string | null): never {
  const loading = context.getStore()
  if (!loading || loading.over) return exit.call(process, code)
  throw new Error(`it calls process.exit(${code ?? ''}) while it is loaded; throw an error to stop a start`)
}

const WAITS = 'an `await` at the top of it, or of a module that it imports, waits for what does not come'

const giveUpAll = (why: string) => {
  for (const loading of running) loading.giveUp(why)
}
const onIdle = () => giveUpAll(`it never finishes: ${WAITS}`)

function begin(loading: Loading) {
  running.add(loading)
  if (running.size > 1) return
  exit = process.exit
  process.exit = refuseExit
  process.on('beforeExit', onIdle)
}

function end(loading: Loading) {
  loading.over = true
  running.delete(loading)
  if (running.size > 0) return
  if (process.exit === refuseExit) process.exit = exit
  process.off('beforeExit', onIdle)
  // While it is on, it costs each promise of the process something.
  context.disable()
}

/** The module that `load` imports. Rejects where it calls `process.exit`, or has not finished after 30 s or when nothing is left to do. */
export async function whileLoading<T>(load: () => Promise<T>): Promise<T> {
  let giveUp: Loading['giveUp'] = () => undefined
  const late = new Promise<never>((_, reject) => {
    giveUp = why => reject(new Error(why))
  })
  const loading: Loading = { since: performance.now(), over: false, giveUp }
  // It keeps no process alive: where nothing else does, `beforeExit` comes first.
  const timer = setTimeout(() => giveUp(`it has not finished after ${PATIENCE / 1_000} s: ${WAITS}`), PATIENCE).unref()
  begin(loading)
  try {
    return await Promise.race([context.run(loading, load), late])
  } finally {
    clearTimeout(timer)
    end(loading)
  }
}

/** True while a module is loaded: a process with nothing left to do is then no news, for it goes on. */
export const isLoading = (): boolean => running.size > 0

/** Somebody waits for the next version of what is loaded: what hangs for two seconds by now has had its time. */
export function giveUpStalled(): void {
  const late = performance.now() - PATIENCE_OF_NEXT
  for (const { since, giveUp } of running) {
    if (since < late) giveUp(`it was still not finished when it was to be read again: ${WAITS}`)
  }
}
